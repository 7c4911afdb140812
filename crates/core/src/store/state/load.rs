//! A loader builds a state from the entries of a snapshot.

use super::entries::fits;
use super::store::Store;
use crate::store::command::{Unreadable, check_key};
use crate::store::encoding::{CONFLICT_ID_MOST, NAME_MOST, TOKENS_END, check_text};
use crate::store::tables::{
    Bounds, CastVote, Conflict, Doc, Election, Key, LAST, MARK, MergeMetadata, Process, Remembered, Role,
    SIDE, TABLES, Token, Tombstone, User, Version, ballot_parts, call_named, lost_parts, parts,
};
use crate::types::{Position, Stamp, Vector};

/// Adds entries in the order of `Store::entries`, and checks all of them.
#[derive(Debug, Default)]
pub struct Loader {
    store: Store,
    /// The vector that the state includes, if it is mergeable.
    vector: Vector,
    pub(in crate::store) has_bounds: bool,
}

impl From<Store> for Loader {
    /// Continues with an existing state.
    fn from(store: Store) -> Loader {
        Loader { store, ..Loader::default() }
    }
}

impl Loader {
    /// For available mode. The entries may come from a safe-mode state. Then all of its history is settled, and `vector` is
    /// that of one history without branches.
    pub fn mergeable(vector: Vector) -> Loader {
        Loader { store: Store::mergeable(), vector, has_bounds: false }
    }

    /// An entry that cannot be read, occurs twice or has no counterpart (in safe mode, a vote without its election) is an
    /// error.
    pub fn add(&mut self, table: &str, key: &str, value: &str) -> Result<(), Unreadable> {
        // An unknown table is not skipped: the state would lack what other nodes have, and differ (P25).
        let Some(table) = TABLES.into_iter().find(|known| *known == table) else {
            return Err(Unreadable::Table(table.to_string()));
        };
        let of_merging = matches!(table, "conflict" | "rival" | "side" | "tomb");
        if of_merging && !self.store.is_mergeable() {
            return Err(Unreadable::Table(table.to_string()));
        }
        let added = match table {
            "access" => self.access(key, value),
            "call" => self.call(key, value),
            "conflict" => self.conflict(key, value),
            "doc" => self.doc(key, value),
            "election" => self.election(key, value),
            "history" => self.history(key, value),
            "process" => self.process(key, value),
            "rival" => self.rival(key, value),
            "role" => self.role(key, value),
            "side" => self.bounds(key, value),
            "token" => self.token(key, value),
            "tomb" => self.tombstone(key, value),
            "user" => self.user(key, value),
            _ => self.vote(key, value),
        };
        added.ok_or_else(|| Unreadable::Entry { table, key: key.to_string() })
    }

    pub fn finish(mut self, at: Position, stamp: Stamp) -> Store {
        self.store.applied = at;
        self.store.stamp = stamp;
        // A snapshot of a safe-mode state has no bounds. Its history has no branches, and counts as settled.
        let (unknown, linear) = (!self.has_bounds, self.vector.is_settled(at));
        if let Some(merging) = self.store.merging_mut().filter(|_| unknown && linear) {
            merging.bounds.settled = at;
        }
        self.store.rebuild_index();
        self.store
    }

    /// The state so far, without rebuilding its index.
    pub(in crate::store) fn into_store(self) -> Store {
        self.store
    }

    /// The state of a difference, which is only a part of a state.
    pub(in crate::store) fn finish_part(mut self) -> Store {
        self.store.rebuild_index();
        self.store
    }

    fn access(&mut self, id: &str, value: &str) -> Option<()> {
        let id = id.parse().ok()?;
        self.is_new(|| Key::Access(id))?;
        self.store.access.insert(id, Token::from_entry(id, value)?).is_none().then_some(())
    }

    fn call(&mut self, key: &str, value: &str) -> Option<()> {
        let call = Remembered::from_entry(value)?;
        self.store.idempotency_keys.add(call_named(key)?, call).then_some(())
    }

    fn doc(&mut self, key: &str, value: &str) -> Option<()> {
        check_key(key).ok()?;
        self.is_new(|| Key::Doc(key.into()))?;
        let before = self.store.docs.insert(key.into(), Doc::from_entry(value)?);
        before.is_none().then_some(())
    }

