//! States that are handed from side to side, and a state that goes on from another history (P33, P34).

use super::feed;
use super::io::{Brought, DiskWrite, End, Out, Outgoing, SnapshotOrder, StateTransfer};
use super::state::{Rebase, Replica};
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::{After, Envelope, Fault, Impasse, Input, Message, SnapshotMeta, Term};
use crate::store::{Key, Merged, Store};
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

    /// Finds out beforehand what a merge comes to: once the core has merged there is no way back. False if it must not take place,
    /// because the journal has no room for what it would override (P48).
    pub(super) fn prepare_merge(&mut self, envelope: &Envelope) -> bool {
        let Message::Merge { .. } = &envelope.message else { return true };
        let Some(Brought::Difference(sent)) = &self.brought else { return true };
        let Some((own, theirs, meta)) = self.core.would_merge(self.now, envelope) else { return true };
        let merged = self.committed().merged(&own, &sent.difference, &theirs, meta.at, meta.stamp);
        // What cannot be read is said when it is merged.
        let Ok(merged) = merged else { return true };
        if let Some(why) = self.journal_is_over(&merged) {
            self.inputs.push_back(Input::MergeFails { other: envelope.from, why });
            return false;
        }
        self.prepared = Some((meta, merged));
        true
    }

    fn journal_is_over(&self, merged: &Merged) -> Option<Impasse> {
        let limits = &self.core.settings().limits;
        let (entries, bytes) = (merged.store.conflict_count(), merged.store.conflict_bytes());
        let over = entries > limits.conflicts || bytes > limits.conflict_bytes;
        // Where a merge adds nothing to the journal, there is nothing to wait for.
        let more = merged.conflicts > 0 && !mutant::is_on(Mutant::JournalUnbounded);
        (over && more).then_some(Impasse::JournalFull { entries, bytes })
    }

    /// The elder takes the younger's data in.
    pub(super) fn merge(&mut self, own: &Vector, theirs: &Vector, meta: SnapshotMeta) {
        let Some(sent) = self.take_transfer() else {
            return;
        };
        let prepared = self.prepared.take().filter(|(at, _)| *at == meta).map(|(_, merged)| merged);
        let merged = match prepared {
            Some(merged) => Ok(merged),
            None => self.committed().merged(own, &sent.difference, theirs, meta.at, meta.stamp),
        };
        match merged {
            // The sides agree on what comes from here on only: a chain of checksums of their own begins.
            Ok(merged) => {
                let origin = meta.index();
                self.become_merged("merged", merged.store, merged.changes, Rebase { meta, origin, chain: 0 });
            }
            Err(error) => self.end(End::Unreadable { index: meta.index(), error }),
        }
    }

    /// A follower is brought up to a state that includes its own.
    pub(super) fn be_overridden(&mut self, meta: SnapshotMeta) {
        let Some(sent) = self.take_transfer() else {
            return;
        };
        let StateTransfer { origin, chain, digest, difference, .. } = *sent;
        match self.committed().overridden(&difference, meta.at, meta.stamp) {
            // The state is not what it should have become.
            Ok((store, _)) if store.digest() != digest => self.end(End::Fault(Fault::Odd)),
            Ok((store, changes)) => {
                self.become_merged("overridden", store, changes, Rebase { meta, origin, chain });
            }
            Err(error) => self.end(End::Unreadable { index: meta.index(), error }),
        }
    }

    fn take_transfer(&mut self) -> Option<Box<StateTransfer>> {
        match self.brought.take() {
            Some(Brought::Difference(transfer)) => Some(transfer),
            // The core merges nothing but what came with the message being handled.
            _ => {
                self.end(End::Broken("a state to take in that nobody sent"));
                None
            }
        }
    }

    fn become_merged(&mut self, how: &str, store: Store, changes: Vec<Key>, rebase: Rebase) {
        let told = feed::of_merge(how, rebase.meta.at, &store, self.committed(), &changes);
        self.out.push(Out::Feed(told));
        self.versions.replace(store, rebase.meta.clone(), rebase.origin);
        self.roles.start_over();
        self.snapshots.changed(changes);
        self.rebase = Some(rebase);
    }

    /// The disk follows what the state has just become.
    pub(super) fn rebase_disk(&mut self) -> Option<DiskWrite> {
        let Some(Rebase { meta, origin, chain }) = self.rebase.take() else {
            // Where the state is odd, or could not be read, that is what people are told.
            self.end(End::Broken("a log to begin anew without a merge"));
            return None;
        };
        let store = self.committed().clone();
        let (keys, whole) = self.snapshots.hand_over(meta.index(), store.clone());
        let order = SnapshotOrder { meta, origin, store, keys: keys.into(), whole };
        Some(DiskWrite::Rebase(Box::new(order), chain))
    }

    /// The snapshot that came with this message replaces everything.
    pub(super) fn install(&mut self) -> Option<DiskWrite> {
        let Some(Brought::Snapshot { meta, origin, store }) = self.brought.take() else {
            // The core installs nothing but what came with the message being handled.
            self.end(End::Broken("a snapshot to install that nobody sent"));
            return None;
        };
        self.snapshots.installed(meta.index(), (*store).clone());
        self.versions.replace(*store, meta, origin);
        self.roles.start_over();
        Some(DiskWrite::Install)
    }
}
