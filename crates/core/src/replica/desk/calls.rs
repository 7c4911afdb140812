//! Calls of clients and operators, except those for roles, processes and restores.
//!
//! A write is first checked against `is_open`, because a node that does not lead may have an old state. Then
//! `look_ahead` brings the newest version up to the end of the log, and only then is the write judged.

use std::collections::BTreeSet;

use super::Desk;
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::{HandOverReason, Input, IsLeader, MemberChange, ServiceChange};
use crate::replica::answer::{Answer, CatchUp, Denied, ReadProof, Whole, Written};
use crate::replica::io::{CallId, End};
use crate::replica::pending::Waiting;
use crate::store::{Command, Judged};
use crate::types::{Entry, KeyedCall, NodeId, Record};

impl Desk {
    pub fn on_write(&mut self, id: CallId, command: &Command, key: Option<KeyedCall>) {
        if !self.node.is_open() {
            let denied = self.not_leading();
            return self.deny(id, denied);
        }
        if !self.look_ahead() {
            return self.deny(id, Denied::Stopping);
        }
        match self.judge(command, key) {
            Judged::Accept => self.propose_write(id, command, key),
            Judged::Replay { at, reply } => {
                self.answer_decided(id, Ok(Written { position: at, acks: None, reply }));
            }
            Judged::Rejected(rejection) => self.answer_decided(id, Err(Denied::Rejected(rejection))),
            Judged::TooManyKeys => self.deny(id, Denied::TOO_MANY_KEYS),
        }
    }

    fn propose_write(&mut self, id: CallId, command: &Command, key: Option<KeyedCall>) {
        // The version is made from the command as every node reads it: the record lacks the secret that the caller
        // showed (P54).
        let command = &*command.as_recorded();
        let waiting = |call| Waiting::Write { call, outcome: Ok(crate::store::Reply::none()) };
        if let Command::Batch(operations) = command
            && mutant::is_on(Mutant::SplitBatch)
        {
            for operation in operations.iter().skip(1) {
                self.propose(&Command::Single(operation.clone()), None, Waiting::Nobody);
            }
            let first = operations.first().cloned().map(Command::Single);
            return self.propose(first.as_ref().unwrap_or(command), key, waiting(id));
        }
        self.propose(command, key, waiting(id));
    }

    /// The answer may rest on records that are not committed yet, or come from a leader that was deposed. It leaves only once those
    /// records are committed and the leadership is confirmed (P14).
    fn answer_decided(&mut self, id: CallId, answer: Result<Written, Denied>) {
        if mutant::is_on(Mutant::RefusalUnconfirmed) {
            return self.answer(id, answer.map(Answer::Written));
        }
        let at_least = self.last_index();
        self.confirm(Waiting::Judged { call: id, answer: Box::new(answer) }, at_least);
    }

    /// A read under the lease is answered from the state of this moment. Any other read waits for a round, and is answered
    /// from the state after it.
    pub fn on_read(&mut self, id: CallId, proof: ReadProof) {
        match (proof, self.node.whether_leader(self.now.mono)) {
            // If the lease does not prove the leadership, a majority confirms it (P11).
            (ReadProof::Round, _) | (ReadProof::Lease, IsLeader::Unproven) => {
                self.confirm(Waiting::Read(id), 0)
            }
            (ReadProof::Lease, IsLeader::No) => {
                let denied = self.not_leading();
                self.deny(id, denied);
            }
            (ReadProof::Lease, IsLeader::Yes) => {
                let view = self.view(self.now.mono);
                self.answer(id, Ok(Answer::View(view.into())));
            }
        }
    }

    pub fn on_hand_over(&mut self, id: CallId, to: Option<NodeId>, reason: HandOverReason) {
        let request = self.pending.add(Waiting::Admin(id));
        self.inputs.push_back(Input::HandOver { request, to, reason });
    }

    pub fn on_service(&mut self, id: CallId, change: ServiceChange) {
        let request = self.pending.add(Waiting::Admin(id));
        self.inputs.push_back(Input::Service { request, change });
    }

    /// `Done` says that the order was given, not that the cluster is formed: the other nodes still have to approve
    /// (P9).
    pub fn on_form(&mut self, id: CallId, without: BTreeSet<NodeId>) {
        if self.node.vote().formed {
            return self.deny(id, Denied::AlreadyFormed);
        }
        self.inputs.push_back(Input::Form { without });
        self.answer(id, Ok(Answer::Done));
    }

    pub fn on_change_members(&mut self, id: CallId, change: MemberChange) {
        let request = self.pending.add(Waiting::Admin(id));
        self.inputs.push_back(Input::ChangeMembers { request, change });
    }

    /// Ends the node. A leader hands over first, so that its lease is given up before its port closes (C5).
    pub fn on_stop(&mut self) {
        if !self.node.is_open() || self.node.members().len() == 1 {
            return self.end(End::Asked);
        }
        let request = self.pending.add(Waiting::Farewell);
        self.inputs.push_back(Input::HandOver { request, to: None, reason: HandOverReason::Stopping });
    }

    /// The records behind a boundary: from the log, or the whole state if the log no longer has them (P47).
    pub fn catch_up(&self, snapshot_id: u64) -> Result<CatchUp, Denied> {
        if !self.node.is_open() {
            return Err(self.not_leading());
        }
        let origin = self.versions.origin();
        let from = snapshot_id.saturating_mul(self.versions.every()).saturating_add(origin);
        // A caller that asks for boundary 0 has no data, and this log does not go back to the beginning.
        let is_blank = snapshot_id == 0 && origin > 0 && !mutant::is_on(Mutant::BlankReaderGetsLines);
        // A boundary above the commit index comes from another numbering: from before an override, or from another side.
        let has_been = from <= self.node.commit_index();
        if has_been && !is_blank && from >= self.node.log().base().index {
            let records = self.node.log().range(from, self.node.commit_index());
            return Ok(CatchUp { whole: None, records });
        }
        let store = self.committed().clone();
        let upto = store.applied().index;
        // The state is that of now, not that of the boundary: a reader that takes the state and goes on from the
        // boundary skips what the state has already (P47).
        let skip = upto.saturating_sub(origin) % self.versions.every();
        let whole = Whole { snapshot_id: self.versions.snapshot_id(upto), store, skip };
        Ok(CatchUp { whole: Some(whole), records: Vec::new() })
    }

    /// Whether an earlier attempt of this call has been carried out, or may yet be because it stands in this node's log. In that case the
    /// caller must not be told that its call surely is not applied (P15).
    pub fn may_have_been(&self, call: KeyedCall) -> bool {
        let committed = self.committed();
        let above = committed.applied().index + 1..=self.node.last().index;
        let is_it = |record: &Record| match &record.entry {
            Entry::Client(payload) => payload.call.is_some_and(|other| other.is_attempt_of(&call)),
            _ => false,
        };
        let mut uncommitted = above.filter_map(|index| self.node.log().get(index));
        let told_apart = !mutant::is_on(Mutant::RetryIsRefused);
        told_apart && (committed.remembers(call) || uncommitted.any(is_it))
    }
}
