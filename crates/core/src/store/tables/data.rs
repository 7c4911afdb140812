//! The rows of clients' data. Every row knows the position of the record that wrote it: the revision of a
//! document, and what a merge of two histories goes by.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::key::written;
use super::table::Row;
use crate::store::command::{NewElection, NewUser, new_election, new_user, value_text_of};
use crate::store::encoding::{Fields, Hash, Mix, write_text};
use crate::types::{Position, Text};

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
pub struct Vote {
    pub at: Position,
    pub choice: Text,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doc {
    pub at: Position,
    /// The JSON as it was put, on one line.
    pub value: Text,
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

impl Vote {
    pub fn entry(&self) -> String {
        written(self.at, &self.value())
    }

    /// The choice as JSON.
    pub fn value(&self) -> String {
        let mut choice = String::new();
        write_text(&mut choice, &self.choice).expect("a string takes everything");
        choice
    }

    pub fn from_entry(json: &str) -> Option<Vote> {
        let (at, value) = parts(json)?;
        Vote::read(at, value)
    }

    pub fn read(at: Position, value: &RawValue) -> Option<Vote> {
        Some(Vote { at, choice: serde_json::from_str::<String>(value.get()).ok()?.into() })
    }
}

impl Doc {
    pub fn entry(&self) -> String {
        written(self.at, &self.value)
    }

    pub fn from_entry(json: &str) -> Option<Doc> {
        let (at, value) = parts(json)?;
        Some(Doc { at, value: value.get().into() })
    }
}

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
}

impl Row for Election {
    const TABLE: &'static str = "election";
}

impl Row for Vote {
    const TABLE: &'static str = "vote";
}

impl Row for Doc {
    const TABLE: &'static str = "doc";
}

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

impl Mix for Vote {
    fn mix(&self, hash: &mut Hash) {
        self.at.mix(hash);
        self.choice.mix(hash);
    }
}

impl Mix for Doc {
    fn mix(&self, hash: &mut Hash) {
        self.at.mix(hash);
        self.value.mix(hash);
    }
}
