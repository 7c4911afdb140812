//! C14: a lease that is not renewed ends in time. The time is its ttl and a second, and one ttl for each
//! change of leader, counted while a leader can write. A role that has become free goes to the next in its
//! waiter queue.

use std::collections::BTreeMap;

use eldest::types::{LeaseName, Text};

use super::{Check, ensure};

/// The time for a record to become due, be written and be committed; also what a disturbance may cost beyond
/// its own duration.
const SLACK: u64 = 1_000_000;

/// The waiter queue moves with the record that frees the role.
const MOVES: u64 = 500_000;

#[derive(Clone, Debug)]
struct Due {
    name: LeaseName,
    ttl: u64,
    used: u64,
    allowed: u64,
}

#[derive(Debug, Default)]
pub struct Late {
    leases: BTreeMap<u64, Due>,
    waiting: BTreeMap<Text, u64>,
}

impl Late {
    /// The lease was granted or renewed just now.
    pub fn sign(&mut self, name: &LeaseName, token: u64, ttl: u64) {
        // Clocks differ by a hundredth.
        let allowed = ttl + ttl / 100 + SLACK;
        self.leases.insert(token, Due { name: name.clone(), ttl, used: 0, allowed });
    }

    /// A late answer does not bring back a lease that has ended.
    pub fn renewed(&mut self, token: u64) {
        if let Some(Due { name, ttl, .. }) = self.leases.get(&token).cloned() {
            self.sign(&name, token, ttl);
        }
    }

    pub fn ended(&mut self, token: u64) {
        self.leases.remove(&token);
    }

    pub fn leader_changed(&mut self) {
        self.leases.values_mut().for_each(|due| due.allowed += due.ttl);
    }

    pub fn pardon(&mut self) {
        self.leases.values_mut().for_each(|due| due.allowed += SLACK);
        self.waiting.clear();
    }

    /// This much time has passed under a leader that can write.
    pub fn passed(&mut self, us: u64) -> Check {
        self.leases.values_mut().for_each(|due| due.used += us);
        let late = self.leases.iter().find(|(_, due)| due.used > due.allowed);
        ensure(late.is_none(), "C14 ends in time", || format!("{late:?}"))
    }

    /// The role is free by the log; `waiting` says whether a contender waits for it.
    pub fn waits(&mut self, role: &Text, waiting: bool, us: u64) -> Check {
        let waited = self.waiting.entry(role.clone()).or_default();
        *waited = if waiting { *waited + us } else { 0 };
        ensure(*waited < MOVES, "C14 the line moves", || format!("{role} is free, and somebody waits for it"))
    }

    pub fn is_empty(&self) -> bool {
        self.leases.is_empty()
    }
}
