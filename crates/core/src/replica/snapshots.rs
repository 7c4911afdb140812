//! The plan of snapshots: when one is due, and what it must contain. One is due at every boundary, at most one is being
//! written, and the newest due one is next (P26).
//!
//! ```text
//!    newest            running               due
//!      │ keys: running   │ keys: upto_due      │ keys: beyond
//!  ────┴─────────────────┴─────────────────────┴────────────► records
//! ```
//! The keys say what each snapshot has to write. If a key is lost on the way, later snapshots of the chain
//! lack its change (mutant `FailedKeysForgotten`).

use std::sync::Arc;

use super::io::SnapshotOrder;
use crate::protocol::SnapshotMeta;
use crate::protocol::mutant::{self, Mutant};
use crate::store::{Key, Store};
use crate::types::{Index, Span, Time};

/// The time between the starts of two snapshots. At full speed a boundary is due a thousand times a second, and each snapshot costs a
/// sync of the disk that writes wait for.
const PAUSE: Span = Span::millis(100);

/// From this number of noted keys on, repeated keys are merged: a slow disk does not let the list grow beyond twice the number of changed
/// keys.
const PUT_TOGETHER_FROM: usize = 8192;

#[derive(Clone, Debug, Default)]
pub(in crate::replica) struct SnapshotPlan {
    /// The index of the newest finished snapshot.
    newest: Index,
    /// The state at the newest boundary, or the state that this node began with, which is a boundary, too.
    boundary: (Index, Store),
    /// The newest boundary that has no snapshot yet.
    due: Option<(SnapshotMeta, Index)>,
    /// Keys that have changed since the newest snapshot: up to the boundary that is due, and beyond it.
    upto_due: Keys,
    beyond: Vec<Key>,
    /// The keys of the snapshot that is being written. If it fails, they are still to be written.
    running: Option<Arc<Vec<Key>>>,
    started: Time,
    /// The next snapshot has the whole state, because a restore has replaced it.
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

    /// A boundary has been reached. An earlier one that is still due gets no snapshot: the next snapshot has its changes as
    /// well.
    pub fn due(&mut self, meta: SnapshotMeta, origin: Index, store: Store) {
        self.boundary = (meta.index(), store);
        self.upto_due.extend(self.beyond.drain(..));
        self.due = Some((meta, origin));
    }

    /// The time when the next snapshot may start, if one is due.
    pub fn deadline(&self) -> Time {
        match (&self.due, &self.running) {
            (Some(_), None) => self.started + PAUSE,
            _ => Time::NEVER,
        }
    }

    /// The newest due snapshot, if its time has come.
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

    /// The snapshot under way has reached this index; `None` if it failed.
    pub fn ended(&mut self, reached: Option<Index>) {
        let keys = self.running.take();
        match reached {
            Some(index) => {
                self.newest = self.newest.max(index);
                // The next snapshot is an ordinary one again only if the one that ended was whole, and no restore has
                // come since.
                self.whole &= !self.running_whole;
            }
            // Keys that were not written are due again with the next snapshot.
            None if mutant::is_on(Mutant::FailedKeysForgotten) => {}
            None => self.upto_due.extend(keys.iter().flat_map(|keys| keys.iter().cloned())),
        }
    }

    /// The state has become another one by these changes, and the caller has it written to disk at once. Returns the keys that are in no
    /// snapshot yet, and whether everything must be written.
    pub fn hand_over(&mut self, at: Index, store: Store, changes: Vec<Key>) -> (Vec<Key>, bool) {
        let whole = self.whole;
        let mut keys = changes;
        keys.append(&mut self.upto_due.take());
        keys.append(&mut self.beyond);
        // The snapshot that is being written may yet fail.
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

    /// A restore has replaced the state, so the next snapshot starts a new chain.
    pub fn start_over(&mut self) {
        self.forget();
        self.whole = true;
        // A snapshot that is being written is of the state before the restore.
        self.running_whole = false;
    }

    fn forget(&mut self) {
        self.due = None;
        self.upto_due = Keys::default();
        self.beyond.clear();
        self.whole = false;
    }
}

/// Keys in no order, some of them several times. The snapshot writer sorts them, on a thread that no caller waits for.
#[derive(Clone, Debug, Default)]
struct Keys {
    noted: Vec<Key>,
    /// The number of keys after repeated keys were last merged.
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
