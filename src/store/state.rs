//! The state itself: seven tables, the record that they stand at, and what it takes to tell sides apart.

use std::sync::Arc;

use super::calls::Calls;
use super::hash::{Hash, Mix};
use super::key::Key;
use super::leases::{Process, Role};
use super::restore::Staged;
use super::rows::{Doc, Election, User};
use super::sides::Sides;
use super::table::Table;
use super::votes::Votes;
use crate::types::{Position, Stamp, Text};

/// The replicated state. A clone costs a few pointers and never changes: a view to read from, a snapshot under way, a
/// version that may yet be given up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Store {
    pub(super) applied: Position,
    pub(super) stamp: Stamp,
    pub(super) users: Table<Text, User>,
    pub(super) elections: Table<Text, Election>,
    pub(super) votes: Votes,
    pub(super) docs: Table<Text, Doc>,
    pub(super) roles: Table<Text, Role>,
    pub(super) processes: Table<Text, Process>,
    /// Zero before the first one.
    pub(super) last_token: u64,
    pub(super) calls: Calls,
    /// Only in available mode.
    pub(super) sides: Option<Arc<Sides>>,
    /// Parts of a document that is to replace all this.
    pub(super) staged: Option<Arc<Staged>>,
}

impl Store {
    /// An empty state in which sides are told apart, as available mode needs.
    pub fn with_sides() -> Store {
        Store { sides: Some(Arc::default()), ..Store::default() }
    }

    pub fn tells_sides_apart(&self) -> bool {
        self.sides.is_some()
    }

    /// What is to be kept up, in available mode.
    pub(super) fn sides_mut(&mut self) -> Option<&mut Sides> {
        self.sides.as_mut().map(Arc::make_mut)
    }

    /// The revision of what was written at a position: two sides may have written at the same index.
    pub(super) fn rev(&self, at: Position) -> String {
        match &self.sides {
            None => at.index.to_string(),
            Some(_) => at.to_string(),
        }
    }

    /// The last record that is in here.
    pub fn applied(&self) -> Position {
        self.applied
    }

    /// The stamp of the last record that is in here.
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// Equal states have equal digests, however they came about (P25). It covers the entries, which are all that is
    /// replicated; position and stamp are the log's.
    pub fn digest(&self) -> u64 {
        let tables = [
            self.users.digest(),
            self.elections.digest(),
            self.votes.table().digest(),
            self.docs.digest(),
            self.roles.digest(),
            self.processes.digest(),
            token_digest(self.last_token),
            self.calls.table().digest(),
            self.sides.as_ref().map_or(0, |sides| sides.digest()),
        ];
        tables.into_iter().fold(0, u64::wrapping_add)
    }

    /// How many entries there are, of clients' data, leases and calls.
    pub fn len(&self) -> usize {
        let data = self.users.len() + self.elections.len() + self.votes.table().len() + self.docs.len();
        data + self.roles.len() + self.processes.len() + self.calls.table().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An entry's value as JSON on one line, as a snapshot keeps it.
    pub fn entry(&self, key: &Key) -> Option<String> {
        let sides = || self.sides.as_ref();
        match key {
            Key::Call(key) => self.calls.get(*key).map(|call| call.entry()),
            Key::Conflict(id) => sides()?.conflicts.get(id).map(|conflict| conflict.entry()),
            Key::Doc(name) => self.docs.get(name).map(Doc::entry),
            Key::Election(name) => self.elections.get(name).map(Election::entry),
            Key::Process(id) => self.processes.get(id).map(Process::entry),
            Key::Rival(id) => sides()?.rivals.get(id).map(|rival| rival.entry()),
            Key::Role(name) => self.roles.get(name).map(Role::entry),
            Key::Side => sides().map(|sides| sides.bounds.entry()),
            Key::Token => (self.last_token > 0).then(|| self.last_token.to_string()),
            Key::Tomb(key) => sides()?.tombs.at(key).map(|tomb| tomb.entry()),
            Key::User(name) => self.users.get(name).map(User::entry),
            Key::Vote(name) => self.votes.table().get(name).map(|vote| vote.entry()),
        }
    }

    /// All entries, sorted by table and by the bytes of their names.
    pub fn entries(&self) -> impl Iterator<Item = (Key, String)> + '_ {
        let calls = self.calls.table().iter().map(|(key, row)| (Key::Call(*key), row.entry()));
        let docs = self.docs.iter().map(|(key, row)| (Key::Doc(key.clone()), row.entry()));
        let elections = self.elections.iter().map(|(key, row)| (Key::Election(key.clone()), row.entry()));
        let users = self.users.iter().map(|(key, row)| (Key::User(key.clone()), row.entry()));
        let votes = self.votes.table().iter().map(|(key, row)| (Key::Vote(key.clone()), row.entry()));
        let sides = self.sides.iter();
        let conflicts = sides.clone().flat_map(|sides| {
            sides.conflicts.iter().map(|(id, row)| (Key::Conflict(id.clone()), row.entry()))
        });
        let rivals = sides
            .clone()
            .flat_map(|sides| sides.rivals.iter().map(|(id, row)| (Key::Rival(id.clone()), row.entry())));
        let bounds = sides.clone().map(|sides| (Key::Side, sides.bounds.entry()));
        let tombs = sides.flat_map(|sides| {
            sides.tombs.iter().map(|(key, row)| (Key::Tomb(key.clone().into()), row.entry()))
        });
        let leased = self.processes.iter().map(|(id, row)| (Key::Process(id.clone()), row.entry()));
        let leased = leased.chain(rivals);
        let leased =
            leased.chain(self.roles.iter().map(|(name, row)| (Key::Role(name.clone()), row.entry())));
        let token = self.entry(&Key::Token).map(|token| (Key::Token, token));
        let rest = leased.chain(bounds).chain(token).chain(tombs);
        calls.chain(conflicts).chain(docs).chain(elections).chain(rest).chain(users).chain(votes)
    }
}

/// As of a table with one entry.
pub(super) fn token_digest(last: u64) -> u64 {
    if last == 0 {
        return 0;
    }
    let mut hash = Hash::new();
    "token".mix(&mut hash);
    hash.word(last);
    hash.finish()
}
