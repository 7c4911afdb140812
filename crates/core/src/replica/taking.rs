//! States that come from other nodes are taken in: merges and overrides (P33, P34), without keeping everything else (P49).
//!
//! ```text
//!   message, difference ──► the protocol would take it ──► Out::Prepare       the state costs a few pointers
//!                                                              │ run, beside all that goes on here
//!   the protocol takes it ◄── it stands yet, nothing is on its way ◄── In::Prepared
//! ```
//!
//! The protocol hears of the message once its outcome is there. Until then nothing has changed: who dies, or is told something
//! else meanwhile, has lost the work and nothing besides. The sender says it again until it is seen to have been taken in.

use super::feed;
use super::io::{
    Brought, Discarded, DiskWrite, End, Out, Outcome, Preparation, Prepared, SnapshotOrder, StateTransfer,
};
use super::state::{Basis, Rebase, Replica, TakingIn};
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::{Envelope, Fault, Impasse, Input, Message, SnapshotMeta, Taking};
use crate::types::{Digest, Index, Owner, Position, Record};

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
        let Outcome { conflicts, journal, .. } = prepared.outcome.as_ref().ok()?;
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
        let Outcome { origin, chain, .. } = outcome;
        if outcome.digest.contradicts(Digest::new(outcome.store.digest())) {
            // The state is not what it should have become.
            return self.end(End::Fault(Fault::Odd));
        }
        self.become_merged("overridden", outcome, meta, origin, chain);
    }

    fn prepared_outcome(&mut self, meta: &SnapshotMeta) -> Option<Outcome> {
        match self.prepared.take().map(|prepared| prepared.outcome) {
            Some(Ok(outcome)) => return Some(outcome),
            Some(Err(error)) => self.end(End::Unreadable { index: meta.index(), error }),
            // The core takes nothing in but what came with the message being handled.
            None => self.end(End::Broken("a state to take in that nobody has prepared")),
        }
        None
    }

    fn become_merged(&mut self, how: &str, outcome: Outcome, meta: SnapshotMeta, origin: Index, chain: u32) {
        let Outcome { store, changes, told, .. } = outcome;
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
