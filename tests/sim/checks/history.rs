//! The true history: every record that any node has applied, what it changed, and what was included in the
//! state that it was applied to. The checkers of available mode judge by this history, not by any node's
//! vector.

use std::collections::{BTreeMap, BTreeSet};

use eldest::store::Key;
use eldest::types::{Epoch, Index, NodeId, Position};

use super::{Check, ensure};

/// A set of records, by their numbers in the history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known(Vec<u64>);

/// The write of a record under one key: an entry's text, or nothing for a delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub key: Key,
    pub entry: Option<String>,
}

#[derive(Clone, Debug)]
pub struct Fact {
    pub at: Position,
    /// The records in the state that this one was applied to.
    pub knew: Known,
    pub changes: Vec<Change>,
    /// Its client has an acknowledgement.
    pub acknowledged: bool,
    /// The only disk that held it was wiped.
    pub gone: bool,
}

#[derive(Debug, Default)]
pub struct History {
    pub facts: Vec<Fact>,
    numbers: BTreeMap<Position, usize>,
    by_key: BTreeMap<Key, Vec<usize>>,
    /// Values that lost in conflicts that an operator has seen and removed.
    pub dropped: BTreeSet<Position>,
}

/// One of several writes under a key that did not know of each other.
#[derive(Clone, Copy, Debug)]
pub struct Rival<'a> {
    pub at: Position,
    pub entry: Option<&'a str>,
}

impl Known {
    pub fn holds(&self, number: usize) -> bool {
        self.0.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    pub fn add(&mut self, number: usize) {
        if self.0.len() <= number / 64 {
            self.0.resize(number / 64 + 1, 0);
        }
        self.0[number / 64] |= 1 << (number % 64);
    }

    pub fn join(&mut self, other: &Known) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word |= other);
    }

    /// The numbers that are in this set and not in the other.
    pub fn beyond(&self, other: &Known) -> Vec<usize> {
        (0..self.0.len() * 64).filter(|number| self.holds(*number) && !other.holds(*number)).collect()
    }
}

impl Rival<'_> {
    /// The value without the position that it was written at.
    pub fn value(&self) -> Option<&str> {
        self.entry.map(|entry| entry.split_once("\"value\":").map_or(entry, |(_, value)| value))
    }

    /// The order in which rivals win (C21): the least first.
    fn rank(&self) -> (NodeId, std::cmp::Reverse<(u64, Index)>) {
        let Epoch { counter, leader } = self.at.epoch;
        (leader, std::cmp::Reverse((counter, self.at.index)))
    }
}

impl History {
    pub fn number(&self, at: Position) -> Option<usize> {
        self.numbers.get(&at).copied()
    }

    /// A record is applied. The first time, it becomes part of the history; on every other node it must have
    /// the same effect.
    pub fn applied(&mut self, node: NodeId, at: Position, knew: &Known, changes: Vec<Change>) -> Check {
        if let Some(number) = self.number(at) {
            let fact = &self.facts[number];
            let same = fact.changes == changes && fact.knew == *knew;
            ensure(!knew.holds(number), "I7 applied once", || format!("{node} applies {at} again"))?;
            return ensure(same, "I5 same position, same state", || {
                let (more, less) = (knew.beyond(&fact.knew), fact.knew.beyond(knew));
                format!("{node} applies {at} to a state with {more:?} more and {less:?} less: {changes:?}")
            });
        }
        let number = self.facts.len();
        self.numbers.insert(at, number);
        for change in &changes {
            self.by_key.entry(change.key.clone()).or_default().push(number);
        }
        self.facts.push(Fact { at, knew: knew.clone(), changes, acknowledged: false, gone: false });
        Ok(())
    }

    /// The records that a state at this position includes, or `None` if no record stands there.
    pub fn knew_after(&self, at: Position) -> Option<Known> {
        let number = self.number(at)?;
        let mut known = self.facts[number].knew.clone();
        known.add(number);
        Some(known)
    }

    pub fn acknowledged(&mut self, at: Position) -> Check {
        let number = self.number(at);
        ensure(number.is_some(), "I9 acknowledged means applied", || format!("{at}"))?;
        self.facts[number.unwrap_or_default()].acknowledged = true;
        Ok(())
    }

    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.by_key.keys()
    }

    /// The writes under a key that no other known write has superseded, the winner first.
    pub fn rivals(&self, key: &Key, known: &Known) -> Vec<Rival<'_>> {
        let all = self.by_key.get(key).map_or(&[][..], Vec::as_slice);
        let here: Vec<usize> = all.iter().copied().filter(|number| known.holds(*number)).collect();
        let superseded = |number: usize| here.iter().any(|other| self.facts[*other].knew.holds(number));
        let mut rivals: Vec<Rival<'_>> =
            here.iter().filter(|number| !superseded(**number)).filter_map(|n| self.rival(*n, key)).collect();
        // A revoked token stays revoked, no matter what rank its rivals have (P56).
        let is_back = |rival: &Rival| matches!(key, Key::Access(_)) && rival.entry.is_some();
        rivals.sort_by_key(|rival| (is_back(rival), rival.rank()));
        rivals
    }

    fn rival(&self, number: usize, key: &Key) -> Option<Rival<'_>> {
        let fact = &self.facts[number];
        let change = fact.changes.iter().find(|change| change.key == *key)?;
        Some(Rival { at: fact.at, entry: change.entry.as_deref() })
    }

    /// A disk is wiped: records that no other disk holds are gone, and no promise is broken by that.
    pub fn lost_unless(&mut self, held: impl Fn(usize, Position) -> bool) {
        for (number, fact) in self.facts.iter_mut().enumerate() {
            fact.gone |= !held(number, fact.at);
        }
    }
}
