//! States on their way: snapshots that are due, states sent to other nodes, and those that come taken in.

use super::feed;
use super::io::{
    Brought, Discarded, DiskWrite, End, NewState, Out, Outgoing, Preparation, Prepared, SnapshotOrder,
    StateTransfer,
};
use super::state::{Basis, Rebase, Replica, TakingIn};
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::{After, Envelope, Fault, Impasse, Input, Message, SnapshotMeta, Taking, Term};
use crate::store::Key;
use crate::types::{Digest, Index, NodeId, Owner, Position, Record, Time, Vector};

// When a snapshot is due, and what it must hold: one at every boundary, at most one on its way, the newest due one next
// (P26).
impl Replica {
    pub(super) fn settle_snapshots(&mut self) {
        if self.now.mono >= self.next_snapshot() {
            let order = self.snapshots.start(self.now.mono);
            self.out.extend(order.map(|order| Out::Snapshot(order.into())));
        }
    }

    /// When the next snapshot may start. One that is still to be installed would take the place of a newer one; and beside a
    /// disk that does not have this node's promise yet, records of that epoch would look as if the disk had lost it.
    pub(super) fn next_snapshot(&self) -> Time {
        let installs = self.core.is_installing() && !mutant::is_on(Mutant::SnapshotBeforeInstalled);
        let promises = !self.core.promise_is_durable() && !mutant::is_on(Mutant::SnapshotBeforePromise);
        if installs || promises { Time::NEVER } else { self.snapshots.deadline() }
    }
}

impl SnapshotOrder {
    /// The rows that it writes: every entry of the state, or what has changed since the newest snapshot, each with its value
    /// as JSON on one line, or none where it is gone.
    pub fn rows(&self, whole: bool) -> Box<dyn Iterator<Item = (Key, Option<String>)> + '_> {
        let kept = |key: &Key| !(mutant::is_on(Mutant::KeysForgotten) && matches!(key, Key::Call(_)));
        if whole {
            return Box::new(
                self.store.entries().filter(move |(key, _)| kept(key)).map(|(key, value)| (key, Some(value))),
            );
        }
        let mut keys: Vec<&Key> = self.keys.iter().filter(|key| kept(key)).collect();
        keys.sort_unstable();
        keys.dedup();
        Box::new(keys.into_iter().map(|key| (key.clone(), self.store.entry(key))))
    }
}

// States that go to other nodes (P33, P34), and whole ones that come (P26).
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

// States that come from other nodes are taken in: merges and overrides (P33, P34), without keeping everything else (P49).
// ```text
//   message, difference ──► the protocol would take it ──► Out::Prepare       the state costs a few pointers
//                                                              │ run, beside all that goes on here
//   the protocol takes it ◄── it stands yet, nothing is on its way ◄── In::Prepared
// ```
// The protocol hears of the message once its outcome is there. Until then nothing has changed: who dies, or is told something
// else meanwhile, has lost the work and nothing besides. The sender says it again until it is seen to have been taken in.
impl Replica {
    /// A peer's message, and the state that came with it.
    pub(super) fn hear(&mut self, envelope: Envelope, brought: Option<Brought>) {
        if let Some(Brought::Difference(transfer)) = brought {
            return self.prepare(envelope, transfer);
        }
        self.brought = brought;
        self.tell_core(Input::Message(envelope));
        self.brought = None;
    }

    /// One at a time: what comes meanwhile comes again.
    fn prepare(&mut self, envelope: Envelope, transfer: Box<StateTransfer>) {
        let taking = self.core.would_take(self.now, &envelope);
        match taking {
            Some(taking) if self.taking_in.is_none() => {
                let (basis, records) = match &taking {
                    Taking::Merge { .. } => (Basis::State(self.committed().print()), Vec::new()),
                    Taking::Override(_) => (Basis::Log(self.core.last()), self.uncommitted()),
                };
                let state = self.committed().clone();
                let preparation = Preparation { state, records, transfer, taking };
                self.taking_in = Some(TakingIn { envelope, basis, at: preparation.at(), prepared: None });
                self.out.push(Out::Prepare(preparation.into()));
            }
            taking => {
                self.out.push(Out::Discard(Discarded::Transfer(transfer)));
                // It says something all the same.
                if taking.is_none() {
                    self.tell_core(Input::Message(envelope));
                }
            }
        }
    }

    fn uncommitted(&self) -> Vec<Record> {
        let upto = self.committed().applied().index;
        self.core.log().records().filter(|record| record.index() > upto).cloned().collect()
    }

    pub(super) fn is_prepared(&mut self, prepared: Box<Prepared>) {
        match &mut self.taking_in {
            Some(taking_in) => taking_in.prepared = Some(prepared),
            None => self.out.push(Out::Discard(Discarded::Prepared(prepared))),
        }
    }

    /// What has been prepared takes effect, waits until nothing is on its way here, or is given up. Says whether anything came of it.
    pub(super) fn settle_taking(&mut self) -> bool {
        let Some(taking_in) = &self.taking_in else { return false };
        if taking_in.prepared.is_none() || self.waits_for_rest(taking_in) {
            return false;
        }
        let Some(TakingIn { envelope, basis, at, prepared: Some(prepared) }) = self.taking_in.take() else {
            return false;
        };
        let taking = self.core.would_take(self.now, &envelope);
        if taking.is_some_and(|taking| self.stands(basis, at, &taking)) {
            self.take(envelope, *prepared);
        } else {
            self.out.push(Out::Discard(Discarded::Prepared(prepared)));
        }
        true
    }

