//! What was written under a key by one record: a value, or that it was deleted.
//!
//! Where sides are told apart, a key has a set of these. The current one is a row or a tomb; the others lost to it in a merge
//! and are its rivals. Whoever writes the key knows all of them, and so replaces them all.

use std::cmp::Reverse;
use std::fmt::{self, Write};

use serde_json::value::RawValue;

use super::fields::Fields;
use super::hash::{Hash, Mix};
use super::key::Key;
use super::parse::value_text_of;
use super::table::Row;
use crate::types::{NodeId, Position, Text};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub at: Position,
    /// JSON on one line; none is a deletion.
    pub value: Option<Text>,
}

/// That a row was deleted, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tomb {
    pub at: Position,
}

impl Held {
    pub fn row(at: Position, value: Text) -> Held {
        Held { at, value: Some(value) }
    }

    pub fn deleted(at: Position) -> Held {
        Held { at, value: None }
    }

    /// `{"at","value"}` or `{"at","deleted":true}`: a document may well be `null`.
    pub fn write(&self, out: &mut dyn Write) -> fmt::Result {
        match &self.value {
            Some(value) => write!(out, "{{\"at\":\"{}\",\"value\":{value}}}", self.at),
            None => write!(out, "{{\"at\":\"{}\",\"deleted\":true}}", self.at),
        }
    }

    pub fn entry(&self) -> String {
        let mut text = String::new();
        self.write(&mut text).expect("a string takes everything");
        text
    }

    pub fn read(json: &RawValue) -> Option<Held> {
        let fields = Fields::read(json).ok()?;
        fields.only(&["at", "value", "deleted"]).ok()?;
        let at = serde_json::from_str::<&str>(fields.member("at")?.get()).ok()?.parse().ok()?;
        match (fields.member("value"), fields.member("deleted").map(RawValue::get)) {
            (Some(value), None) => Some(Held::row(at, value_text_of(value).ok()?)),
            (None, Some("true")) => Some(Held::deleted(at)),
            _ => None,
        }
    }

    pub fn from_entry(json: &str) -> Option<Held> {
        Held::read(serde_json::from_str(json).ok()?)
    }
}

impl Tomb {
    pub fn entry(self) -> String {
        Held::deleted(self.at).entry()
    }

    pub fn from_entry(json: &str) -> Option<Tomb> {
        let Held { at, value } = Held::from_entry(json)?;
        value.is_none().then_some(Tomb { at })
    }
}

/// The winner first. It depends on nothing but what was written and where, so that it does not matter in which order
/// sides meet.
pub fn in_order_of_merit(key: &Key, held: &mut [Held]) {
    match key {
        Key::Conflict(_) => held.sort_by_key(|held| (held.value.is_none(), held.at)),
        // Whoever holds it now goes before whoever gave it back.
        Key::Role(_) | Key::Process(_) => {
            held.sort_by_key(|held| (held.value.is_none(), elder_first(held.at)));
        }
        _ => held.sort_by_key(|held| elder_first(held.at)),
    }
}

/// The elder's value wins; of one leader's, the newer one.
fn elder_first(at: Position) -> (NodeId, Reverse<u64>, Reverse<u64>) {
    (at.epoch.leader, Reverse(at.epoch.counter), Reverse(at.index))
}

impl Row for Held {
    const TABLE: &'static str = "rival";
}

impl Row for Tomb {
    const TABLE: &'static str = "tomb";
}

impl Mix for Held {
    fn mix(&self, hash: &mut Hash) {
        self.at.mix(hash);
        hash.word(u64::from(self.value.is_some()));
        if let Some(value) = &self.value {
            value.mix(hash);
        }
    }
}

impl Mix for Tomb {
    fn mix(&self, hash: &mut Hash) {
        self.at.mix(hash);
    }
}
