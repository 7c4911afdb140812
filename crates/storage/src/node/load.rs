//! States from their files into memory, and all that a replica starts with.

use std::fmt;
use std::sync::Mutex;

use super::snapshots::lock;
use crate::meta::Boundary;
use crate::protocol::{Mode, Recovered, Settings, SnapshotMeta};
use crate::replica::Start;
use crate::snapshot::{Incoming, SnapshotError, Snapshots};
use crate::store::{Loader, Store, Unreadable};
use crate::types::{Index, Vector};

/// A snapshot checks, and still cannot be read into a store.
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

/// What a replica starts with: what was recovered, and the newest snapshot.
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

/// Only where histories may part does a state remember more than what is in it.
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
