//! What is sent of a state to another node: what that one lacks, or the newest snapshot.

use std::sync::{Mutex, PoisonError};

use super::transport::{Packed, TransferContent, TransferKind};
use crate::storage::Boundary;
use crate::storage::node::SentDifference;
use crate::storage::snapshot::Snapshots;
use crate::store::Store;
use crate::types::{Digest, Vector};
use crate::wire::Packet;

/// The committed state as it was when the core said so, on its way to one that lacks a part of it.
#[derive(Debug)]
pub struct TransferSource {
    pub packet: Packet,
    pub kind: TransferKind,
    pub base: Vector,
    pub boundary: Boundary,
    pub store: Store,
    /// What goes instead if the difference cannot be told, or is too large: the newest snapshot, or else everything.
    pub instead: Option<Packet>,
}

impl TransferSource {
    /// Finds out what to send. This takes a while, and must not keep the loop.
    pub fn pack(self, snapshots: &Mutex<Snapshots>, most: u64) -> Packed {
        let TransferSource { packet, base, boundary, store, instead, .. } = self;
        let difference = match (store.difference(&base), &instead) {
            (Some(difference), _) => difference,
            (None, None) => store.whole(),
            (None, Some(snapshot)) => return newest(snapshots, snapshot.clone()),
        };
        let handed = SentDifference { boundary, digest: Digest::new(store.digest()), difference };
        let content = TransferContent::difference(handed);
        match instead {
            // Nobody would take it; a snapshot is not held in memory as text.
            Some(packet) if content.length() > most => newest(snapshots, packet),
            _ => Ok(Some((packet, content))),
        }
    }
}

/// Opens the newest snapshot's files, which may have to wait for one being written.
pub fn newest(snapshots: &Mutex<Snapshots>, packet: Packet) -> Packed {
    let export = snapshots.lock().unwrap_or_else(PoisonError::into_inner).export()?;
    Ok(export.map(|export| (packet, TransferContent::Snapshot(export))))
}
