//! What is sent of a state to another node: what that one lacks, or the newest snapshot.

use std::sync::{Mutex, PoisonError};

use super::transport::{Cargo, Freight, Packed};
use crate::storage::Boundary;
use crate::storage::node::Handed;
use crate::storage::snapshot::Snapshots;
use crate::store::Store;
use crate::types::Vector;
use crate::wire::Parcel;

/// The committed state as it was when the core said so, on its way to one that lacks a part of it.
#[derive(Debug)]
pub struct Share {
    pub parcel: Parcel,
    pub freight: Freight,
    pub base: Vector,
    pub boundary: Boundary,
    pub store: Store,
    /// What goes instead if the difference cannot be told, or is too large: the newest snapshot, or else everything.
    pub instead: Option<Parcel>,
}

impl Share {
    /// Finds out what to send. This takes a while, and must not keep the loop.
    pub fn pack(self, snapshots: &Mutex<Snapshots>, most: u64) -> Packed {
        let Share { parcel, base, boundary, store, instead, .. } = self;
        let difference = match (store.difference(&base), &instead) {
            (Some(difference), _) => difference,
            (None, None) => store.whole(),
            (None, Some(snapshot)) => return newest(snapshots, snapshot.clone()),
        };
        let handed = Handed { boundary, digest: store.digest(), difference };
        let cargo = Cargo::difference(handed);
        match instead {
            // Nobody would take it; a snapshot is not held in memory as text.
            Some(parcel) if cargo.length() > most => newest(snapshots, parcel),
            _ => Ok(Some((parcel, cargo))),
        }
    }
}

/// Opens the newest snapshot's files, which may have to wait for one being written.
pub fn newest(snapshots: &Mutex<Snapshots>, parcel: Parcel) -> Packed {
    let export = snapshots.lock().unwrap_or_else(PoisonError::into_inner).export()?;
    Ok(export.map(|export| (parcel, Cargo::Snapshot(export))))
}
