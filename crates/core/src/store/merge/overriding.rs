//! An override turns a follower's state into that of its leader, by applying the difference (P33).

use std::collections::BTreeSet;

use super::transfer::Difference;
use crate::store::command::Unreadable;
use crate::store::state::Store;
use crate::store::tables::{Bounds, Key};
use crate::types::{Position, Stamp};

impl Store {
    /// The state that `by` was taken from, and each entry that changed. This works only if this state includes the vector
    /// whose entries `by` leaves out, and has no entries that the sender does not know. The digest of the result shows
    /// whether that was so.
    pub fn overridden(
        &self,
        by: &Difference,
        at: Position,
        stamp: Stamp,
    ) -> Result<(Store, Vec<Key>), Unreadable> {
        if !self.is_mergeable() || !by.part.is_mergeable() {
            return Err(Unreadable::NotMergeable);
        }
        let (mut store, changes) = match by.whole {
            true => (by.part.clone(), self.all_changes(&by.part)),
            false => self.overridden_in_part(&by.part),
        };
        store.applied = at;
        store.stamp = stamp;
        Ok((store, changes))
    }

    fn overridden_in_part(&self, by: &Store) -> (Store, Vec<Key>) {
        let mut store = Store { staged: None, ..self.clone() };
        let mut changes = vec![Key::Side];
        // The keys that have tombstones or rivals here: the leader may have none for them any more.
        let contested = self.merging.iter().flat_map(|merging| {
            merging.contested().chain(merging.tombstones.iter().map(|(key, _)| key.clone()))
        });
        for key in contested.chain(by.keys()).collect::<BTreeSet<_>>() {
            let (ours, theirs) = (self.versions(&key), by.versions(&key));
            if ours == theirs {
                continue;
            }
            match theirs.is_empty() {
                false => store.set_versions(&key, &theirs, &mut changes),
                true => store.keep_row_alone(&key, &mut changes),
            }
        }
        by.idempotency_keys.table().iter().for_each(|(key, call)| store.take_call(*key, call, &mut changes));
        if store.last_token != by.last_token {
            store.last_token = by.last_token;
            changes.push(Key::Token);
        }
        if store.history != by.history {
            store.history = by.history;
            changes.push(Key::History);
        }
        store.take_bounds(by, &mut changes);
        (store, changes)
    }

    /// The row stays as it is here. The leader has settled its rivals or its tombstone.
    fn keep_row_alone(&mut self, key: &Key, changes: &mut Vec<Key>) {
        match self.row(key) {
            Some(row) => self.set_versions(key, &[row], changes),
            None => self.erase(key, None, changes),
        }
    }

    fn take_bounds(&mut self, by: &Store, changes: &mut Vec<Key>) {
        let (Some(merging), Some(other)) = (self.merging_mut(), &by.merging) else {
            return;
        };
        let Bounds { settled, strays, calls, .. } = other.bounds;
        // Entries that are settled here, and so are not in the index, may not be settled for the leader.
        let anew = settled < merging.bounds.settled || strays;
        if !strays {
            merging.settle(settled, changes);
        }
        merging.bounds = other.bounds;
        self.forget_calls_upto(calls, changes);
        if anew {
            self.rebuild_index();
        }
    }

    /// Each entry that only one of the two states has, or that differs between them.
    fn all_changes(&self, other: &Store) -> Vec<Key> {
        let (mut mine, mut theirs) = (self.entries().peekable(), other.entries().peekable());
        let mut changes = Vec::new();
        loop {
            match (mine.peek(), theirs.peek()) {
                (None, None) => return changes,
                (Some(a), Some(b)) if a == b => {
                    mine.next();
                    theirs.next();
                }
                (Some(a), Some(b)) if a.0 == b.0 => {
                    changes.extend(mine.next().map(|(key, _)| key));
                    theirs.next();
                }
                (Some(a), Some(b)) if a.0 < b.0 => changes.extend(mine.next().map(|(key, _)| key)),
                (Some(_), None) => changes.extend(mine.next().map(|(key, _)| key)),
                (_, Some(_)) => changes.extend(theirs.next().map(|(key, _)| key)),
            }
        }
    }
}
