//! States in files: written down as snapshots, and loaded again, with everything else that a replica starts with.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::meta::Boundary;
use crate::protocol::{Mode, Recovered, Settings, SnapshotMeta};
use crate::replica::{SnapshotOrder, Start};
use crate::snapshot::{Change, Incoming, Rows, SnapshotError, Snapshots};
use crate::store::{Key, Loader, Store, Unreadable};
use crate::types::{Index, Vector};

/// The snapshot checks, but the store cannot read it.
#[derive(Debug)]
pub enum LoadError {
    Snapshot(SnapshotError),
    Unreadable(Unreadable),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Snapshot(error) => error.fmt(f),
            LoadError::Unreadable(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LoadError {}

impl From<SnapshotError> for LoadError {
    fn from(error: SnapshotError) -> LoadError {
        LoadError::Snapshot(error)
    }
}

impl From<Unreadable> for LoadError {
    fn from(error: Unreadable) -> LoadError {
        LoadError::Unreadable(error)
    }
}

/// The start of a replica: the recovered data, and the newest snapshot.
pub fn starting(
    settings: Settings,
    snapshot_every: Index,
    recovered: Recovered,
    snapshots: &Mutex<Snapshots>,
) -> Result<Start, LoadError> {
    let (base, store) = load_newest(snapshots, settings.mode)?;
    let (snapshot_index, origin) = (base.index(), base.origin);
    Ok(Start { settings, snapshot_every, recovered, store, snapshot_index, origin })
}

fn load_newest(snapshots: &Mutex<Snapshots>, mode: Mode) -> Result<(Boundary, Store), LoadError> {
    let snapshots = lock(snapshots);
    let boundary = snapshots.newest().cloned().unwrap_or_default();
    let mut loader = loader(mode, &boundary.meta);
    snapshots.load(|table, key, value| loader.add(table, key, value).map_err(LoadError::Unreadable))?;
    let store = loader.finish(boundary.meta.at, boundary.meta.stamp);
    Ok((boundary, store))
}

/// A state has merge metadata only in available mode, where histories may split. A snapshot from safe mode has no vector: it
/// is one history up to its end (P31).
fn loader(mode: Mode, meta: &SnapshotMeta) -> Loader {
    match mode {
        Mode::Safe => Loader::default(),
        Mode::Available => Loader::mergeable(meta.vector.clone().unwrap_or_else(|| Vector::linear(meta.at))),
    }
}

/// Reads a received snapshot into a store.
pub fn load(incoming: &Incoming, mode: Mode) -> Result<Store, LoadError> {
    let mut loader = loader(mode, &incoming.boundary().meta);
    incoming.load(|table, key, value| loader.add(table, key, value).map_err(LoadError::Unreadable))?;
    let meta = &incoming.boundary().meta;
    Ok(loader.finish(meta.at, meta.stamp))
}

// Snapshots that a replica orders: each is added to the chain, which then is merged one step at a time.

/// Writes a state as a snapshot. Returns an index that the newest snapshot has reached.
pub fn take(
    snapshots: &Mutex<Snapshots>,
    boundary: Boundary,
    order: SnapshotOrder,
) -> Result<Index, SnapshotError> {
    let index = boundary.index();
    let mut snapshots = lock(snapshots);
    // A snapshot that was installed meanwhile is newer, and is another state.
    if snapshots.newest().is_some_and(|newest| newest.index() >= index) {
        return Ok(index);
    }
    let since = if order.whole { 0 } else { snapshots.newest().map_or(0, Boundary::index) };
    let whole = order.whole;
    // The lock is kept while the file is written, so an installation waits for it. The file has only changes, unless it
    // is the first or comes after a restore.
    snapshots.add(since, boundary, SnapshotRows(order).changes(whole))?;
    Ok(index)
}

/// Does one merge, if one is due. Returns whether there may be another. The lock is not kept while the files are read and
/// written, which may take long: snapshots are taken and installed meanwhile.
pub fn merge_once(snapshots: &Mutex<Snapshots>) -> Result<bool, SnapshotError> {
    let Some(plan) = lock(snapshots).plan_merge()? else {
        return Ok(false);
    };
    let merged = plan.run()?;
    lock(snapshots).commit_merge(merged)
}

/// If a thread panicked while it had the lock, the process has ended.
pub fn lock(snapshots: &Mutex<Snapshots>) -> MutexGuard<'_, Snapshots> {
    snapshots.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The rows of a snapshot, in the form that the files need.
#[derive(Debug)]
pub(super) struct SnapshotRows(pub SnapshotOrder);

impl Rows for SnapshotRows {
    fn changes(&self, whole: bool) -> Box<dyn Iterator<Item = Change<'_>> + '_> {
        let row = |(key, value): (Key, Option<String>)| Change {
            table: key.table(),
            key: key.name().into(),
            value: value.map(Into::into),
        };
        Box::new(self.0.rows(whole).map(row))
    }
}
