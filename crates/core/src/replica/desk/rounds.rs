//! Calls are judged one after the other, each by the state that the records before it leave, and are gathered for the protocol.

use super::{Desk, Round};
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::{Proposal, Refusal, Verdict};
use crate::replica::answer::Denied;
use crate::replica::io::End;
use crate::replica::pending::Waiting;
use crate::store::{Command, Judged, LeaseEvent, Quota, Reason};
use crate::types::{Entry, Index, KeyedCall, Payload, Position, Record, RequestId, Stamp};

/// A round is full when its records have this many bytes. They are copied and sent as one batch before the next round begins.
const BYTES_MOST: usize = 1 << 20;

// Judging.
impl Desk {
    /// Judges the command by the newest version, as of now.
    pub fn judge(&self, command: &Command, key: Option<KeyedCall>) -> Judged {
        let stamp = self.node.stamp(self.now).unwrap_or_default();
        let state = self.versions.newest();
        match state.judge(command, key, stamp) {
            Judged::Accept => match self.outgrown(command, stamp) {
                Some(reason) => Judged::Rejected(reason.into()),
                None => Judged::Accept,
            },
            judged => judged,
        }
    }

    /// The reason to refuse the command, if the state has no room for it (P55).
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

    pub fn quota(&self) -> Quota<'_> {
        let limits = &self.node.settings().limits;
        Quota { most: limits.state_bytes, areas: &limits.area_bytes }
    }
}

// Gathering.
impl Desk {
    /// The index of the log's last record once this round is in the log.
    pub fn last_index(&self) -> Index {
        self.node.last().index + self.round.entries.len() as Index
    }

    /// Adds a command that the newest version accepts. A command that the protocol would refuse never enters the round.
    pub fn propose(&mut self, command: &Command, key: Option<KeyedCall>, waiting: Waiting) {
        self.add_to_round(command.to_payload(key), Some(command), false, waiting);
    }

    /// Adds a step of a restore in the same way.
    pub fn propose_step(&mut self, step: Payload, waiting: Waiting) {
        self.add_to_round(step, None, false, waiting);
    }

    /// Adds a record that clears away a half-done restore in the same way. No caller waits for it.
    pub fn propose_clearing(&mut self, payload: Payload) {
        self.add_to_round(payload, None, true, Waiting::Nobody);
    }

    /// The reason why the protocol would refuse this entry now, as the next record of the round.
    pub fn refusal(&self, entry: &Entry, clears_up: bool) -> Option<Refusal> {
        self.node.refusal(entry, clears_up, self.round.entries.len() as Index, self.round.bytes)
    }

    fn add_to_round(
        &mut self,
        payload: Payload,
        command: Option<&Command>,
        clears_up: bool,
        waiting: Waiting,
    ) {
        let entry = Entry::Client(payload);
        // The protocol is asked before the version grows: a record cannot be taken out of a version again, and the
        // calls behind it are judged by it. `propose_round` ends the replica if the protocol refuses all the same.
        if let Some(refusal) = self.refusal(&entry, clears_up) {
            return self.decided.push_back((waiting, Verdict::Refused(refusal)));
        }
        let position = Position::new(self.node.vote().promise.epoch, self.last_index() + 1);
        let stamp = self.node.stamp(self.now).unwrap_or_default();
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
        self.note_freed(position.index);
    }

    /// Notes the roles that this record frees. Their first waiters are next.
    fn note_freed(&mut self, index: Index) {
        let Some(effect) = self.versions.effect(index) else { return };
        for event in &effect.applied.events {
            if let LeaseEvent::RoleLost { role, .. } = event {
                self.freed.push(role.clone());
            }
        }
    }

    /// Asks for a round that starts now. The record at `at_least` must be committed, too.
    pub fn confirm(&mut self, waiting: Waiting, at_least: Index) {
        if mutant::is_on(Mutant::RenewUnconfirmed)
            && matches!(waiting, Waiting::Renew(_) | Waiting::Acquire(_))
        {
            return self.decided.push_back((waiting, Verdict::Readable { index: at_least }));
        }
        let request = self.pending.add(waiting);
        self.round.reads.push((request, at_least));
    }

    pub fn has_round(&self) -> bool {
        !self.round.entries.is_empty() || !self.round.reads.is_empty()
    }

    /// Whether the round has as many bytes as one batch should have.
    pub fn has_full_round(&self) -> bool {
        self.round.bytes >= BYTES_MOST
    }

    /// Takes what is gathered, for the protocol. The next record begins a new version.
    /// If a version grew into the next round, it could not become the committed state when this round is committed.
    pub fn take_round(&mut self) -> (Vec<Proposal>, Vec<(RequestId, Index)>) {
        self.versions.seal();
        let Round { entries, reads, .. } = std::mem::take(&mut self.round);
        (entries, reads)
    }

    /// Brings the newest version up to the log's end, because the protocol writes its own records, too. Returns false only if that is
    /// impossible; then the replica ends.
    pub fn look_ahead(&mut self) -> bool {
        if !self.round.entries.is_empty() {
            // The versions are ahead of the log by the records of this round.
            return !self.has_ended();
        }
        if let Err(error) = self.versions.follow(self.node.log()) {
            self.end(End::Unreadable { index: self.node.last().index, error });
        }
        !self.has_ended()
    }
}
