//! States that are handed from side to side, and a state that goes on from another history.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

use super::End;
use super::api::Brought;
use super::engine::Engine;
use super::handed::{DIFFERENCE_BYTES_MOST, Handed};
use super::held::Message as HeldMessage;
use super::taker::Changed;
use super::transport::{Cargo, Freight, Packed};
use crate::protocol::{Fault, Message, Seq, SnapshotMeta, Term};
use crate::storage::snapshot::{Rebase, Snapshots};
use crate::storage::{Boundary, Job};
use crate::store::{Key, Store};
use crate::types::{NodeId, Vector};
use crate::wire::Parcel;

/// The committed state as it was when the core said so, on its way to one that lacks a part of it.
#[derive(Debug)]
pub struct Share {
    parcel: Parcel,
    freight: Freight,
    base: Vector,
    boundary: Boundary,
    store: Store,
    /// What goes instead if the difference cannot be told, or is too large: the newest snapshot, or else everything.
    instead: Option<Parcel>,
}

impl Share {
    /// Finds out what to send. This takes a while, and must not keep the loop.
    fn pack(self, snapshots: &Mutex<Snapshots>) -> Packed {
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
            Some(parcel) if cargo.length() > DIFFERENCE_BYTES_MOST => newest(snapshots, parcel),
            _ => Ok(Some((parcel, cargo))),
        }
    }
}

/// Opens the newest snapshot's files, which may have to wait for one being written.
fn newest(snapshots: &Mutex<Snapshots>, parcel: Parcel) -> Packed {
    let export = snapshots.lock().unwrap_or_else(PoisonError::into_inner).export()?;
    Ok(export.map(|export| (parcel, Cargo::Snapshot(export))))
}

impl Engine {
    pub fn send_merge(&mut self, to: NodeId, base: Vector, after: Seq) {
        let epoch = self.core.vote().promise.epoch;
        let message = Message::Merge { epoch, base: base.clone(), meta: self.meta.clone() };
        self.share(to, Freight::Merge, message, base, None, after);
    }

    pub fn send_override(&mut self, to: NodeId, term: Term, base: Vector, after: Seq) {
        let meta = self.meta.clone();
        let instead = self.parcel(to, Message::Snapshot { term, meta: SnapshotMeta::default() });
        let message = Message::Override { term, base: base.clone(), meta };
        self.share(to, Freight::Override, message, base, Some(instead), after);
    }

    fn share(
        &mut self,
        to: NodeId,
        freight: Freight,
        message: Message,
        base: Vector,
        instead: Option<Parcel>,
        after: Seq,
    ) {
        let store = self.states.committed().clone();
        // What is staged for a restore is no part of a difference. The core says it again.
        if store.is_restoring() || self.network.is_busy(to, freight) {
            return;
        }
        let Some(boundary) = self.boundary_now() else {
            return self.end = Some(End::Broken("a state to send that the log does not know"));
        };
        let parcel = self.parcel(to, message);
        let share = Share { parcel, freight, base, boundary, store, instead };
        self.send_when(after, HeldMessage::Difference(Box::new(share)));
    }

    fn parcel(&self, to: NodeId, message: Message) -> Parcel {
        Parcel::new(&self.core.envelope(to, message), Bytes::new(), 0)
    }

    /// The committed state's.
    fn boundary_now(&self) -> Option<Boundary> {
        let chain = self.lines.chain_at(self.meta.index())?;
        Some(Boundary { meta: self.meta.clone(), chain, origin: self.origin })
    }

    pub fn transmit_difference(&self, share: Share) {
        let Some(lane) = self.network.lane(share.parcel.sender.to, share.freight) else {
            return;
        };
        let snapshots = self.snapshots.clone();
        tokio::spawn(async move {
            let packed = tokio::task::spawn_blocking(move || share.pack(&snapshots)).await;
            lane.send_packed(packed).await;
        });
    }

    pub fn transmit_snapshot(&self, to: NodeId, term: Term) {
        let Some(lane) = self.network.lane(to, Freight::Snapshot) else {
            return;
        };
        let parcel = self.parcel(to, Message::Snapshot { term, meta: SnapshotMeta::default() });
        let snapshots = self.snapshots.clone();
        tokio::spawn(async move {
            let packed = tokio::task::spawn_blocking(move || newest(&snapshots, parcel)).await;
            lane.send_packed(packed).await;
        });
    }

    pub fn merge(&mut self, own: &Vector, theirs: &Vector, meta: SnapshotMeta) {
        let Some(handed) = self.take_handed() else {
            return;
        };
        let state = self.states.committed();
        match state.merged(own, &handed.difference, theirs, meta.at, meta.stamp) {
            Ok(merged) => {
                let (conflicts, changed) = (merged.conflicts, merged.changes.len());
                tracing::warn!(at = %meta.at, changed, conflicts, "another side's state is merged into this one");
                // The sides agree on what comes from here on only.
                let boundary = Boundary { chain: 0, origin: meta.index(), meta };
                self.become_merged("merged", merged.store, merged.changes, boundary);
            }
            Err(error) => self.end = Some(End::Unreadable { index: meta.index(), error }),
        }
    }

    pub fn be_overridden(&mut self, meta: SnapshotMeta) {
        let Some(handed) = self.take_handed() else {
            return;
        };
        let Handed { boundary, digest, difference } = *handed;
        match self.states.committed().overridden(&difference, meta.at, meta.stamp) {
            Ok((store, _)) if store.digest() != digest => {
                tracing::error!(at = %meta.at, "the state is not what it should have become");
                self.end = Some(End::Fault(Fault::Odd));
            }
            Ok((store, changes)) => {
                let (chain, origin) = (boundary.chain, boundary.origin);
                self.become_merged("overridden", store, changes, Boundary { meta, chain, origin });
            }
            Err(error) => self.end = Some(End::Unreadable { index: meta.index(), error }),
        }
    }

    fn take_handed(&mut self) -> Option<Box<Handed>> {
        match self.brought.take() {
            Some(Brought::Difference(handed)) => Some(handed),
            // The core merges nothing but what came with the message being handled.
            _ => {
                self.end = Some(End::Broken("a state to take in that nobody sent"));
                None
            }
        }
    }

    fn become_merged(&mut self, how: &str, store: Store, changes: Vec<Key>, boundary: Boundary) {
        let before = self.states.committed().clone();
        self.states.restore(store);
        self.leasing.start_over();
        self.tell_merged(how, boundary.meta.at, &changes, &before);
        self.taker.changed(changes);
        self.meta = boundary.meta.clone();
        self.origin = boundary.origin;
        self.rebased = Some(boundary);
    }

    /// The disk follows what the state has just become.
    pub fn rebase(&mut self) -> Option<Job> {
        let boundary = self.rebased.take()?;
        let store = self.states.committed().clone();
        let id = (boundary.index() - boundary.origin) / self.setup.snapshot_every;
        self.boundary = Some((id, boundary.index(), store.clone()));
        self.snapshot_index = boundary.index();
        self.lines.reset(&boundary);
        let (keys, whole) = self.taker.hand_over();
        Some(Job::Rebase(Rebase { boundary, rows: Box::new(Changed { store, keys }), whole }))
    }
}
