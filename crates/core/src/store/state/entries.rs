//! The state is read, listed, written and changed key by key here.

use serde_json::value::RawValue;

use super::store::Store;
use crate::store::tables::{
    CastVote, Conflict, Doc, Election, Key, KeyChange, Process, Role, Token, Tombstone, User, Version,
    ballot_parts,
};

impl Store {
    /// An entry's value as JSON on one line, as a snapshot keeps it.
    pub fn entry(&self, key: &Key) -> Option<String> {
        let merging = || self.merging.as_ref();
        match key {
            Key::Access(id) => self.access.at(id).map(Token::entry),
            Key::Call(key) => self.idempotency_keys.get(*key).map(|call| call.entry()),
            Key::Conflict(id) => merging()?.conflicts.get(id).map(|conflict| conflict.entry()),
            Key::Doc(name) => self.docs.get(name).map(Doc::entry),
            Key::Election(name) => self.elections.get(name).map(Election::entry),
            Key::History => (!self.history.is_first()).then(|| format!("\"{}\"", self.history)),
            Key::Process(id) => self.processes.get(id).map(Process::entry),
            Key::Rival(id) => merging()?.rivals.get(id).map(|rival| rival.entry()),
            Key::Role(name) => self.roles.get(name).map(Role::entry),
            Key::Side => merging().map(|merging| merging.bounds.entry()),
            Key::Token => (self.last_token > 0).then(|| self.last_token.to_string()),
            Key::Tombstone(key) => merging()?.tombstones.at(key).map(|tombstone| tombstone.entry()),
            Key::User(name) => self.users.get(name).map(User::entry),
            Key::Vote(name) => self.votes.table().get(name).map(|vote| vote.entry()),
        }
    }

