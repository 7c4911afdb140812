//! The rows of clients' data. Every row has the position of the record that wrote it. That position is the revision of a
//! document, and merges of two histories rely on it.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::key::written;
use super::table::Row;
use super::version::Version;
use super::version::{Bond, Lifetime};
use crate::store::command::{NewElection, NewUser, new_election, new_user, value_text_of};
use crate::store::encoding::{Fields, Hash, Mix, write_text};
use crate::types::{Lease, Position, Text};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub at: Position,
    pub new: Arc<NewUser>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Election {
    pub at: Position,
    pub new: Arc<NewElection>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CastVote {
    pub at: Position,
    pub choice: Text,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doc {
    pub at: Position,
    /// The JSON in the form in which it was put, on one line.
    pub value: Text,
    /// `None` for a document that stays until it is deleted, as most do.
    pub lifetime: Option<Arc<Lifetime>>,
}

impl User {
    pub fn entry(&self) -> String {
        written(self.at, &self.new.text)
    }

    pub fn from_entry(name: &str, json: &str) -> Option<User> {
        let (at, value) = parts(json)?;
        User::read(name, at, value)
    }

    pub fn read(name: &str, at: Position, value: &RawValue) -> Option<User> {
        let new = new_user(value, &Fields::read(value).ok()?).ok()?;
        // The key and the value both have the name. A row in which they differ is damaged.
        (&*new.name == name).then(|| User { at, new: new.into() })
    }
}

impl Election {
    pub fn entry(&self) -> String {
        written(self.at, &self.new.text)
    }

    pub fn from_entry(name: &str, json: &str) -> Option<Election> {
        let (at, value) = parts(json)?;
        Election::read(name, at, value)
    }

    pub fn read(name: &str, at: Position, value: &RawValue) -> Option<Election> {
        let new = new_election(value_text_of(value).ok()?, &Fields::read(value).ok()?).ok()?;
        (&*new.name == name).then(|| Election { at, new: new.into() })
    }
}

impl CastVote {
    pub fn entry(&self) -> String {
        written(self.at, &self.value())
    }

    /// The choice as JSON.
    pub fn value(&self) -> String {
        let mut choice = String::new();
        write_text(&mut choice, &self.choice).expect("writing to a String cannot fail");
        choice
    }

    pub fn from_entry(json: &str) -> Option<CastVote> {
        let (at, value) = parts(json)?;
        CastVote::read(at, value)
    }

    pub fn read(at: Position, value: &RawValue) -> Option<CastVote> {
        Some(CastVote { at, choice: serde_json::from_str::<String>(value.get()).ok()?.into() })
    }
}

impl Doc {
    /// `{"at","value","ttl_ms"?,"with"?,"token"?}`
    pub fn entry(&self) -> String {
        self.version().entry()
    }

    pub fn from_entry(json: &str) -> Option<Doc> {
        // Most documents have no other members, and there may be millions of them.
        if let Some((at, value)) = parts(json) {
            return Some(Doc { at, value: value.get().into(), lifetime: None });
        }
        match Version::from_entry(json)? {
            Version { at, value: Some(value), lifetime, .. } => Some(Doc { at, value, lifetime }),
            Version { value: None, .. } => None,
        }
    }

    pub fn version(&self) -> Version {
        Version { lifetime: self.lifetime.clone(), ..Version::row(self.at, self.value.clone()) }
    }

    /// The lease of a document with a ttl, which the leader counts. Each write is a new grant: an end that was proposed before
    /// the write does not apply to it.
    pub fn lease(&self) -> Option<Lease> {
        let ttl = self.lifetime.as_ref()?.ttl?;
        Some(Lease { token: self.at.index, ttl, aged: false })
    }

    pub fn bond(&self) -> Option<&Bond> {
        self.lifetime.as_ref()?.with.as_ref()
    }
}

/// A row with other members does not match: `Doc::from_entry` then reads it as a version.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written<'a> {
    at: &'a str,
    #[serde(borrow)]
    value: &'a RawValue,
}

pub fn parts(json: &str) -> Option<(Position, &RawValue)> {
    let Written { at, value } = serde_json::from_str(json).ok()?;
    Some((at.parse().ok()?, value))
}

impl Row for User {
    const TABLE: &'static str = "user";

    fn weight(&self) -> usize {
        self.new.text.len()
    }
}

impl Row for Election {
    const TABLE: &'static str = "election";

    fn weight(&self) -> usize {
        self.new.text.len()
    }
}

impl Row for CastVote {
    const TABLE: &'static str = "vote";

    fn weight(&self) -> usize {
        self.choice.len()
    }
}

impl Row for Doc {
    const TABLE: &'static str = "doc";

    fn weight(&self) -> usize {
        self.value.len() + self.bond().map_or(0, |bond| bond.lease.text().len())
    }
}

/// The position is hashed, too. A state with the same values that were written by other records has another digest.
impl Mix for User {
    fn mix(&self, hash: &mut Hash) {
        self.at.mix(hash);
        self.new.text.mix(hash);
    }
}

impl Mix for Election {
    fn mix(&self, hash: &mut Hash) {
        self.at.mix(hash);
        self.new.text.mix(hash);
    }
}

impl Mix for CastVote {
    fn mix(&self, hash: &mut Hash) {
        self.at.mix(hash);
        self.choice.mix(hash);
    }
}

impl Mix for Doc {
    fn mix(&self, hash: &mut Hash) {
        self.at.mix(hash);
        self.value.mix(hash);
        // A document that stays adds nothing, so its digest is what it was before documents could end.
        self.lifetime.iter().for_each(|lifetime| lifetime.mix(hash));
    }
}
