//! Writes and reads are judged, and proposed a round at a time.

use std::collections::BTreeSet;

use super::answer::{Answer, CatchUp, Denied, Level, Whole, Written};
use super::io::{CallId, End};
use super::pending::{Round, Waiting};
use super::state::Replica;
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::{Input, IsLeader, MemberChange, Proposal, ServiceChange, Verdict};
use crate::store::{Command, Judged, Quota, Reason};
use crate::types::{Entry, Index, KeyedCall, NodeId, Payload, Position, Record, Stamp};

impl Replica {
    pub(super) fn on_write(&mut self, id: CallId, command: &Command, key: Option<KeyedCall>) {
        if !self.core.is_open() {
            let denied = self.not_leading();
            return self.deny(id, denied);
        }
        if !self.look_ahead() {
            return self.deny(id, Denied::Stopping);
        }
        match self.judge(command, key) {
            Judged::Accept => self.propose_write(id, command, key),
            Judged::Replay { at, reply } => {
                self.answer_judged(id, Ok(Written { position: at, acks: None, reply }));
            }
            Judged::Rejected(rejection) => self.answer_judged(id, Err(Denied::Rejected(rejection))),
            Judged::TooManyKeys => self.deny(id, Denied::TOO_MANY_KEYS),
        }
    }

    /// By the newest version, as of now.
    pub(super) fn judge(&self, command: &Command, key: Option<KeyedCall>) -> Judged {
        let stamp = self.core.stamp(self.now).unwrap_or_default();
        let state = self.versions.newest();
        match state.judge(command, key, stamp) {
            Judged::Accept => match self.outgrown(command, stamp) {
                Some(reason) => Judged::Rejected(reason.into()),
                None => Judged::Accept,
            },
            judged => judged,
        }
    }

    /// Whether the state has no room for it (P55).
    fn outgrown(&self, command: &Command, stamp: Stamp) -> Option<Reason> {
        let quota = self.quota();
        if mutant::is_on(Mutant::StateGrowsOn) {
            return None;
        }
        let used = self.versions.newest().bytes();
        if mutant::is_on(Mutant::FullStateTakesNothing) && used > quota.most / 2 {
            return Some(Reason::StateFull { area: None, used, most: quota.most });
        }
        self.versions.newest().outgrown(command, stamp, quota)
    }

    pub(super) fn quota(&self) -> Quota<'_> {
        let limits = &self.core.settings().limits;
        Quota { most: limits.state_bytes, areas: &limits.area_bytes }
    }

    fn propose_write(&mut self, id: CallId, command: &Command, key: Option<KeyedCall>) {
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

    /// What was judged by records that are not committed yet, or by a leader that may have been deposed, leaves only once
    /// neither is so (P14).
    fn answer_judged(&mut self, id: CallId, answer: Result<Written, Denied>) {
        if mutant::is_on(Mutant::RefusalUnconfirmed) {
            return self.answer(id, answer.map(Answer::Written));
        }
        let at_least = self.last_index();
        self.confirm(Waiting::Judged { call: id, answer: Box::new(answer) }, at_least);
    }

    pub(super) fn on_read(&mut self, id: CallId, level: Level) {
        match (level, self.core.whether_leader(self.now.mono)) {
            // A majority says that it leads, where its lease does not (P11).
            (Level::Linear, _) | (Level::Leader, IsLeader::Unproven) => self.confirm(Waiting::Read(id), 0),
            (Level::Leader, IsLeader::No) => {
                let denied = self.not_leading();
                self.deny(id, denied);
            }
            (Level::Leader, IsLeader::Yes) | (Level::Local, _) => {
                let view = self.view(self.now.mono);
                self.answer(id, Ok(Answer::View(view.into())));
            }
        }
    }

    pub(super) fn on_hand_over(&mut self, id: CallId, to: Option<NodeId>) {
        let request = self.pending.add(Waiting::Admin(id));
        self.inputs.push_back(Input::HandOver { request, to });
    }

    pub(super) fn on_service(&mut self, id: CallId, change: ServiceChange) {
        let request = self.pending.add(Waiting::Admin(id));
        self.inputs.push_back(Input::Service { request, change });
    }

    pub(super) fn on_form(&mut self, id: CallId, without: BTreeSet<NodeId>) {
        if self.core.vote().formed {
            return self.deny(id, Denied::AlreadyFormed);
        }
        self.inputs.push_back(Input::Form { without });
        self.answer(id, Ok(Answer::Done));
    }

    pub(super) fn on_change_members(&mut self, id: CallId, change: MemberChange) {
        let request = self.pending.add(Waiting::Admin(id));
        self.inputs.push_back(Input::ChangeMembers { request, change });
    }

    /// Ends the node; a leader hands over first, so that its lease is given up before its port closes (C5).
    pub(super) fn on_stop(&mut self) {
        if !self.core.is_open() || self.core.members().len() == 1 {
            return self.end(End::Asked);
        }
        let request = self.pending.add(Waiting::Farewell);
        self.inputs.push_back(Input::HandOver { request, to: None });
    }

    /// What follows a boundary: from the log, or all that there is if the log has gone on (P47).
    pub fn catch_up(&self, snapshot_id: u64) -> Result<CatchUp, Denied> {
        if !self.core.is_open() {
            return Err(self.not_leading());
        }
        let origin = self.versions.origin();
        let from = snapshot_id.saturating_mul(self.versions.every()).saturating_add(origin);
        // Whoever asks from the beginning has nothing, and the log is not where everything began.
        let is_blank = snapshot_id == 0 && origin > 0 && !mutant::is_on(Mutant::BlankReaderGetsLines);
        // A boundary that has not been is one of other numbers: those of before an override, or of another side.
        let has_been = from <= self.core.commit_index();
        if has_been && !is_blank && from >= self.core.log().base().index {
            let records = self.core.log().range(from, self.core.commit_index());
            return Ok(CatchUp { whole: None, records });
        }
        let store = self.committed().clone();
        let upto = store.applied().index;
        let skip = upto.saturating_sub(origin) % self.versions.every();
        let whole = Whole { snapshot_id: self.versions.snapshot_id(upto), store, skip };
        Ok(CatchUp { whole: Some(whole), records: Vec::new() })
    }

    /// Whether an earlier attempt of this call has been carried out, or may yet be: it stands in this node's log. Whoever asks again is
    /// not to hear then that it surely is not applied (P15).
    pub fn may_have_been(&self, call: KeyedCall) -> bool {
        let committed = self.committed();
        let above = committed.applied().index + 1..=self.core.last().index;
        let is_it = |record: &Record| match &record.entry {
            Entry::Client(payload) => payload.call.is_some_and(|other| other.is_attempt_of(&call)),
            _ => false,
        };
        let mut uncommitted = above.filter_map(|index| self.core.log().get(index));
        let told_apart = !mutant::is_on(Mutant::RetryIsRefused);
        told_apart && (committed.remembers(call) || uncommitted.any(is_it))
    }
}

