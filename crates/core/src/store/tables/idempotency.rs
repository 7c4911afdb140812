//! The state remembers idempotency keys, so that a retry receives the first result and changes nothing (C16).
//!
//! A call that changed nothing is not remembered. The table keeps the part of an answer that the retry itself does not contain:
//! the position of the record, and which documents were new. Keys expire by the cluster time of the records (P17), a few with
//! each record.

use std::fmt::Write;

use imbl::{OrdMap, OrdSet};
use serde::Deserialize;

use super::table::{Row, Table};
use crate::protocol::mutant::{self, Mutant};
use crate::store::command::Created;
use crate::store::encoding::{CALLS_KEPT, CALLS_MOST, FORGOTTEN_MOST, Hash, Mix};
use crate::types::{KeyedCall, Position, Span};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remembered {
    pub at: Position,
    pub body: u64,
    pub created: Created,
    /// The caller, as a short hash; zero if it is not known.
    who: u32,
    /// The cluster time of its record.
    since: Span,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdempotencyKeys {
    table: Table<u128, Remembered>,
    /// The calls by age: a record adds at most one call, and later records are not older.
    by_age: OrdMap<Age, u128>,
    /// The calls by caller, and the number of calls of each caller.
    by_owner: OrdMap<(u32, Age), u128>,
    owners: OrdMap<u32, usize>,
    by_count: OrdSet<(usize, u32)>,
}

/// The cluster time and the position at which a call was carried out. Calls continue on each side of a split; this order
/// covers the calls of all sides.
pub type Age = (Span, Position);

impl IdempotencyKeys {
    pub fn table(&self) -> &Table<u128, Remembered> {
        &self.table
    }

    pub fn table_mut(&mut self) -> &mut Table<u128, Remembered> {
        &mut self.table
    }

    pub fn get(&self, key: u128) -> Option<&Remembered> {
        self.table.get(key)
    }

    pub fn remember(&mut self, call: KeyedCall, at: Position, since: Span, created: Created) {
        self.add(call.key, Remembered { at, body: call.body, created, who: call.who, since });
    }

    /// If the table is full, drops the oldest calls of the callers with the most calls, so that there is room for one more. It
    /// drops a few calls with each record (P52), and returns them.
    pub fn make_room(&mut self, most: usize) -> Vec<(Age, u128)> {
        let mut dropped = Vec::new();
        while self.table.len() >= most && dropped.len() < FORGOTTEN_MOST {
            let Some((age, key)) = self.oldest_of_the_greatest() else { break };
            self.forget(age, key);
            dropped.push((age, key));
        }
        dropped
    }

    fn oldest_of_the_greatest(&self) -> Option<(Age, u128)> {
        if mutant::is_on(Mutant::OldestKeysGo) {
            return self.oldest();
        }
        // If several callers have the most calls, the one with the greater hash loses its oldest: every node drops the
        // same (P52).
        let (_, owner) = self.by_count.get_max()?;
        let ((_, age), key) = self.by_owner.range((*owner, Age::default())..).next()?;
        Some((*age, *key))
    }

    /// Returns false if that key or that record is already there.
    pub fn add(&mut self, key: u128, call: Remembered) -> bool {
        let (age, who) = (call.age(), call.who);
        let replaced = self.table.insert(key, call);
        if let Some(before) = &replaced {
            self.by_age.remove(&before.age());
            self.disown(before.who, before.age());
        }
        self.own(who, age, key);
        // A loader refuses a snapshot in which a key, or a record, remembers two calls.
        self.by_age.insert(age, key).is_none() && replaced.is_none()
    }

    fn own(&mut self, who: u32, age: Age, key: u128) {
        if self.by_owner.insert((who, age), key).is_none() {
            self.count(who, |count| count + 1);
        }
    }

    fn disown(&mut self, who: u32, age: Age) {
        if self.by_owner.remove(&(who, age)).is_some() {
            self.count(who, |count| count - 1);
        }
    }

    fn count(&mut self, who: u32, change: impl Fn(usize) -> usize) {
        let before = self.owners.get(&who).copied().unwrap_or_default();
        self.by_count.remove(&(before, who));
        match change(before) {
            0 => drop(self.owners.remove(&who)),
            count => {
                self.owners.insert(who, count);
                self.by_count.insert((count, who));
            }
        }
    }

    /// Drops some of the calls that are old enough, and returns them.
    pub fn forget_old(&mut self, now: Span) -> Vec<(Age, u128)> {
        let mut forgotten = Vec::new();
        while let Some((age, key)) = self.oldest().filter(|(_, key)| self.is_old(*key, now)) {
            if forgotten.len() == FORGOTTEN_MOST {
                break;
            }
            self.forget(age, key);
            forgotten.push((age, key));
        }
        forgotten
    }

    /// Drops the calls that another side has dropped.
    pub fn forget_upto(&mut self, upto: Age) -> Vec<(Age, u128)> {
        let mut forgotten = Vec::new();
        while let Some((age, key)) = self.oldest().filter(|(age, _)| *age <= upto) {
            self.forget(age, key);
            forgotten.push((age, key));
        }
        forgotten
    }

    fn forget(&mut self, age: Age, key: u128) {
        self.by_age.remove(&age);
        if let Some(call) = self.table.remove(key) {
            self.disown(call.who, age);
        }
    }

    /// Whether, in available mode, the table has no room for another call of this caller at `now`: it is full, or the caller
    /// has half as many calls as the table may have. In this mode no room can be made, because the other sides would have to
    /// learn which calls one side drops. A full table makes room with the next record if its oldest call is old enough, so a
    /// quiet cluster does not stay full.
    pub fn are_full_for(&self, who: u32, now: Span) -> bool {
        let oldest = self.oldest();
        let full = self.table.len() >= CALLS_MOST && !oldest.is_some_and(|(_, key)| self.is_old(key, now));
        full || self.owners.get(&who).is_some_and(|count| *count >= CALLS_MOST / 2)
    }

    fn oldest(&self) -> Option<(Age, u128)> {
        self.by_age.get_min().copied()
    }

    fn is_old(&self, key: u128, now: Span) -> bool {
        self.table.get(key).is_none_or(|call| call.since + CALLS_KEPT <= now)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry<'a> {
    at: &'a str,
    body: &'a str,
    since_us: u64,
    #[serde(default)]
    created: Vec<u16>,
    #[serde(default)]
    who: u32,
}

impl Remembered {
    pub fn age(&self) -> Age {
        (self.since, self.at)
    }

    pub fn entry(&self) -> String {
        let Remembered { at, body, created, who, since } = self;
        let mut text = format!("{{\"at\":\"{at}\",\"body\":\"{body:016x}\",\"since_us\":{}", since.0);
        if let Some(created) = created {
            write!(text, ",\"created\":{created:?}").expect("writing to a String cannot fail");
        }
        if *who != 0 {
            write!(text, ",\"who\":{who}").expect("writing to a String cannot fail");
        }
        text.push('}');
        text
    }

    pub fn from_entry(json: &str) -> Option<Remembered> {
        let Entry { at, body, since_us, created, who } = serde_json::from_str(json).ok()?;
        Some(Remembered {
            at: at.parse().ok()?,
            body: u64::from_str_radix(body, 16).ok()?,
            created: (!created.is_empty()).then(|| created.into()),
            who,
            since: Span(since_us),
        })
    }
}

impl Row for Remembered {
    const TABLE: &'static str = "call";

    fn weight(&self) -> usize {
        2 * self.created.as_ref().map_or(0, |created| created.len())
    }
}

impl Mix for Remembered {
    fn mix(&self, hash: &mut Hash) {
        self.at.mix(hash);
        hash.word(self.body);
        hash.word(self.since.0);
        let created = self.created.as_deref().unwrap_or_default();
        hash.word(created.len() as u64);
        created.iter().for_each(|number| hash.word(u64::from(*number)));
        // A call of an unknown caller hashes as it did before callers were remembered.
        if self.who != 0 {
            hash.word(u64::from(self.who));
        }
    }
}
