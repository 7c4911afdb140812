//! States on their way to other nodes: what one lacks of this node's state, or the newest snapshot.

use bytes::Bytes;

use super::end::End;
use super::engine::Engine;
use super::share::{Share, newest};
use super::transport::Freight;
use super::unsynced::Message as Waiting;
use crate::protocol::{Message, SnapshotMeta, Term};
use crate::replica::Outgoing;
use crate::types::NodeId;
use crate::wire::Parcel;

impl Engine {
    pub fn send_state(&mut self, outgoing: Outgoing) {
        let freight = if outgoing.is_merge() { Freight::Merge } else { Freight::Override };
        // The core says it again.
        if self.network.is_busy(outgoing.envelope.to, freight) {
            return;
        }
        let base = outgoing.base();
        let Outgoing { envelope, meta, origin, store, instead, after } = outgoing;
        let Some(boundary) = self.disk.encoder.boundary(&meta, origin) else {
            return self.end = Some(End::Broken("a state to send that the log does not know"));
        };
        let parcel = Parcel::new(&envelope, Bytes::new(), 0);
        let instead = instead.map(|envelope| Parcel::new(&envelope, Bytes::new(), 0));
        let share = Share { parcel, freight, base, boundary, store, instead };
        self.send_when(after, Waiting::Difference(Box::new(share)));
    }

    pub fn transmit_difference(&self, share: Share) {
        let Some(lane) = self.network.lane(share.parcel.sender.to, share.freight) else {
            return;
        };
        let (snapshots, most) = (self.snapshots.clone(), self.setup.settings.limits.merge_bytes);
        tokio::spawn(async move {
            let packed = tokio::task::spawn_blocking(move || share.pack(&snapshots, most)).await;
            lane.send_packed(packed).await;
        });
    }

    pub fn transmit_snapshot(&self, to: NodeId, term: Term) {
        let Some(lane) = self.network.lane(to, Freight::Snapshot) else {
            return;
        };
        let message = Message::Snapshot { term, meta: SnapshotMeta::default() };
        let parcel = Parcel::new(&self.replica.core().envelope(to, message), Bytes::new(), 0);
        let snapshots = self.snapshots.clone();
        tokio::spawn(async move {
            let packed = tokio::task::spawn_blocking(move || newest(&snapshots, parcel)).await;
            lane.send_packed(packed).await;
        });
    }
}
