//! All versions that a state has of a key: `merge` reads and replaces them.

use crate::store::state::Store;
use crate::store::tables::{Key, Remembered, Tombstone, Version, lost_id, lost_ids_of};
use crate::types::Position;

impl Store {
    /// The current version: a row or a tombstone.
    pub(in crate::store) fn current(&self, key: &Key) -> Option<Version> {
        let tombstone =
            || self.merging.as_ref()?.tombstones.at(key).map(|tombstone| Version::from(*tombstone));
        self.row(key).or_else(tombstone)
    }

    /// The current version and its rivals.
    pub(in crate::store) fn versions(&self, key: &Key) -> Vec<Version> {
        let mut versions: Vec<Version> = self.current(key).into_iter().collect();
        if let Some(merging) = self.merging.as_ref().filter(|merging| merging.rivals.len() > 0) {
            let prefix = lost_ids_of(key);
            let rivals = merging.rivals.starting_with(&prefix);
            // Keys may contain colons, so ids of another key can begin alike. Behind the prefix only a position may
            // follow.
            let own = rivals.filter(|(id, _)| id[prefix.len()..].parse::<Position>().is_ok());
            versions.extend(own.map(|(_, rival)| rival.clone()));
        }
        versions
    }

    /// Makes these the only versions of the key: the current one first, then its rivals.
    pub(in crate::store) fn set_versions(&mut self, key: &Key, versions: &[Version], changes: &mut Vec<Key>) {
        let (now, rivals) =
            versions.split_first().map_or((None, versions), |(first, rest)| (Some(first), rest));
        match now {
            Some(version) if version.value.is_some() => self.write(key, version, changes),
            Some(Version { at, ended, .. }) => {
                self.erase(key, Some(Tombstone { at: *at, ended: *ended }), changes);
            }
            None => self.erase(key, None, changes),
        }
        let Some(merging) = self.merging_mut() else { return };
        for rival in rivals {
            let id = lost_id(key, rival.at);
            merging.rivals.insert(id.clone(), rival.clone());
            changes.push(Key::Rival(id));
        }
    }

    /// Adds a call that another state remembers. It replaces an older call of the same key.
    pub(in crate::store) fn take_call(&mut self, key: u128, call: &Remembered, changes: &mut Vec<Key>) {
        let before = self.idempotency_keys.get(key).map(Remembered::age);
        if before.is_some_and(|before| before >= call.age()) {
            return;
        }
        self.idempotency_keys.add(key, call.clone());
        changes.push(Key::Call(key));
        if let Some(merging) = self.merging_mut() {
            merging.forget(&Key::Call(key), before.map(|(_, at)| at));
            merging.note(Key::Call(key), call.at);
        }
    }
}
