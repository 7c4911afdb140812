//! States that go to other nodes (P33, P34), and whole ones that come (P26).

use super::io::{Brought, Discarded, DiskWrite, End, Out, Outgoing};
use super::state::Replica;
use crate::protocol::{After, Message, SnapshotMeta, Term};
use crate::types::{NodeId, Vector};

impl Replica {
    pub(super) fn send_merge(&mut self, to: NodeId, base: Vector, after: After) {
        let epoch = self.core.vote().promise.epoch;
        let meta = self.versions.meta().clone();
        self.send_state(to, Message::Merge { epoch, base, meta }, None, after);
    }

    pub(super) fn send_override(&mut self, to: NodeId, term: Term, base: Vector, after: After) {
        // Whoever is brought up to this state has its next records to apply, and would lack what is staged for them. The core
        // says it again. What is handed in, on the other hand, is replaced by what it is merged into, staged parts and all.
        if self.committed().is_restoring() {
            return;
        }
        let meta = self.versions.meta().clone();
        let instead = Message::Snapshot { term, meta: SnapshotMeta::default() };
        self.send_state(to, Message::Override { term, base, meta }, Some(instead), after);
    }

    fn send_state(&mut self, to: NodeId, message: Message, instead: Option<Message>, after: After) {
        let store = self.committed().clone();
        let envelope = self.core.envelope(to, message);
        let instead = instead.map(|message| self.core.envelope(to, message));
        let (meta, origin) = (self.versions.meta().clone(), self.versions.origin());
        let outgoing = Outgoing { envelope, meta, origin, store, instead, after };
        self.out.push(Out::SendState(Box::new(outgoing)));
    }

    /// The snapshot that came with this message replaces everything.
    pub(super) fn install(&mut self) -> Option<DiskWrite> {
        let Some(Brought::Snapshot { meta, origin, store }) = self.brought.take() else {
            // The core installs nothing but what came with the message being handled.
            self.end(End::Broken("a snapshot to install that nobody sent"));
            return None;
        };
        self.snapshots.installed(meta.index(), (*store).clone());
        let before = self.versions.replace(*store, meta, origin);
        self.out.push(Out::Discard(Discarded::Store(before.into())));
        self.roles.start_over();
        Some(DiskWrite::Install)
    }
}
