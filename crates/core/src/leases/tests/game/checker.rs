//! Properties that hold in every game. The checker does not know how a game is played.

use std::collections::{BTreeMap, BTreeSet};

use crate::types::{LeaseName, Span, Time};

/// The longest time by which a lease may end late under a leader that lives: its record may be refused a few times. If the leader dies
/// before the record is decided, the next leader begins again.
const LATE: Span = Span::millis(1000);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// Its holder believes in a lease beyond the record that ended it.
    BelievedBeyondEnd { token: u64, until: Time, ended: Time },
    /// The lease went on for too long after it was last counted.
    EndedLate { token: u64, at: Time, latest: Time },
    /// The lease was aged less than half its ttl after it was counted.
    AgedEarly { token: u64, at: Time },
    /// A record names a token that does not hold what it names.
    WrongToken { name: LeaseName, token: u64 },
}

/// Times are the game's own; no node's clock shows them.
#[derive(Debug, Default)]
pub struct Checker {
    believed: BTreeMap<u64, Time>,
    ended: BTreeMap<u64, Time>,
    /// Tokens that were released or replaced: their holders know it, or are overruled.
    void: BTreeSet<u64>,
    /// The last time that a leader in charge counted the token, and the ttl.
    counted: BTreeMap<u64, (Time, Span)>,
    /// The time when each leader began to count again, and for how long no leader counted before that.
    terms: Vec<(Time, Span)>,
}

impl Checker {
    pub fn believes(&mut self, token: u64, until: Time) -> Result<(), Violation> {
        let believed = self.believed.entry(token).or_default();
        *believed = until.max(*believed);
        self.check_belief(token)
    }

    pub fn counted(&mut self, token: u64, now: Time, ttl: Span) {
        self.counted.insert(token, (now, ttl));
    }

    pub fn void(&mut self, token: u64) {
        self.void.insert(token);
    }

    pub fn term_begins(&mut self, now: Time, leaderless: Span) {
        self.terms.push((now, leaderless));
    }

    pub fn aged(&self, token: u64, now: Time) -> Result<(), Violation> {
        let (at, ttl) = self.counted[&token];
        let term = self.terms.last().map_or(at, |(begin, _)| *begin);
        match now < at.max(term) + Span(ttl.0 / 2) {
            true => Err(Violation::AgedEarly { token, at: now }),
            false => Ok(()),
        }
    }

    pub fn ended(&mut self, token: u64, now: Time) -> Result<(), Violation> {
        self.ended.entry(token).or_insert(now);
        self.check_belief(token)?;
        self.check_late(token, now)
    }

    /// The check holds for every lease that has not ended, too.
    pub fn check_late(&self, token: u64, now: Time) -> Result<(), Violation> {
        let (at, ttl) = self.counted[&token];
        let anew = self.terms.iter().filter(|(begin, _)| *begin > at);
        let latest = anew.fold(at + ttl + LATE, |latest, (_, leaderless)| latest + ttl + LATE + *leaderless);
        match now > latest {
            true => Err(Violation::EndedLate { token, at: now, latest }),
            false => Ok(()),
        }
    }

    fn check_belief(&self, token: u64) -> Result<(), Violation> {
        match (self.believed.get(&token), self.ended.get(&token)) {
            (Some(until), Some(ended)) if until > ended && !self.void.contains(&token) => {
                Err(Violation::BelievedBeyondEnd { token, until: *until, ended: *ended })
            }
            _ => Ok(()),
        }
    }
}
