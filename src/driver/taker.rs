//! Snapshots in the background: one due at every boundary, at most one on its way, the newest due one next (P26).

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use crate::storage::Boundary;
use crate::storage::snapshot::{Change, Rows, SnapshotError, Snapshots};
use crate::store::{Key, Store};
use crate::types::{Index, Span, Time};

/// Between the starts of two snapshots: at full speed a boundary is due a thousand times a second, and each snapshot
/// costs a sync of the disk that writes wait for.
const PAUSE: Span = Span::millis(100);

/// What became of a snapshot.
pub type Taken = Result<Index, SnapshotError>;

#[derive(Debug)]
pub struct Taker {
    jobs: SyncSender<Job>,
    /// The newest boundary that has no snapshot yet.
    due: Option<(Boundary, Store)>,
    /// Keys changed since the newest snapshot, up to the boundary that is due, and beyond it.
    upto_due: BTreeSet<Key>,
    beyond: BTreeSet<Key>,
    /// What is on its way: if it fails, its keys are still to be written.
    running: Option<Arc<BTreeSet<Key>>>,
    started: Time,
    /// The next snapshot is of the whole state: a restore has replaced it.
    whole: bool,
    running_whole: bool,
}

#[derive(Debug)]
struct Job {
    whole: bool,
    boundary: Boundary,
    store: Store,
    keys: Arc<BTreeSet<Key>>,
}

impl Taker {
    /// `tell` hears of every snapshot's end, on the snapshots' own thread.
    pub fn start(
        snapshots: Arc<Mutex<Snapshots>>,
        tell: impl Fn(Taken) + Send + 'static,
    ) -> std::io::Result<Taker> {
        let (jobs, queue) = sync_channel(1);
        let (wake, woken) = sync_channel(1);
        let chain = snapshots.clone();
        thread::Builder::new().name("snapshots".to_string()).spawn(move || {
            for job in queue {
                tell(take(&chain, job));
                // A full queue means that the merger has been woken already.
                let _ = wake.try_send(());
            }
        })?;
        thread::Builder::new().name("merges".to_string()).spawn(move || merge_all(&snapshots, &woken))?;
        Ok(Taker {
            jobs,
            due: None,
            upto_due: BTreeSet::new(),
            beyond: BTreeSet::new(),
            running: None,
            started: Time::default(),
            whole: false,
            running_whole: false,
        })
    }

    pub fn changed(&mut self, keys: Vec<Key>) {
        self.beyond.extend(keys);
    }

    pub fn due(&mut self, boundary: Boundary, store: Store) {
        self.upto_due.append(&mut self.beyond);
        self.due = Some((boundary, store));
    }

    /// When the next snapshot may start, if one is due.
    pub fn deadline(&self) -> Time {
        match (&self.due, &self.running) {
            (Some(_), None) => self.started + PAUSE,
            _ => Time::NEVER,
        }
    }

    /// Starts the newest due snapshot, if it is time.
    pub fn settle(&mut self, now: Time) {
        if now < self.deadline() {
            return;
        }
        let Some((boundary, store)) = self.due.take() else {
            return;
        };
        let keys = Arc::new(std::mem::take(&mut self.upto_due));
        self.started = now;
        self.running = Some(keys.clone());
        self.running_whole = self.whole;
        // There is room: at most one is on its way. A thread that has ended has ended the process.
        let _ = self.jobs.try_send(Job { whole: self.whole, boundary, store, keys });
    }

    pub fn ended(&mut self, taken: &Taken) {
        let keys = self.running.take();
        self.whole &= !(self.running_whole && taken.is_ok());
        if let (Err(_), Some(keys)) = (taken, keys) {
            // What failed to be written is due again with the next boundary.
            self.upto_due.extend(keys.iter().cloned());
        }
    }

    /// The keys that are in no snapshot yet, or that it must be everything: somebody else writes it down.
    pub fn hand_over(&mut self) -> (BTreeSet<Key>, bool) {
        let (mut keys, whole) = (std::mem::take(&mut self.upto_due), self.whole);
        keys.append(&mut self.beyond);
        // What is on its way may yet fail.
        keys.extend(self.running.iter().flat_map(|running| running.iter().cloned()));
        self.forget();
        (keys, whole)
    }

    /// A snapshot from a peer has replaced the state, and is on disk already.
    pub fn forget(&mut self) {
        self.due = None;
        self.upto_due.clear();
        self.beyond.clear();
        self.whole = false;
    }

    /// A restore has replaced the state: the next snapshot starts a chain of its own.
    pub fn start_over(&mut self) {
        self.forget();
        self.whole = true;
        // One that is on its way is of the state before.
        self.running_whole = false;
    }
}

fn take(snapshots: &Mutex<Snapshots>, job: Job) -> Taken {
    let Job { whole, boundary, store, keys } = job;
    let index = boundary.index();
    let mut snapshots = lock(snapshots);
    // One that was installed meanwhile is newer, and its state is another.
    if snapshots.newest().is_some_and(|newest| newest.index() >= index) {
        return Ok(index);
    }
    if whole {
        snapshots.add(0, boundary, everything(&store))?;
        return Ok(index);
    }
    let since = snapshots.newest().map_or(0, Boundary::index);
    snapshots.add(since, boundary, changes(&store, &keys))?;
    Ok(index)
}

fn everything(store: &Store) -> impl Iterator<Item = Change<'_>> {
    let row = |(key, value): (Key, String)| Change {
        table: key.table(),
        key: key.name().into(),
        value: Some(value.into()),
    };
    store.entries().map(row)
}

fn changes<'a>(store: &'a Store, keys: &'a BTreeSet<Key>) -> impl Iterator<Item = Change<'a>> {
    keys.iter().map(|key| Change {
        table: key.table(),
        key: key.name().into(),
        value: store.entry(key).map(Into::into),
    })
}

/// A frozen state, and the keys that are in no snapshot of it.
#[derive(Debug)]
pub struct Changed {
    pub store: Store,
    pub keys: BTreeSet<Key>,
}

impl Rows for Changed {
    fn changes(&self, whole: bool) -> Box<dyn Iterator<Item = Change<'_>> + '_> {
        match whole {
            true => Box::new(everything(&self.store)),
            false => Box::new(changes(&self.store, &self.keys)),
        }
    }
}

fn merge_all(snapshots: &Mutex<Snapshots>, woken: &Receiver<()>) {
    while woken.recv().is_ok() {
        loop {
            match merge_once(snapshots) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    // The chain is as good as before, only longer. The next snapshot asks again.
                    tracing::warn!(%error, "snapshots could not be merged");
                    break;
                }
            }
        }
    }
}

/// One merge, if one is due.
fn merge_once(snapshots: &Mutex<Snapshots>) -> Result<bool, SnapshotError> {
    let Some(plan) = lock(snapshots).plan_merge()? else {
        return Ok(false);
    };
    let merged = plan.run()?;
    lock(snapshots).commit_merge(merged)
}

fn lock(snapshots: &Mutex<Snapshots>) -> MutexGuard<'_, Snapshots> {
    snapshots.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
