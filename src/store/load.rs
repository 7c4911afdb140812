//! A state from the entries of a snapshot.

use super::calls::Remembered;
use super::key::{TABLES, ballot_parts, call_named};
use super::parse::{Unreadable, check_key};
use super::rows::{Doc, Election, User, Vote};
use super::state::Store;
use crate::types::{Position, Stamp};

/// Takes entries in the order of `Store::entries`, and believes none of them.
#[derive(Debug, Default)]
pub struct Loader {
    pub(super) store: Store,
}

impl Loader {
    /// An entry that cannot be read, is there twice or fits to no other (a vote without its election) is an error.
    pub fn add(&mut self, table: &str, key: &str, value: &str) -> Result<(), Unreadable> {
        let Some(table) = TABLES.into_iter().find(|known| *known == table) else {
            return Err(Unreadable::Table(table.to_string()));
        };
        let added = match table {
            "call" => self.call(key, value),
            "doc" => self.doc(key, value),
            "election" => self.election(key, value),
            "user" => self.user(key, value),
            _ => self.vote(key, value),
        };
        added.ok_or_else(|| Unreadable::Entry { table, key: key.to_string() })
    }

    pub fn finish(mut self, at: Position, stamp: Stamp) -> Store {
        self.store.applied = at;
        self.store.stamp = stamp;
        self.store
    }

    fn call(&mut self, key: &str, value: &str) -> Option<()> {
        let call = Remembered::from_entry(value)?;
        self.store.calls.add(call_named(key)?, call).then_some(())
    }

    fn doc(&mut self, key: &str, value: &str) -> Option<()> {
        check_key(key).ok()?;
        let before = self.store.docs.insert(key.into(), Doc::from_entry(value)?);
        before.is_none().then_some(())
    }

    fn election(&mut self, key: &str, value: &str) -> Option<()> {
        let election = Election::from_entry(key, value)?;
        self.store.votes.open(&election.new);
        let before = self.store.elections.insert(key.into(), election);
        before.is_none().then_some(())
    }

    fn user(&mut self, key: &str, value: &str) -> Option<()> {
        let before = self.store.users.insert(key.into(), User::from_entry(key, value)?);
        before.is_none().then_some(())
    }

    fn vote(&mut self, key: &str, value: &str) -> Option<()> {
        let (election, voter) = ballot_parts(key)?;
        let cast = self.store.votes.cast(&election, &voter, Vote::from_entry(value)?);
        cast.map(|_| ())
    }
}