    /// The hold is renewed while a merge is prepared, and the record of that is not committed at once.
    fn waits_for_rest(&self, taking_in: &TakingIn) -> bool {
        let held = self.core.log().holds_of_service().held_by(Owner::Merge);
        matches!(taking_in.basis, Basis::State(_)) && self.core.is_open() && held && !self.core.is_at_rest()
    }

    /// Whether what was prepared is still what taking this in comes to. What a merge writes anew stands in the epoch that it opens, where
    /// no record ever is.
    fn stands(&self, basis: Basis, at: Position, taking: &Taking) -> bool {
        if mutant::is_on(Mutant::StalePreparation) {
            return true;
        }
        match (basis, taking) {
            (Basis::State(print), Taking::Merge { meta, .. }) => {
                print == self.committed().print() && at.epoch == meta.at.epoch && at <= meta.at
            }
            (Basis::Log(last), Taking::Override(meta)) => last == self.core.last() && at == meta.at,
            _ => false,
        }
    }

    fn take(&mut self, envelope: Envelope, prepared: Prepared) {
        let overrides = matches!(envelope.message, Message::Override { .. });
        if !self.core.settings().peers_prove && !prepared.is_sound(overrides) {
            // Taken, it would end this node, and nobody has signed it (P51).
            return self.out.push(Out::Discard(Discarded::Prepared(prepared.into())));
        }
        if let Some(why) = self.journal_is_over(&prepared) {
            self.out.push(Out::Discard(Discarded::Prepared(prepared.into())));
            return self.tell_core(Input::MergeFails { other: envelope.from, why });
        }
        self.prepared = Some(prepared);
        self.tell_core(Input::Message(envelope));
        self.prepared = None;
    }

    /// Before anything has changed (P48): once the core has merged there is no way back.
    fn journal_is_over(&self, prepared: &Prepared) -> Option<Impasse> {
        let limits = &self.core.settings().limits;
        let NewState { conflicts, journal, .. } = prepared.outcome.as_ref().ok()?;
        let over = journal.entries > limits.conflicts || journal.bytes > limits.conflict_bytes;
        // Where a merge adds nothing to the journal, there is nothing to wait for.
        let more = *conflicts > 0 && !mutant::is_on(Mutant::JournalUnbounded);
        (over && more).then_some(Impasse::JournalFull { entries: journal.entries, bytes: journal.bytes })
    }

    /// The elder takes the younger's data in.
    pub(super) fn merge(&mut self, meta: SnapshotMeta) {
        let Some(outcome) = self.prepared_outcome(&meta) else { return };
        // The sides agree on what comes from here on only: a chain of checksums of their own begins.
        let origin = meta.index();
        self.become_merged("merged", outcome, meta, origin, 0);
    }

    /// A follower is brought up to a state that includes its own.
    pub(super) fn be_overridden(&mut self, meta: SnapshotMeta) {
        let Some(outcome) = self.prepared_outcome(&meta) else { return };
        let NewState { origin, chain, .. } = outcome;
        if outcome.digest.contradicts(Digest::new(outcome.store.digest())) {
            // The state is not what it should have become.
            return self.end(End::Fault(Fault::Odd));
        }
        self.become_merged("overridden", outcome, meta, origin, chain);
    }

    fn prepared_outcome(&mut self, meta: &SnapshotMeta) -> Option<NewState> {
        match self.prepared.take().map(|prepared| prepared.outcome) {
            Some(Ok(outcome)) => return Some(outcome),
            Some(Err(error)) => self.end(End::Unreadable { index: meta.index(), error }),
            // The core takes nothing in but what came with the message being handled.
            None => self.end(End::Broken("a state to take in that nobody has prepared")),
        }
        None
    }

    fn become_merged(&mut self, how: &str, outcome: NewState, meta: SnapshotMeta, origin: Index, chain: u32) {
        let NewState { store, changes, told, .. } = outcome;
        // A merge that nobody has heard of is followed by another.
        self.out.extend(self.untold.take().map(Out::Feed));
        self.untold = Some(feed::of_merged(how, meta.at, store.history(), told));
        let before = self.versions.replace(store.standing_at(meta.at, meta.stamp), meta.clone(), origin);
        self.out.push(Out::Discard(Discarded::Store(before.into())));
        self.roles.start_over();
        self.rebase = Some(Rebase { meta, origin, chain, changes });
    }

    /// The disk follows what the state has just become.
    pub(super) fn rebase_disk(&mut self) -> Option<DiskWrite> {
        let Some(Rebase { meta, origin, chain, changes }) = self.rebase.take() else {
            // Where the state is odd, or could not be read, that is what people are told.
            self.end(End::Broken("a log to begin anew without a merge"));
            return None;
        };
        let store = self.committed().clone();
        let (keys, whole) = self.snapshots.hand_over(meta.index(), store.clone(), changes);
        let order = SnapshotOrder { meta, origin, store, keys: keys.into(), whole };
        Some(DiskWrite::Rebase(Box::new(order), chain))
    }
}
