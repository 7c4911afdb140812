//! A version is what one record wrote under a key: a value, or that the key was deleted.
//!
//! In a mergeable state a key has a set of versions. The current one is a row or a tombstone; the others lost to it in a merge and
//! are its rivals. Whoever writes the key knows all of them, and so replaces them all.

use std::cmp::Reverse;
use std::fmt::{self, Write};

use serde_json::value::RawValue;

use super::key::{Key, written};
use super::table::Row;
use crate::store::command::value_text_of;
use crate::store::encoding::{Fields, Hash, Mix};
use crate::types::{NodeId, Position, Text, WallTime};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    pub at: Position,
    /// JSON on one line; none is a deletion.
    pub value: Option<Text>,
}

/// That a row was deleted, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tombstone {
    pub at: Position,
}

impl Version {
    pub fn row(at: Position, value: Text) -> Version {
        Version { at, value: Some(value) }
    }

    pub fn deleted(at: Position) -> Version {
        Version { at, value: None }
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

    pub fn read(json: &RawValue) -> Option<Version> {
        let fields = Fields::read(json).ok()?;
        fields.only(&["at", "value", "deleted"]).ok()?;
        let at = serde_json::from_str::<&str>(fields.member("at")?.get()).ok()?.parse().ok()?;
        match (fields.member("value"), fields.member("deleted").map(RawValue::get)) {
            (Some(value), None) => Some(Version::row(at, value_text_of(value).ok()?)),
            (None, Some("true")) => Some(Version::deleted(at)),
            _ => None,
        }
    }

    pub fn from_entry(json: &str) -> Option<Version> {
        Version::read(serde_json::from_str(json).ok()?)
    }
}

impl Tombstone {
    pub fn entry(self) -> String {
        Version::deleted(self.at).entry()
    }

    pub fn from_entry(json: &str) -> Option<Tombstone> {
        let Version { at, value } = Version::from_entry(json)?;
        value.is_none().then_some(Tombstone { at })
    }
}

/// The winner first. It depends on nothing but what was written and where, so that it does not matter in which order
/// sides meet.
pub fn in_order_of_merit(key: &Key, version: &mut [Version]) {
    match key {
        Key::Conflict(_) => version.sort_by_key(|version| (version.value.is_none(), version.at)),
        // Whoever holds it now goes before whoever gave it back.
        Key::Role(_) | Key::Process(_) => {
            version.sort_by_key(|version| (version.value.is_none(), elder_first(version.at)));
        }
        _ => version.sort_by_key(|version| elder_first(version.at)),
    }
}

/// The elder's value wins; of one leader's, the newer one.
fn elder_first(at: Position) -> (NodeId, Reverse<u64>, Reverse<u64>) {
    (at.epoch.leader, Reverse(at.epoch.counter), Reverse(at.index))
}

impl Row for Version {
    const TABLE: &'static str = "rival";
}

impl Row for Tombstone {
    const TABLE: &'static str = "tomb";
}

impl Mix for Version {
    fn mix(&self, hash: &mut Hash) {
        self.at.mix(hash);
        hash.word(u64::from(self.value.is_some()));
        if let Some(value) = &self.value {
            value.mix(hash);
        }
    }
}

impl Mix for Tombstone {
    fn mix(&self, hash: &mut Hash) {
        self.at.mix(hash);
    }
}

/// An entry of the journal of merges: a value that was overridden, and the one that was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Where the merge stands that wrote this.
    pub at: Position,
    pub lost: Version,
    pub kept: Version,
    pub wall: WallTime,
}

impl Conflict {
    /// Without where it stands.
    pub fn value(&self) -> String {
        let mut text = String::from("{\"lost\":");
        let written = self.lost.write(&mut text).and_then(|()| text.write_str(",\"kept\":"));
        let written = written.and_then(|()| self.kept.write(&mut text));
        written
            .and_then(|()| write!(text, ",\"wall_us\":{}}}", self.wall.0))
            .expect("a string takes everything");
        text
    }

    pub fn entry(&self) -> String {
        written(self.at, &self.value())
    }

    pub fn read(at: Position, value: &str) -> Option<Conflict> {
        let value: &RawValue = serde_json::from_str(value).ok()?;
        let fields = Fields::read(value).ok()?;
        fields.only(&["lost", "kept", "wall_us"]).ok()?;
        let version = |name| Version::read(fields.member(name)?);
        let wall = fields.member("wall_us")?.get().parse().ok()?;
        Some(Conflict { at, lost: version("lost")?, kept: version("kept")?, wall: WallTime(wall) })
    }
}

impl Row for Conflict {
    const TABLE: &'static str = "conflict";
}

impl Mix for Conflict {
    fn mix(&self, hash: &mut Hash) {
        self.at.mix(hash);
        self.lost.mix(hash);
        self.kept.mix(hash);
        hash.word(self.wall.0);
    }
}
