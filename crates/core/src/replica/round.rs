//! A round: the records and questions of one input, judged one after the other and given to the protocol together.

use super::answer::Denied;
use super::io::End;
use super::state::{Replica, Round, Waiting};
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::{Input, Proposal, Verdict};
use crate::store::Command;
use crate::types::{Call, Entry, Index, Payload, Position, Record};

/// Records of one round, in bytes: so much is copied and sent as one batch before the next begins.
const BYTES_MOST: usize = 1 << 20;

impl Replica {
    /// The index that the last record of the log has once this round is in it.
    pub(super) fn last_index(&self) -> Index {
        self.core.last().index + self.round.entries.len() as Index
    }

    /// Adds a command that the newest version accepts. What the protocol would refuse never enters the round.
    pub(super) fn propose(&mut self, command: &Command, key: Option<Call>, waiting: Waiting) {
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
