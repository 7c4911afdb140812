//! What time makes due (`src/driver/leasing/ends.rs`).

use eldest::leases::{Due, Outcome};
use eldest::protocol::Verdict;
use eldest::store::{Judged, LeaseOperation};

use super::driver::{Pending, Turn, command};
use crate::checks::Check;
use crate::world::World;

impl World {
    pub fn tick_leases(&mut self, node: usize) -> Check {
        let now = self.clock_of(node).mono;
        let leasing = &mut self.hosts[node].leasing;
        if self.lessees.is_none() || now < leasing.deadline() {
            return Ok(());
        }
        let over = leasing.waiters.expired(now);
        leasing.turns.extend(over.into_iter().map(|waiter| Turn::Acquire(waiter.ticket)));
        if now >= leasing.leases.deadline() {
            let due = leasing.leases.due(now);
            self.propose_due(node, due)?;
        }
        self.settle_leases(node)?;
        self.schedule_tick(node);
        Ok(())
    }

    fn propose_due(&mut self, node: usize, due: Due) -> Check {
        if due.is_empty() {
            return Ok(());
        }
        self.note(|| format!("n{} is to say {due:?}", node + 1));
        let Due { end, age, young } = due;
        let command = command(match end.is_empty() {
            false => LeaseOperation::End { leases: end },
            true => LeaseOperation::Age { aged: age, renewed: young },
        });
        let now = self.clock_of(node);
        self.look_ahead(node);
        let stamp = self.hosts[node].core.as_ref().and_then(|core| core.stamp(now)).unwrap_or_default();
        match self.is_open(node) && self.newest(node).judge(&command, None, stamp) == Judged::Accept {
            true => {
                let record = &mut self.hosts[node].leasing.record;
                *record += 1;
                let call = Pending::Leases(*record);
                self.propose_lease(node, command.to_payload(None), call)
            }
            // Another record about them stands in the log already.
            false => {
                self.hosts[node].leasing.leases.settled(now.mono, Outcome::Refused);
                Ok(())
            }
        }
    }

    /// One of an epoch before says nothing about the record that is under way in this one.
    pub fn leases_verdict(&mut self, node: usize, record: u64, verdict: &Verdict) {
        let now = self.clock_of(node).mono;
        self.note(|| format!("n{} learns of its record {record}: {verdict:?}", node + 1));
        let leasing = &mut self.hosts[node].leasing;
        if record != leasing.record {
            return;
        }
        let outcome = match verdict {
            Verdict::Written { .. } => Outcome::Applied,
            Verdict::Refused(_) => Outcome::Refused,
            Verdict::Readable { .. } | Verdict::Done | Verdict::Unknown => Outcome::Unknown,
        };
        leasing.leases.settled(now, outcome);
    }
}
