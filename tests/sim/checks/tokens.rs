//! P42: no token is given twice, no matter which sides give them. Within a side, which is one leader in one
//! epoch, I13 holds: no holder believes at the same time as another, or in a role that the side has given to
//! another.

use std::collections::BTreeMap;

use eldest::types::{Epoch, Position, Text};

use super::{Check, ensure};

#[derive(Clone, Debug)]
struct Belief {
    role: Text,
    token: u64,
    side: Epoch,
    until: u64,
}

#[derive(Debug, Default)]
pub struct Tokens {
    /// The record that gave each token, and the instance that got it.
    given: BTreeMap<u64, (Position, Text)>,
    beliefs: BTreeMap<usize, Belief>,
}

impl Tokens {
    pub fn instance(&self, token: u64) -> Option<Text> {
        self.given.get(&token).map(|(_, instance)| instance.clone())
    }

    pub fn forget(&mut self, who: usize) {
        self.beliefs.remove(&who);
    }

    pub fn granted(&mut self, now: u64, role: &Text, instance: &Text, token: u64, at: Position) -> Check {
        let first = !self.given.contains_key(&token);
        let known = self.given.entry(token).or_insert_with(|| (at, instance.clone()));
        ensure(known.0 == at, "P42 no token is given twice", || {
            format!("{token} of {role} is given at {at}, and was at {}", known.0)
        })?;
        // A node that applies it later adds nothing new.
        if first { self.alone(now, role, at.epoch, token) } else { Ok(()) }
    }

    pub fn believes(
        &mut self,
        now: u64,
        who: usize,
        role: &Text,
        token: u64,
        side: Epoch,
        until: u64,
    ) -> Check {
        self.beliefs.insert(who, Belief { role: role.clone(), token, side, until });
        self.alone(now, role, side, token)
    }

    fn alone(&self, now: u64, role: &Text, side: Epoch, token: u64) -> Check {
        let there = |belief: &&Belief| belief.role == *role && belief.side == side && now < belief.until;
        let other = self.beliefs.values().filter(there).find(|belief| belief.token != token);
        ensure(other.is_none(), "I13 one holder of a side believes", || {
            format!("{token} of {role} in {side}, beside {other:?}")
        })
    }
}
