//! States on their way to other nodes: what one lacks of this node's state, or the newest snapshot.

use bytes::Bytes;

use super::end::End;
use super::engine::Engine;
use super::transfer::{TransferSource, newest};
use super::transport::TransferKind;
use super::unsynced::Message as Waiting;
use crate::protocol::{Message, SnapshotMeta, Term};
use crate::replica::Outgoing;
use crate::types::NodeId;
use crate::wire::Packet;

impl Engine {
    pub fn send_state(&mut self, outgoing: Outgoing) {
        let kind = if outgoing.is_merge() { TransferKind::Merge } else { TransferKind::Override };
        // The core says it again.
        if self.network.is_busy(outgoing.envelope.to, kind) {
            return;
        }
        let base = outgoing.base();
        let Outgoing { envelope, meta, origin, store, instead, after } = outgoing;
        let Some(boundary) = self.disk.encoder.boundary(&meta, origin) else {
            return self.end = Some(End::Broken("a state to send that the log does not know"));
        };
        let packet = Packet::new(&envelope, Bytes::new(), 0);
        let instead = instead.map(|envelope| Packet::new(&envelope, Bytes::new(), 0));
        let source = TransferSource { packet, kind, base, boundary, store, instead };
        self.send_when(after, Waiting::Difference(Box::new(source)));
    }

    pub fn transmit_difference(&self, source: TransferSource) {
        let Some(permit) = self.network.permit(source.packet.sender.to, source.kind) else {
            return;
        };
        let (snapshots, most) = (self.snapshots.clone(), self.setup.settings.limits.merge_bytes);
        tokio::spawn(async move {
            let packed = tokio::task::spawn_blocking(move || source.pack(&snapshots, most)).await;
            permit.send_packed(packed).await;
        });
    }

    pub fn transmit_snapshot(&self, to: NodeId, term: Term) {
        let Some(permit) = self.network.permit(to, TransferKind::Snapshot) else {
            return;
        };
        let message = Message::Snapshot { term, meta: SnapshotMeta::default() };
        let packet = Packet::new(&self.replica.core().envelope(to, message), Bytes::new(), 0);
        let snapshots = self.snapshots.clone();
        tokio::spawn(async move {
            let packed = tokio::task::spawn_blocking(move || newest(&snapshots, packet)).await;
            permit.send_packed(packed).await;
        });
    }
}
