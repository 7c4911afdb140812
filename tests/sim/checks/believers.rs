//! I13: no two holders believe in one role at the same instant, and no holder believes in a role that the log
//! has given to another. The only exception is a holder that an operator has overruled, until it hears of
//! that.

use std::collections::{BTreeMap, BTreeSet};

use eldest::types::Text;

use super::{Check, ensure};

const NAME: &str = "I13 one holder believes";

#[derive(Clone, Debug)]
struct Belief {
    role: Text,
    token: u64,
    /// In true time.
    until: u64,
}

/// Beliefs begin when an answer arrives, and grants when a record is committed, so it is enough to look at
/// these instants.
#[derive(Debug, Default)]
pub struct Believers {
    /// Keyed by contender.
    beliefs: BTreeMap<usize, Belief>,
    /// For each role, the token that the log has given out last and not taken back.
    holders: BTreeMap<Text, u64>,
    overruled: BTreeSet<u64>,
}

impl Believers {
    pub fn believes(&mut self, now: u64, who: usize, role: &Text, token: u64, until: u64) -> Check {
        if self.overruled.contains(&token) {
            return Ok(());
        }
        self.beliefs.insert(who, Belief { role: role.clone(), token, until });
        self.alone(now, role)
    }

    /// The holder has lost the connection that it relies on.
    pub fn shorten(&mut self, who: usize, until: u64) {
        if let Some(belief) = self.beliefs.get_mut(&who) {
            belief.until = belief.until.min(until);
        }
    }

    /// The holder has released the role, has learned that it lost it, or is dead.
    pub fn forget(&mut self, who: usize) {
        self.beliefs.remove(&who);
    }

    pub fn granted(&mut self, now: u64, role: &Text, token: u64) -> Check {
        self.holders.insert(role.clone(), token);
        self.alone(now, role)
    }

    pub fn ended(&mut self, role: &Text, token: u64, overruled: bool) {
        self.holders.remove(role);
        if overruled {
            self.overruled.insert(token);
            self.beliefs.retain(|_, belief| belief.token != token);
        }
    }

    pub fn is_overruled(&self, token: u64) -> bool {
        self.overruled.contains(&token)
    }

    pub fn believe_in(&self, now: u64, token: u64) -> bool {
        self.beliefs.values().any(|belief| belief.token == token && now < belief.until)
    }

    fn alone(&self, now: u64, role: &Text) -> Check {
        let here = self.beliefs.iter().filter(|(_, belief)| belief.role == *role && now < belief.until);
        let here: Vec<_> = here.collect();
        ensure(here.len() <= 1, NAME, || format!("of {role}: {here:?}"))?;
        let holder = self.holders.get(role);
        let right = here.iter().all(|(_, belief)| holder.is_none_or(|holder| *holder == belief.token));
        ensure(right, NAME, || format!("{role} is {holder:?} by the log; {here:?}"))
    }
}
