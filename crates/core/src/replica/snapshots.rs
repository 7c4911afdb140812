//! When a snapshot is due, and what it must hold: one at every boundary, at most one on its way, the newest due one next
//! (P26).

use super::io::{Out, SnapshotOrder};
use super::state::Replica;
use crate::protocol::mutant::{self, Mutant};
use crate::store::Key;
use crate::types::Time;

impl Replica {
    pub(super) fn settle_snapshots(&mut self) {
        if self.now.mono >= self.next_snapshot() {
            let order = self.snapshots.start(self.now.mono);
            self.out.extend(order.map(|order| Out::Snapshot(order.into())));
        }
    }

    /// When the next snapshot may start. One that is still to be installed would take the place of a newer one; and beside a
    /// disk that does not have this node's promise yet, records of that epoch would look as if the disk had lost it.
    pub(super) fn next_snapshot(&self) -> Time {
        let installs = self.core.is_installing() && !mutant::is_on(Mutant::SnapshotBeforeInstalled);
        let promises = !self.core.promise_is_durable() && !mutant::is_on(Mutant::SnapshotBeforePromise);
        if installs || promises { Time::NEVER } else { self.snapshots.deadline() }
    }
}

impl SnapshotOrder {
    /// The rows that it writes: every entry of the state, or what has changed since the newest snapshot, each with its value
    /// as JSON on one line, or none where it is gone.
    pub fn rows(&self, whole: bool) -> Box<dyn Iterator<Item = (Key, Option<String>)> + '_> {
        let kept = |key: &Key| !(mutant::is_on(Mutant::KeysForgotten) && matches!(key, Key::Call(_)));
        if whole {
            return Box::new(
                self.store.entries().filter(move |(key, _)| kept(key)).map(|(key, value)| (key, Some(value))),
            );
        }
        let mut keys: Vec<&Key> = self.keys.iter().filter(|key| kept(key)).collect();
        keys.sort_unstable();
        keys.dedup();
        Box::new(keys.into_iter().map(|key| (key.clone(), self.store.entry(key))))
    }
}
