//! What time makes due: leases that nobody renews end by a record, and waits end by an answer.

use super::state::{Replica, Turn, Waiting};
use crate::leases::{Due, Outcome};
use crate::protocol::Verdict;
use crate::store::{Command, Judged, LeaseOperation, Operation};

impl Replica {
    pub(super) fn tick_leases(&mut self) {
        let now = self.now.mono;
        for over in self.roles.waiters.expired(now) {
            self.roles.add_turn(Turn::Acquire(over.ticket));
        }
        if now >= self.roles.leases.deadline() {
            let state = self.versions.newest();
            let due = self.roles.leases.due_within(now, |name| state.ends_with(name));
            self.propose_due(due);
        }
    }

    fn propose_due(&mut self, due: Due) {
        if due.is_empty() {
            return;
        }
        let Due { end, age, refresh } = due;
        let operation =
            if end.is_empty() { LeaseOperation::age(age, refresh) } else { LeaseOperation::end(end) };
        let command = Command::Single(Operation::Lease(operation.into()));
        let open = self.core.is_open() && self.look_ahead();
        if open && self.judge(&command, None) == Judged::Accept {
            self.roles.record += 1;
            self.propose(&command, None, Waiting::Leases(self.roles.record));
        } else {
            // Another record about them stands in the log already.
            self.roles.leases.settled(self.now.mono, Outcome::Refused);
        }
    }

    /// One of an epoch before says nothing about the record that is under way in this one.
    pub(super) fn leases_verdict(&mut self, record: u64, verdict: &Verdict) {
        if record != self.roles.record {
            return;
        }
        let outcome = match verdict {
            Verdict::Written { .. } => Outcome::Applied,
            Verdict::Refused(_) => Outcome::Refused,
            Verdict::Readable { .. } | Verdict::Done | Verdict::Unknown => Outcome::Unknown,
        };
        self.roles.leases.settled(self.now.mono, outcome);
    }
}
