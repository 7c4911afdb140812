//! C14: a role that was granted to a waiter whose caller had hung up is given back.

use std::collections::{BTreeMap, BTreeSet};

use super::{Check, ensure};

/// The time for one record, under a leader that can write.
const GIVEN_BACK: u64 = 300_000;

#[derive(Debug, Default)]
pub struct Returned {
    owed: BTreeMap<u64, u64>,
    /// Tokens whose holders know of them, or that are over. A leader that has slept learns of a grant when
    /// others have ended it.
    settled: BTreeSet<u64>,
    /// The time at which the last restore was committed. The leader counts all leases from the start once it has applied the
    /// records that were committed with it, grants among them.
    restored_at: Option<u64>,
}

impl Returned {
    pub fn owes(&mut self, now: u64, token: u64) {
        if !self.settled.contains(&token) && self.restored_at != Some(now) {
            self.owed.insert(token, 0);
        }
    }

    pub fn ended(&mut self, token: u64) {
        self.settled.insert(token);
        self.owed.remove(&token);
    }

    /// The same instance asked in another way, and learned that it holds the role.
    pub fn told(&mut self, token: u64) {
        self.settled.insert(token);
        self.owed.remove(&token);
    }

    /// The next leader does not know of the grant: it ends by its ttl.
    pub fn leader_changed(&mut self) {
        self.owed.clear();
    }

    pub fn restored(&mut self, now: u64) {
        self.owed.clear();
        self.restored_at = Some(now);
    }

    pub fn passed(&mut self, us: u64) -> Check {
        self.owed.values_mut().for_each(|passed| *passed += us);
        let kept = self.owed.iter().find(|(_, passed)| **passed > GIVEN_BACK);
        ensure(kept.is_none(), "C14 nothing for the gone", || format!("{kept:?}"))
    }
}