    /// All entries, sorted by table and by the bytes of their names.
    /// The order of the chain below is that of `Key` and `TABLES`. The lines of a snapshot must rise, and `all_changes`
    /// walks two states in step: a table in the wrong place breaks both.
    pub fn entries(&self) -> impl Iterator<Item = (Key, String)> + '_ {
        let access = self.access.iter().map(|(id, row)| (Key::Access(*id), row.entry()));
        let calls = self.idempotency_keys.table().iter().map(|(key, row)| (Key::Call(*key), row.entry()));
        let docs = self.docs.table().iter().map(|(key, row)| (Key::Doc(key.clone()), row.entry()));
        let elections = self.elections.iter().map(|(key, row)| (Key::Election(key.clone()), row.entry()));
        let users = self.users.iter().map(|(key, row)| (Key::User(key.clone()), row.entry()));
        let votes = self.votes.table().iter().map(|(key, row)| (Key::Vote(key.clone()), row.entry()));
        let merging = self.merging.iter();
        let conflicts = merging.clone().flat_map(|merging| {
            merging.conflicts.iter().map(|(id, row)| (Key::Conflict(id.clone()), row.entry()))
        });
        let rivals = merging
            .clone()
            .flat_map(|merging| merging.rivals.iter().map(|(id, row)| (Key::Rival(id.clone()), row.entry())));
        let bounds = merging.clone().map(|merging| (Key::Side, merging.bounds.entry()));
        let tombstones = merging.flat_map(|merging| {
            merging.tombstones.iter().map(|(key, row)| (Key::Tombstone(key.clone().into()), row.entry()))
        });
        let leased = self.processes.iter().map(|(id, row)| (Key::Process(id.clone()), row.entry()));
        let leased = leased.chain(rivals);
        let leased =
            leased.chain(self.roles.iter().map(|(name, row)| (Key::Role(name.clone()), row.entry())));
        let token = self.entry(&Key::Token).map(|token| (Key::Token, token));
        let rest = leased.chain(bounds).chain(token).chain(tombstones);
        let history = self.entry(&Key::History).map(|history| (Key::History, history));
        let first = access.chain(calls).chain(conflicts);
        first.chain(docs).chain(elections).chain(history).chain(rest).chain(users).chain(votes)
    }

    /// All keys that have a row, a tombstone or rivals, some of them several times. Calls are not included.
    pub(in crate::store) fn keys(&self) -> impl Iterator<Item = Key> + '_ {
        let access = self.access.iter().map(|(id, _)| Key::Access(*id));
        let docs = self.docs.table().iter().map(|(key, _)| Key::Doc(key.clone()));
        let elections = self.elections.iter().map(|(key, _)| Key::Election(key.clone()));
        let users = self.users.iter().map(|(key, _)| Key::User(key.clone()));
        let votes = self.votes.table().iter().map(|(key, _)| Key::Vote(key.clone()));
        let processes = self.processes.iter().map(|(key, _)| Key::Process(key.clone()));
        let roles = self.roles.iter().map(|(key, _)| Key::Role(key.clone()));
        let of_merging = self.merging.iter().flat_map(|merging| {
            let tombstones = merging.tombstones.iter().map(|(key, _)| key.clone());
            let conflicts = merging.conflicts.iter().map(|(id, _)| Key::Conflict(id.clone()));
            tombstones.chain(conflicts).chain(merging.contested())
        });
        let data = docs.chain(elections).chain(users).chain(votes);
        access.chain(data).chain(processes).chain(roles).chain(of_merging)
    }

    /// The row of the key, if there is one. Returns `None` for entries that are not rows: calls, the last token, the history,
    /// rivals, tombstones and bounds.
    pub(in crate::store) fn row(&self, key: &Key) -> Option<Version> {
        match key {
            Key::Access(id) => self.access.at(id).map(|token| Version::row(token.at, token.value().into())),
            Key::Conflict(id) => {
                let conflict = self.merging.as_ref()?.conflicts.get(id)?;
                Some(Version::row(conflict.at, conflict.value().into()))
            }
            Key::Doc(name) => self.docs.get(name).map(Doc::version),
            Key::Election(name) => {
                self.elections.get(name).map(|election| Version::row(election.at, election.new.text.clone()))
            }
            Key::Process(id) => {
                self.processes.get(id).map(|process| Version::row(process.at, process.value().into()))
            }
            Key::Role(name) => self.roles.get(name).map(|role| Version::row(role.at, role.value().into())),
            Key::User(name) => self.users.get(name).map(|user| Version::row(user.at, user.new.text.clone())),
            Key::Vote(name) => {
                self.votes.table().get(name).map(|vote| Version::row(vote.at, vote.value().into()))
            }
            Key::Call(_) | Key::History | Key::Rival(_) | Key::Side | Key::Token | Key::Tombstone(_) => None,
        }
    }

    /// Writes a value that is known to fit the key. It replaces every earlier version.
    pub(in crate::store) fn write(&mut self, key: &Key, version: &Version, changes: &mut Vec<Key>) {
        let before = self.row(key).map(|row| row.at);
        let put = self.put_row(key, version);
        debug_assert!(put.is_some(), "{version:?} was checked for {key:?}");
        changes.push(key.clone());
        if let Some(merging) = self.merging_mut() {
            merging.wrote(key, before, KeyChange::Row(version.at), changes);
        }
    }

    /// Removes the row, if there is one, and leaves a tombstone if one is given.
    pub(in crate::store) fn erase(
        &mut self,
        key: &Key,
        tombstone: Option<Tombstone>,
        changes: &mut Vec<Key>,
    ) {
        let before = self.row(key).map(|row| row.at);
        self.drop_row(key);
        changes.push(key.clone());
        if let Some(merging) = self.merging_mut() {
            match tombstone {
                Some(tombstone) => merging.wrote(key, before, KeyChange::Gone(tombstone), changes),
                None => merging.lose(key, before, changes),
            }
        }
    }

    /// Writes only the row, without updating tombstones, rivals or the index: for states that are being built.
    pub(in crate::store) fn put_row(&mut self, key: &Key, version: &Version) -> Option<()> {
        let (at, value) = (version.at, version.value.as_ref()?);
        let raw = || serde_json::from_str::<&RawValue>(value).ok();
        match key {
            Key::Access(id) => {
                self.access.insert(*id, Token::read(*id, at, raw()?)?);
            }
            Key::Conflict(id) => {
                let conflict = Conflict::read(at, value)?;
                self.merging_mut()?.conflicts.insert(id.clone(), conflict);
            }
            Key::Doc(name) => {
                let lifetime = version.lifetime.clone();
                self.docs.insert(name.clone(), Doc { at, value: value.clone(), lifetime });
            }
            Key::Election(name) => {
                // In a merge this may be another election of the name: `open` counts the votes again, by its choices.
                let election = Election::read(name, at, raw()?)?;
                self.votes.open(&election.new);
                self.elections.insert(name.clone(), election);
            }
            Key::Process(id) => {
                self.processes.insert(id.clone(), Process::read(at, raw()?)?);
            }
            Key::Role(name) => {
                self.roles.insert(name.clone(), Role::read(at, raw()?)?);
            }
            Key::User(name) => {
                self.users.insert(name.clone(), User::read(name, at, raw()?)?);
            }
            Key::Vote(name) => {
                let (election, _) = ballot_parts(name)?;
                self.votes.put(&election, name.clone(), CastVote::read(at, raw()?)?);
            }
            Key::Call(_) | Key::History | Key::Rival(_) | Key::Side | Key::Token | Key::Tombstone(_) => {
                return None;
            }
        }
        Some(())
    }

    fn drop_row(&mut self, key: &Key) {
        match key {
            Key::Access(id) => {
                self.access.take(id);
            }
            Key::Conflict(id) => {
                self.merging_mut().map(|merging| merging.conflicts.remove(id));
            }
            Key::Doc(name) => {
                self.docs.remove(name);
            }
            Key::Election(name) => {
                self.votes.close(name);
                self.elections.remove(name);
            }
            Key::Process(id) => {
                self.processes.remove(id);
            }
            Key::Role(name) => {
                self.roles.remove(name);
            }
            Key::User(name) => {
                self.users.remove(name);
            }
            Key::Vote(name) => {
                let (election, _) = ballot_parts(name).unwrap_or_default();
                self.votes.remove(&election, name);
            }
            Key::Call(_) | Key::History | Key::Rival(_) | Key::Side | Key::Token | Key::Tombstone(_) => {}
        }
    }

    /// Rebuilds the index of entries that are not settled from the tables.
    /// The index follows from the tables and the bounds. It is rebuilt when the bounds go back, when nothing counts as
    /// settled any more (`strays`), and when a state was loaded or put together from parts.
    pub(in crate::store) fn rebuild_index(&mut self) {
        let Some(mut merging) = self.merging.take() else { return };
        let index = std::sync::Arc::make_mut(&mut merging);
        index.clear_index();
        self.idempotency_keys.table().iter().for_each(|(key, row)| index.note(Key::Call(*key), row.at));
        self.access.iter().for_each(|(id, row)| index.note(Key::Access(*id), row.at));
        self.docs.table().iter().for_each(|(key, row)| index.note(Key::Doc(key.clone()), row.at));
        self.elections.iter().for_each(|(key, row)| index.note(Key::Election(key.clone()), row.at));
        self.processes.iter().for_each(|(key, row)| index.note(Key::Process(key.clone()), row.at));
        self.roles.iter().for_each(|(key, row)| index.note(Key::Role(key.clone()), row.at));
        self.users.iter().for_each(|(key, row)| index.note(Key::User(key.clone()), row.at));
        self.votes.table().iter().for_each(|(key, row)| index.note(Key::Vote(key.clone()), row.at));
        index.index_own();
        self.merging = Some(merging);
    }
}

/// Whether a value from outside is valid for a key.
/// An empty state is enough to find out: whether a value can be read depends on nothing else in the state.
pub fn fits(key: &Key, version: &Version) -> bool {
    let is_doc = matches!(key, Key::Doc(_));
    if !is_doc && (version.ended || version.lifetime.is_some()) {
        return false;
    }
    version.value.is_none() || Store::mergeable().put_row(key, version).is_some()
}
