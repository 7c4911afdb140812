//! C14: a role that was granted to a waiter whose caller had hung up is given back.

use std::collections::{BTreeMap, BTreeSet};

use super::{Check, ensure};

/// One record, under a leader that can write.
const GIVEN_BACK: u64 = 300_000;

#[derive(Debug, Default)]
pub struct Returned {
    owed: BTreeMap<u64, u64>,
    /// Their holders know of them, or they are over: a leader that has slept learns of the grant when others have ended it.
    settled: BTreeSet<u64>,
}

impl Returned {
    pub fn owes(&mut self, token: u64) {
        if !self.settled.contains(&token) {
            self.owed.insert(token, 0);
        }
    }

    pub fn ended(&mut self, token: u64) {
        self.settled.insert(token);
        self.owed.remove(&token);
    }

    /// The same instance asked by another way, and was told that it has it.
    pub fn told(&mut self, token: u64) {
        self.settled.insert(token);
        self.owed.remove(&token);
    }

    /// Whoever leads next does not know: it ends by its ttl.
    pub fn leader_changed(&mut self) {
        self.owed.clear();
    }

    pub fn passed(&mut self, us: u64) -> Check {
        self.owed.values_mut().for_each(|passed| *passed += us);
        let kept = self.owed.iter().find(|(_, passed)| **passed > GIVEN_BACK);
        ensure(kept.is_none(), "C14 nothing for the gone", || format!("{kept:?}"))
    }
}
