//! What time makes due: leases that nobody renews end by a record, and waits end by an answer.

use super::super::clock;
use super::super::engine::Engine;
use super::super::pending;
use super::Turn;
use crate::leases::{Due, Outcome};
use crate::protocol::Verdict;
use crate::store::{Command, Judged, LeaseOperation, Operation};
use crate::types::Time;

impl Engine {
    pub fn tick_leases(&mut self, now: Time) {
        if now < self.leasing.deadline() {
            return;
        }
        let over = self.leasing.waiters.expired(now);
        self.leasing.turns.extend(over.into_iter().map(|waiter| Turn::Acquire(waiter.ticket)));
        if now >= self.leasing.leases.deadline() {
            let due = self.leasing.leases.due(now);
            self.propose_due(due);
        }
        self.settle_leases();
    }

    fn propose_due(&mut self, due: Due) {
        if due.is_empty() {
            return;
        }
        let Due { end, age, young } = due;
        let operation = match end.is_empty() {
            false => LeaseOperation::End { leases: end },
            true => LeaseOperation::Age { aged: age, renewed: young },
        };
        let command = Command::Single(Operation::Lease(operation.into()));
        let now = clock::now();
        let stamp = self.core.stamp(now).unwrap_or_default();
        let open = self.core.is_open() && self.look_ahead();
        match open && self.states.newest().judge(&command, None, stamp) == Judged::Accept {
            true => {
                self.leasing.record += 1;
                let call = pending::Call::Leases(self.leasing.record);
                self.propose(command.to_payload(None), call);
            }
            // Another record about them stands in the log already.
            false => self.leasing.leases.settled(now.mono, Outcome::Refused),
        }
    }

    /// One of an epoch before says nothing about the record that is under way in this one.
    pub fn leases_verdict(&mut self, record: u64, verdict: &Verdict) {
        if record != self.leasing.record {
            return;
        }
        let outcome = match verdict {
            Verdict::Written { .. } => Outcome::Applied,
            Verdict::Refused(_) => Outcome::Refused,
            Verdict::Readable { .. } | Verdict::Done | Verdict::Unknown => Outcome::Unknown,
        };
        self.leasing.leases.settled(clock::now().mono, outcome);
    }
}
