//! The state remembers idempotency keys, so that a retry is told the first result and changes nothing (C16).
//!
//! Only a call that changed something is remembered. Of its answer only what the retry itself does not tell is kept: where the
//! record stands, and which documents were new. Keys expire by the cluster time of the records (P17), a few at each record.

use std::fmt::Write;

use imbl::OrdMap;
use serde::Deserialize;

use super::table::{Row, Table};
use crate::store::command::Created;
use crate::store::encoding::{CALLS_KEPT, CALLS_MOST, FORGOTTEN_MOST, Hash, Mix};
use crate::types::{Call, Position, Span};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remembered {
    pub at: Position,
    pub body: u64,
    pub created: Created,
    /// The cluster time of its record.
    since: Span,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdempotencyKeys {
    table: Table<u128, Remembered>,
    /// The same by age: a record remembers one call at most, and later records are not older.
    by_age: OrdMap<Age, u128>,
}

/// When a call was carried out. On each side of a split calls go on; this orders all of them.
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

    pub fn remember(&mut self, call: Call, at: Position, since: Span, created: Created) {
        self.add(call.key, Remembered { at, body: call.body, created, since });
    }

    /// False if that key or that record is there already.
    pub fn add(&mut self, key: u128, call: Remembered) -> bool {
        let age = call.age();
        let replaced = self.table.insert(key, call);
        if let Some(before) = &replaced {
            self.by_age.remove(&before.age());
        }
        self.by_age.insert(age, key).is_none() && replaced.is_none()
    }

    /// Forgets some of the calls that are old enough, and says which.
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

    /// Forgets what another side has forgotten.
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
        self.table.remove(key);
    }

    /// Whether there is no room for another by `now`. A full table makes room with the next record if its oldest call is
    /// old enough, so that a quiet cluster does not stay full.
    pub fn are_full(&self, now: Span) -> bool {
        let oldest = self.oldest();
        self.table.len() >= CALLS_MOST && !oldest.is_some_and(|(_, key)| self.is_old(key, now))
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
}

impl Remembered {
    pub fn age(&self) -> Age {
        (self.since, self.at)
    }

    pub fn entry(&self) -> String {
        let Remembered { at, body, created, since } = self;
        let mut text = format!("{{\"at\":\"{at}\",\"body\":\"{body:016x}\",\"since_us\":{}", since.0);
        if let Some(created) = created {
            write!(text, ",\"created\":{created:?}").expect("a string takes everything");
        }
        text.push('}');
        text
    }

    pub fn from_entry(json: &str) -> Option<Remembered> {
        let Entry { at, body, since_us, created } = serde_json::from_str(json).ok()?;
        Some(Remembered {
            at: at.parse().ok()?,
            body: u64::from_str_radix(body, 16).ok()?,
            created: (!created.is_empty()).then(|| created.into()),
            since: Span(since_us),
        })
    }
}

impl Row for Remembered {
    const TABLE: &'static str = "call";
}

impl Mix for Remembered {
    fn mix(&self, hash: &mut Hash) {
        self.at.mix(hash);
        hash.word(self.body);
        hash.word(self.since.0);
        let created = self.created.as_deref().unwrap_or_default();
        hash.word(created.len() as u64);
        created.iter().for_each(|number| hash.word(u64::from(*number)));
    }
}