/// Records of one round, in bytes: so much is copied and sent as one batch before the next begins.
const BYTES_MOST: usize = 1 << 20;

// A round: the records and questions of one input, judged one after the other and given to the protocol together.
impl Replica {
    /// The index that the last record of the log has once this round is in it.
    pub(super) fn last_index(&self) -> Index {
        self.core.last().index + self.round.entries.len() as Index
    }

    /// Adds a command that the newest version accepts. What the protocol would refuse never enters the round.
    pub(super) fn propose(&mut self, command: &Command, key: Option<KeyedCall>, waiting: Waiting) {
        self.add_to_round(command.to_payload(key), Some(command), false, waiting);
    }

    /// The same with a step of a restore.
    pub(super) fn propose_step(&mut self, step: Payload, waiting: Waiting) {
        self.add_to_round(step, None, false, waiting);
    }

    /// The same with what takes back what was left half-way: nobody waits for it.
    pub(super) fn propose_clearing(&mut self, payload: Payload) {
        self.add_to_round(payload, None, true, Waiting::Nobody);
    }

    fn add_to_round(
        &mut self,
        payload: Payload,
        command: Option<&Command>,
        clears_up: bool,
        waiting: Waiting,
    ) {
        let entry = Entry::Client(payload);
        let before = self.round.entries.len() as Index;
        if let Some(refusal) = self.core.refusal(&entry, clears_up, before, self.round.bytes) {
            return self.decided(waiting, Verdict::Refused(refusal));
        }
        let position = Position::new(self.core.vote().promise.epoch, self.last_index() + 1);
        let stamp = self.core.stamp(self.now).unwrap_or_default();
        let record = Record { position, stamp, entry };
        let outcome = match self.versions.push(&record, command) {
            Ok(effect) => effect.applied.outcome.clone(),
            Err(error) => {
                waiting.call().into_iter().for_each(|call| self.deny(call, Denied::Stopping));
                return self.end(End::Unreadable { index: position.index, error });
            }
        };
        let request = self.pending.add(waiting.with_outcome(outcome));
        self.round.bytes += record.entry.size();
        self.round.entries.push(Proposal { request, entry: record.entry, clears_up });
        self.move_waiters(position.index);
        if self.round.bytes >= BYTES_MOST {
            self.propose_round();
        }
    }

    /// Asks for a round that starts now; `at_least` must be committed, too.
    pub(super) fn confirm(&mut self, waiting: Waiting, at_least: Index) {
        if mutant::is_on(Mutant::RenewUnconfirmed)
            && matches!(waiting, Waiting::Renew(_) | Waiting::Acquire(_))
        {
            return self.decided(waiting, Verdict::Readable { index: at_least });
        }
        let request = self.pending.add(waiting);
        self.round.reads.push((request, at_least));
    }

    /// Gives the round to the protocol: its records as one batch, then its reads.
    pub(super) fn propose_round(&mut self) {
        let Round { entries, reads, .. } = std::mem::take(&mut self.round);
        self.versions.seal();
        if !entries.is_empty() {
            let last = self.core.last().index + entries.len() as Index;
            self.tell_core(Input::Propose(entries));
            if self.core.log().last().index < last && !self.has_ended() {
                self.end(End::Broken("the protocol refused what it said it would take"));
            }
        }
        for (request, at_least) in reads {
            self.tell_core(Input::Read { request, at_least });
        }
    }

    /// Brings the newest version up to the log's end: the protocol writes records of its own. False only if that cannot
    /// be: then the replica ends.
    pub(super) fn look_ahead(&mut self) -> bool {
        if !self.round.entries.is_empty() {
            // The versions stand beyond the log, by what is about to be in it.
            return !self.has_ended();
        }
        if let Err(error) = self.versions.follow(self.core.log()) {
            self.end(End::Unreadable { index: self.core.last().index, error });
        }
        !self.has_ended()
    }
}
