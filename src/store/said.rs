//! All that a state has to say about one key, and saying it: what merging two states is made of.

use serde_json::value::RawValue;

use super::calls::Remembered;
use super::conflict::Conflict;
use super::held::Held;
use super::key::{Key, ballot_parts, lost_id, lost_ids_of};
use super::leases::{Process, Role};
use super::rows::{Doc, Election, User, Vote};
use super::sides::Written;
use super::state::Store;
use crate::types::{Position, Text};

impl Store {
    /// What stands under the key, if it is there. Nothing for what has no value of its own: calls, and the bookkeeping.
    pub(super) fn row(&self, key: &Key) -> Option<Held> {
        match key {
            Key::Conflict(id) => {
                let conflict = self.sides.as_ref()?.conflicts.get(id)?;
                Some(Held::row(conflict.at, conflict.value().into()))
            }
            Key::Doc(name) => self.docs.get(name).map(|doc| Held::row(doc.at, doc.value.clone())),
            Key::Election(name) => {
                self.elections.get(name).map(|election| Held::row(election.at, election.new.text.clone()))
            }
            Key::Process(id) => {
                self.processes.get(id).map(|process| Held::row(process.at, process.value().into()))
            }
            Key::Role(name) => self.roles.get(name).map(|role| Held::row(role.at, role.value().into())),
            Key::User(name) => self.users.get(name).map(|user| Held::row(user.at, user.new.text.clone())),
            Key::Vote(name) => {
                self.votes.table().get(name).map(|vote| Held::row(vote.at, vote.value().into()))
            }
            Key::Call(_) | Key::Rival(_) | Key::Side | Key::Token | Key::Tomb(_) => None,
        }
    }

    /// The row or the tomb.
    pub(super) fn current(&self, key: &Key) -> Option<Held> {
        let tomb = || self.sides.as_ref()?.tombs.at(key).map(|tomb| Held::deleted(tomb.at));
        self.row(key).or_else(tomb)
    }

    /// The current value and its rivals.
    pub(super) fn said(&self, key: &Key) -> Vec<Held> {
        let mut said: Vec<Held> = self.current(key).into_iter().collect();
        if let Some(sides) = self.sides.as_ref().filter(|sides| sides.rivals.len() > 0) {
            let prefix = lost_ids_of(key);
            let rivals = sides.rivals.starting_with(&prefix);
            let own = rivals.filter(|(id, _)| id[prefix.len()..].parse::<Position>().is_ok());
            said.extend(own.map(|(_, rival)| rival.clone()));
        }
        said
    }

    /// Makes this all that is said: the current value first, then its rivals.
    pub(super) fn say(&mut self, key: &Key, said: &[Held], changes: &mut Vec<Key>) {
        let (now, rivals) = said.split_first().map_or((None, said), |(first, rest)| (Some(first), rest));
        match now {
            Some(Held { at, value: Some(value) }) => self.write(key, *at, value, changes),
            Some(Held { at, value: None }) => self.erase(key, Some(*at), changes),
            None => self.erase(key, None, changes),
        }
        let Some(sides) = self.sides_mut() else { return };
        for rival in rivals {
            let id = lost_id(key, rival.at);
            sides.rivals.insert(id.clone(), rival.clone());
            changes.push(Key::Rival(id));
        }
    }

    /// Writes a value that is known to fit the key. Whatever was said before is written over.
    pub(super) fn write(&mut self, key: &Key, at: Position, value: &Text, changes: &mut Vec<Key>) {
        let before = self.row(key).map(|row| row.at);
        let put = self.put_row(key, at, value);
        debug_assert!(put.is_some(), "{value} was checked for {key:?}");
        changes.push(key.clone());
        if let Some(sides) = self.sides_mut() {
            sides.wrote(key, before, Written::Row(at), changes);
        }
    }

    /// Takes the row away, if there is one, and leaves a tomb if `at` says when that was.
    pub(super) fn erase(&mut self, key: &Key, at: Option<Position>, changes: &mut Vec<Key>) {
        let before = self.row(key).map(|row| row.at);
        self.drop_row(key);
        changes.push(key.clone());
        if let Some(sides) = self.sides_mut() {
            match at {
                Some(at) => sides.wrote(key, before, Written::Gone(at), changes),
                None => sides.lose(key, before, changes),
            }
        }
    }

    /// Nothing but the row itself: for states in the making.
    pub(super) fn put_row(&mut self, key: &Key, at: Position, value: &Text) -> Option<()> {
        let raw = || serde_json::from_str::<&RawValue>(value).ok();
        match key {
            Key::Conflict(id) => {
                let conflict = Conflict::read(at, value)?;
                self.sides_mut()?.conflicts.insert(id.clone(), conflict);
            }
            Key::Doc(name) => {
                self.docs.insert(name.clone(), Doc { at, value: value.clone() });
            }
            Key::Election(name) => {
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
                self.votes.put(&election, name.clone(), Vote::read(at, raw()?)?);
            }
            Key::Call(_) | Key::Rival(_) | Key::Side | Key::Token | Key::Tomb(_) => return None,
        }
        Some(())
    }

    fn drop_row(&mut self, key: &Key) {
        match key {
            Key::Conflict(id) => {
                self.sides_mut().map(|sides| sides.conflicts.remove(id));
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
            Key::Call(_) | Key::Rival(_) | Key::Side | Key::Token | Key::Tomb(_) => {}
        }
    }

    /// A call that another state remembers. It takes the place of an older one of the same key.
    pub(super) fn take_call(&mut self, key: u128, call: &Remembered, changes: &mut Vec<Key>) {
        let before = self.calls.get(key).map(Remembered::age);
        if before.is_some_and(|before| before >= call.age()) {
            return;
        }
        self.calls.add(key, call.clone());
        changes.push(Key::Call(key));
        if let Some(sides) = self.sides_mut() {
            sides.forget(&Key::Call(key), before.map(|(_, at)| at));
            sides.note(Key::Call(key), call.at);
        }
    }

    /// Makes the index of what is not settled from the tables.
    pub(super) fn index_anew(&mut self) {
        let Some(mut sides) = self.sides.take() else { return };
        let index = std::sync::Arc::make_mut(&mut sides);
        index.clear_index();
        self.calls.table().iter().for_each(|(key, row)| index.note(Key::Call(*key), row.at));
        self.docs.iter().for_each(|(key, row)| index.note(Key::Doc(key.clone()), row.at));
        self.elections.iter().for_each(|(key, row)| index.note(Key::Election(key.clone()), row.at));
        self.processes.iter().for_each(|(key, row)| index.note(Key::Process(key.clone()), row.at));
        self.roles.iter().for_each(|(key, row)| index.note(Key::Role(key.clone()), row.at));
        self.users.iter().for_each(|(key, row)| index.note(Key::User(key.clone()), row.at));
        self.votes.table().iter().for_each(|(key, row)| index.note(Key::Vote(key.clone()), row.at));
        index.index_own();
        self.sides = Some(sides);
    }
}

/// Whether a value read from outside can stand under a key.
pub(super) fn can_be_held(key: &Key, held: &Held) -> bool {
    let Some(value) = &held.value else { return true };
    Store::with_sides().put_row(key, held.at, value).is_some()
}
