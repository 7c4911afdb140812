//! When a snapshot is due, and what it must hold: one at every boundary, at most one on its way, the newest due one next
//! (P26).

use std::sync::Arc;

use super::io::SnapshotOrder;
use crate::protocol::SnapshotMeta;
use crate::protocol::mutant::{self, Mutant};
use crate::store::{Key, Store};
use crate::types::{Index, Span, Time};

/// Between the starts of two snapshots: at full speed a boundary is due a thousand times a second, and each snapshot
/// costs a sync of the disk that writes wait for.
const PAUSE: Span = Span::millis(100);

/// Keys noted before those that are there several times are put together: a slow disk does not let them grow beyond twice
/// what has changed.
const PUT_TOGETHER_FROM: usize = 8192;

#[derive(Clone, Debug, Default)]
pub(in crate::replica) struct SnapshotPlan {
    /// The index of the newest finished snapshot.
    newest: Index,
    /// The newest boundary's state, or what this node began with: that is one, too.
    boundary: (Index, Store),
    /// The newest boundary that has no snapshot yet.
    due: Option<(SnapshotMeta, Index)>,
    /// Keys changed since the newest snapshot, up to the boundary that is due, and beyond it.
    upto_due: Keys,
    beyond: Vec<Key>,
    /// What is on its way: if it fails, its keys are still to be written.
    running: Option<Arc<Vec<Key>>>,
    started: Time,
    /// The next snapshot is of the whole state: a restore has replaced it.
    whole: bool,
    running_whole: bool,
}

impl SnapshotPlan {
    pub fn new(newest: Index, store: Store) -> SnapshotPlan {
        SnapshotPlan { newest, boundary: (newest, store), ..SnapshotPlan::default() }
    }

    pub fn newest(&self) -> Index {
        self.newest
    }

    pub fn boundary_mut(&mut self) -> &mut Store {
        &mut self.boundary.1
    }

    pub fn changed(&mut self, keys: Vec<Key>) {
        self.beyond.extend(keys);
    }

    /// A boundary has been reached.
    pub fn due(&mut self, meta: SnapshotMeta, origin: Index, store: Store) {
        self.boundary = (meta.index(), store);
        self.upto_due.extend(self.beyond.drain(..));
        self.due = Some((meta, origin));
    }

    /// When the next snapshot may start, if one is due.
    pub fn deadline(&self) -> Time {
        match (&self.due, &self.running) {
            (Some(_), None) => self.started + PAUSE,
            _ => Time::NEVER,
        }
    }

    /// The newest due snapshot, if it is time for it.
    pub fn start(&mut self, now: Time) -> Option<SnapshotOrder> {
        if now < self.deadline() {
            return None;
        }
        let (meta, origin) = self.due.take()?;
        let store = self.boundary.1.clone();
        let keys = Arc::new(self.upto_due.take());
        self.started = now;
        self.running = Some(keys.clone());
        self.running_whole = self.whole;
        Some(SnapshotOrder { meta, origin, store, keys, whole: self.whole })
    }

    /// The one under way has reached this index; none if it failed.
    pub fn ended(&mut self, reached: Option<Index>) {
        let keys = self.running.take();
        match reached {
            Some(index) => {
                self.newest = self.newest.max(index);
                self.whole &= !self.running_whole;
            }
            // What failed to be written is due again with the next boundary.
            None if mutant::is_on(Mutant::FailedKeysForgotten) => {}
            None => self.upto_due.extend(keys.iter().flat_map(|keys| keys.iter().cloned())),
        }
    }

    /// The state has become another one by these changes, which somebody else writes down at once: the keys that are in no
    /// snapshot yet, or that it must be everything.
    pub fn hand_over(&mut self, at: Index, store: Store, changes: Vec<Key>) -> (Vec<Key>, bool) {
        let whole = self.whole;
        let mut keys = changes;
        keys.append(&mut self.upto_due.take());
        keys.append(&mut self.beyond);
        // What is on its way may yet fail.
        keys.extend(self.running.iter().flat_map(|running| running.iter().cloned()));
        self.forget();
        self.newest = at;
        self.boundary = (at, store);
        (keys, whole)
    }

    /// A snapshot from a peer has replaced the state, and is on disk already.
    pub fn installed(&mut self, at: Index, store: Store) {
        self.forget();
        self.newest = at;
        self.boundary = (at, store);
    }

    /// A restore has replaced the state: the next snapshot starts a chain of its own.
    pub fn start_over(&mut self) {
        self.forget();
        self.whole = true;
        // One that is on its way is of the state before.
        self.running_whole = false;
    }

    fn forget(&mut self) {
        self.due = None;
        self.upto_due = Keys::default();
        self.beyond.clear();
        self.whole = false;
    }
}

/// Keys in no order, some of them several times: whoever writes them down sorts them, on a thread that nobody waits for.
#[derive(Clone, Debug, Default)]
struct Keys {
    noted: Vec<Key>,
    /// How many there were when they had been put together last.
    different: usize,
}

impl Keys {
    fn extend(&mut self, keys: impl IntoIterator<Item = Key>) {
        self.noted.extend(keys);
        if self.noted.len() >= PUT_TOGETHER_FROM.max(2 * self.different) {
            self.noted.sort_unstable();
            self.noted.dedup();
            self.different = self.noted.len();
        }
    }

    fn take(&mut self) -> Vec<Key> {
        std::mem::take(self).noted
    }
}