    fn election(&mut self, key: &str, value: &str) -> Option<()> {
        self.is_new(|| Key::Election(key.into()))?;
        let election = Election::from_entry(key, value)?;
        self.store.votes.open(&election.new);
        let before = self.store.elections.insert(key.into(), election);
        before.is_none().then_some(())
    }

    fn history(&mut self, name: &str, value: &str) -> Option<()> {
        let history = serde_json::from_str::<&str>(value).ok()?.parse().ok()?;
        (name == MARK && std::mem::replace(&mut self.store.history, history).is_first()).then_some(())
    }

    fn process(&mut self, id: &str, value: &str) -> Option<()> {
        check_text(id, NAME_MOST).ok()?;
        self.is_new(|| Key::Process(id.into()))?;
        self.store.processes.insert(id.into(), Process::from_entry(value)?).is_none().then_some(())
    }

    fn role(&mut self, name: &str, value: &str) -> Option<()> {
        check_text(name, NAME_MOST).ok()?;
        self.is_new(|| Key::Role(name.into()))?;
        self.store.roles.insert(name.into(), Role::from_entry(value)?).is_none().then_some(())
    }

    fn token(&mut self, name: &str, value: &str) -> Option<()> {
        let last = value.parse().ok().filter(|last| (1..TOKENS_END).contains(last))?;
        (name == LAST && std::mem::replace(&mut self.store.last_token, last) == 0).then_some(())
    }

    fn user(&mut self, key: &str, value: &str) -> Option<()> {
        self.is_new(|| Key::User(key.into()))?;
        let before = self.store.users.insert(key.into(), User::from_entry(key, value)?);
        before.is_none().then_some(())
    }

    fn vote(&mut self, key: &str, value: &str) -> Option<()> {
        let (election, voter) = ballot_parts(key)?;
        let vote = CastVote::from_entry(value)?;
        if !self.store.is_mergeable() {
            // The election is there already: its table comes before that of the votes.
            return self.store.votes.cast(&election, &voter, vote).map(|_| ());
        }
        self.is_new(|| Key::Vote(key.into()))?;
        self.store.votes.put(&election, key.into(), vote).is_none().then_some(())
    }

    fn merging(&mut self) -> Option<&mut MergeMetadata> {
        self.store.merging_mut()
    }

    /// A key with a tombstone must not have a row.
    fn is_new(&self, key: impl FnOnce() -> Key) -> Option<()> {
        let tombstones = self
            .store
            .merging
            .as_ref()
            .map(|merging| &merging.tombstones)
            .filter(|tombstones| tombstones.len() > 0);
        tombstones.is_none_or(|tombstones| tombstones.at(&key()).is_none()).then_some(())
    }

    fn conflict(&mut self, id: &str, value: &str) -> Option<()> {
        check_text(id, CONFLICT_ID_MOST).ok()?;
        let (at, value) = parts(value)?;
        self.is_new(|| Key::Conflict(id.into()))?;
        let (key, lost) = lost_parts(id).filter(|(key, _)| key.is_journaled())?;
        let conflict = Conflict::read(at, value.get())?;
        (conflict.lost.at == lost && fits(&key, &conflict.lost)).then_some(())?;
        self.merging()?.conflicts.insert(id.into(), conflict).is_none().then_some(())
    }

    fn rival(&mut self, id: &str, value: &str) -> Option<()> {
        check_text(id, CONFLICT_ID_MOST).ok()?;
        let (key, at) = lost_parts(id)?;
        let rival = Version::from_entry(value)?;
        (rival.at == at && fits(&key, &rival)).then_some(())?;
        self.merging()?.rivals.insert(id.into(), rival).is_none().then_some(())
    }

    fn bounds(&mut self, key: &str, value: &str) -> Option<()> {
        let bounds = Bounds::from_entry(value)?;
        self.merging()?.bounds = bounds;
        (key == SIDE && !std::mem::replace(&mut self.has_bounds, true)).then_some(())
    }

    fn tombstone(&mut self, key: &str, value: &str) -> Option<()> {
        let (key, tombstone) = (Key::from_full_name(key)?, Tombstone::from_entry(value)?);
        fits(&key, &tombstone.into()).then_some(())?;
        let fresh = self.store.row(&key).is_none() && self.is_new(|| key.clone()).is_some();
        self.merging()?.add_tombstone(key, tombstone);
        fresh.then_some(())
    }
}
