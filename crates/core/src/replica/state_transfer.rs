//! Transfers of states between nodes: sending states, and taking in the states that arrive.

use super::desk::Desk;
use super::feed;
use super::io::{Brought, Discarded, DiskWrite, End, Out, Outgoing, SnapshotOrder};
use super::preparation::{NewState, Preparation, Prepared, StateTransfer};
use super::snapshots::SnapshotPlan;
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::{After, Envelope, Fault, Impasse, Input, Message, SnapshotMeta, Taking, Term};
use crate::store::{Key, Print};
use crate::types::{Digest, Index, NodeId, Owner, Position, Record, Vector};

// Sending states to other nodes (P33, P34).

pub fn send_merge(desk: &mut Desk, to: NodeId, base: Vector, after: After) {
    let epoch = desk.node().vote().promise.epoch;
    let meta = desk.versions.meta().clone();
    send_state(desk, to, Message::Merge { epoch, base, meta }, None, after);
}

pub fn send_override(desk: &mut Desk, to: NodeId, term: Term, base: Vector, after: After) {
    // A node that is brought up to this state applies the records behind it, and would lack the parts that are staged for them. The core
    // sends this output again later. A merge needs no such check: the merged state replaces this one later, including its
    // staged parts.
    if desk.committed().is_restoring() {
        return;
    }
    let meta = desk.versions.meta().clone();
    let instead = Message::Snapshot { term, meta: SnapshotMeta::default() };
    send_state(desk, to, Message::Override { term, base, meta }, Some(instead), after);
}

fn send_state(desk: &mut Desk, to: NodeId, message: Message, instead: Option<Message>, after: After) {
    let store = desk.committed().clone();
    let envelope = desk.node().envelope(to, message);
    let instead = instead.map(|message| desk.node().envelope(to, message));
    let (meta, origin) = (desk.versions.meta().clone(), desk.versions.origin());
    let outgoing = Outgoing { envelope, meta, origin, store, instead, after };
    desk.out.push(Out::SendState(Box::new(outgoing)));
}

/// The states that have come from other nodes, and the state that has just resulted from one.
#[derive(Clone, Debug, Default)]
pub struct Transfers {
    /// The state that came with the message being handled.
    brought: Option<Brought>,
    /// A state that has come and is not taken in yet.
    taking_in: Option<TakingIn>,
    /// The result for the message being handled, if the message is taken in.
    prepared: Option<Prepared>,
    /// The state after a merge or an override just now. The disk does not have it yet.
    rebase: Option<Rebase>,
}

/// A state has come, and its result is being prepared (P49).
#[derive(Clone, Debug)]
struct TakingIn {
    /// The message that it came with. The protocol does not know of the message yet.
    envelope: Envelope,
    basis: Basis,
    /// The position that the result was prepared for.
    at: Position,
    prepared: Option<Box<Prepared>>,
}

/// A prepared result is valid as long as this holds.
#[derive(Clone, Copy, Debug)]
enum Basis {
    /// A merge: the elder's state is still this one. Records about holds of the service may be written meanwhile.
    State(Print),
    /// An override: the log still ends here, and that decides the result.
    Log(Position),
}

/// The state after a merge or an override just now.
#[derive(Clone, Debug)]
struct Rebase {
    meta: SnapshotMeta,
    origin: Index,
    chain: u32,
    /// Each entry that has changed.
    changes: Vec<Key>,
}

// Whole states (P26).
impl Transfers {
    /// The snapshot that came with this message replaces everything.
    pub fn install(&mut self, desk: &mut Desk, snapshots: &mut SnapshotPlan) -> Option<DiskWrite> {
        let Some(Brought::Snapshot { meta, origin, store }) = self.brought.take() else {
            // The core installs only what came with the message being handled.
            desk.end(End::Broken("the snapshot to install was not received"));
            return None;
        };
        snapshots.installed(meta.index(), (*store).clone());
        let before = desk.versions.replace(*store, meta, origin);
        desk.out.push(Out::Discard(Discarded::Store(before.into())));
        Some(DiskWrite::Install)
    }
}

// States of other nodes are taken in: merges and overrides (P33, P34). Meanwhile the node goes on with everything else (P49).
// ```text
//   message, difference ──► the protocol would take it ──► Out::Prepare       a copy of the state costs a few pointers
//                                                              │ run, in parallel to all that goes on here
//   the protocol takes it ◄── it is still valid, the node is at rest ◄── In::Prepared
// ```
// The protocol gets the message once the result is there. Until then nothing has changed: a node that dies, or gets another
// message meanwhile, has lost only the work. The sender repeats the message until it sees that the state was taken in.
impl Transfers {
    /// Takes in a peer's message, and the state that came with it.
    pub fn hear(&mut self, desk: &mut Desk, envelope: Envelope, brought: Option<Brought>) -> Option<Input> {
        if let Some(Brought::Difference(transfer)) = brought {
            return self.prepare(desk, envelope, transfer);
        }
        self.brought = brought;
        Some(Input::Message(envelope))
    }

    /// The protocol has handled the message. A state that came with it and was not needed is dropped.
    pub fn forget_heard(&mut self) {
        (self.brought, self.prepared) = (None, None);
    }

    /// Prepares one state at a time. A state that comes meanwhile is dropped, and its sender sends it again.
    fn prepare(
        &mut self,
        desk: &mut Desk,
        envelope: Envelope,
        transfer: Box<StateTransfer>,
    ) -> Option<Input> {
        let taking = desk.node().would_take(desk.now, &envelope);
        match taking {
            Some(taking) if self.taking_in.is_none() => {
                let (basis, records) = match &taking {
                    Taking::Merge { .. } => (Basis::State(desk.committed().print()), Vec::new()),
                    Taking::Override(_) => (Basis::Log(desk.node().last()), uncommitted(desk)),
                };
                let state = desk.committed().clone();
                let preparation = Preparation { state, records, transfer, taking };
                self.taking_in = Some(TakingIn { envelope, basis, at: preparation.at(), prepared: None });
                desk.out.push(Out::Prepare(preparation.into()));
                None
            }
            taking => {
                desk.out.push(Out::Discard(Discarded::Transfer(transfer)));
                // The message has a meaning even without its state.
                taking.is_none().then_some(Input::Message(envelope))
            }
        }
    }

    pub fn is_prepared(&mut self, desk: &mut Desk, prepared: Box<Prepared>) {
        match &mut self.taking_in {
            Some(taking_in) => taking_in.prepared = Some(prepared),
            None => desk.out.push(Out::Discard(Discarded::Prepared(prepared))),
        }
    }

    /// A prepared result goes to the protocol, waits until this node is at rest, or is given up.
    pub fn settle(&mut self, desk: &mut Desk) -> Option<Input> {
        let waits =
            |taking_in: &mut TakingIn| taking_in.prepared.is_none() || waits_for_rest(desk, taking_in);
        let taking_in = self.taking_in.take_if(|taking_in| !waits(taking_in))?;
        let TakingIn { envelope, basis, at, prepared } = taking_in;
        let prepared = prepared?;
        let taking = desk.node().would_take(desk.now, &envelope);
        if taking.is_some_and(|taking| stands(desk, basis, at, &taking)) {
            return self.take(desk, envelope, prepared);
        }
        desk.out.push(Out::Discard(Discarded::Prepared(prepared)));
        None
    }

    fn take(&mut self, desk: &mut Desk, envelope: Envelope, prepared: Box<Prepared>) -> Option<Input> {
        let overrides = matches!(envelope.message, Message::Override { .. });
        // An unsound state would end this node if it were taken. Where peers do not prove who they are, any process may have
        // sent it, so it is dropped (P51).
        let unsound = !desk.node().settings().peers_prove && !prepared.is_sound(overrides);
        let over = journal_is_over(desk, &prepared);
        if unsound || over.is_some() {
            desk.out.push(Out::Discard(Discarded::Prepared(prepared)));
            let fails = |why| Input::MergeFails { other: envelope.from, why };
            return over.filter(|_| !unsound).map(fails);
        }
        self.prepared = Some(*prepared);
        Some(Input::Message(envelope))
    }

    /// The elder takes in the younger's data.
    pub fn merge(&mut self, desk: &mut Desk, meta: SnapshotMeta) {
        let Some(outcome) = self.prepared_outcome(desk, &meta) else { return };
        // The sides agree only on what comes from here on, so a new chain of checksums begins.
        let origin = meta.index();
        self.become_merged(desk, "merged", outcome, meta, origin, 0);
    }

    /// A follower is brought up to a state that includes its own.
    pub fn be_overridden(&mut self, desk: &mut Desk, meta: SnapshotMeta) {
        let Some(outcome) = self.prepared_outcome(desk, &meta) else { return };
        let NewState { origin, chain, .. } = outcome;
        if outcome.digest.contradicts(Digest::new(outcome.store.digest())) {
            // The result is not the state that it should be.
            return desk.end(End::Fault(Fault::Odd));
        }
        self.become_merged(desk, "overridden", outcome, meta, origin, chain);
    }

    fn prepared_outcome(&mut self, desk: &mut Desk, meta: &SnapshotMeta) -> Option<NewState> {
        match self.prepared.take().map(|prepared| prepared.outcome) {
            Some(Ok(outcome)) => return Some(outcome),
            Some(Err(error)) => desk.end(End::Unreadable { index: meta.index(), error }),
            // The core takes in only what came with the message being handled.
            None => desk.end(End::Broken("the state to install was not prepared")),
        }
        None
    }

    fn become_merged(
        &mut self,
        desk: &mut Desk,
        how: &str,
        outcome: NewState,
        meta: SnapshotMeta,
        origin: Index,
        chain: u32,
    ) {
        let NewState { store, changes, told, .. } = outcome;
        // If an earlier merge is not announced yet, it is announced first.
        desk.out.extend(desk.untold.take().map(Out::Feed));
        desk.untold = Some(feed::of_merged(how, meta.at, store.history(), told));
        let before = desk.versions.replace(store.standing_at(meta.at, meta.stamp), meta.clone(), origin);
        desk.out.push(Out::Discard(Discarded::Store(before.into())));
        self.rebase = Some(Rebase { meta, origin, chain, changes });
    }

    /// The disk follows the state that has just resulted.
    pub fn rebase_disk(&mut self, desk: &mut Desk, snapshots: &mut SnapshotPlan) -> Option<DiskWrite> {
        let Some(Rebase { meta, origin, chain, changes }) = self.rebase.take() else {
            // If the state had diverged or could not be read, the replica has that reason to end already, and the first
            // reason counts.
            desk.end(End::Broken("the log restarts without a merge"));
            return None;
        };
        let store = desk.committed().clone();
        let (keys, whole) = snapshots.hand_over(meta.index(), store.clone(), changes);
        let order = SnapshotOrder { meta, origin, store, keys: keys.into(), whole };
        Some(DiskWrite::Rebase(Box::new(order), chain))
    }
}

fn uncommitted(desk: &Desk) -> Vec<Record> {
    let upto = desk.committed().applied().index;
    desk.node().log().records().filter(|record| record.index() > upto).cloned().collect()
}

/// Whether a merge has to wait. The hold is renewed while a merge is prepared, and the record that renews it is not committed
/// at once.
fn waits_for_rest(desk: &Desk, taking_in: &TakingIn) -> bool {
    let held = desk.node().log().holds_of_service().held_by(Owner::Merge);
    matches!(taking_in.basis, Basis::State(_)) && desk.node().is_open() && held && !desk.node().is_at_rest()
}

/// Whether the prepared result still holds for taking this state in. Rows that a merge rewrites stand at `at`, in the epoch
/// that the merge opens. No record ever stands there, so an `at` below the merge does no harm.
fn stands(desk: &Desk, basis: Basis, at: Position, taking: &Taking) -> bool {
    if mutant::is_on(Mutant::StalePreparation) {
        return true;
    }
    match (basis, taking) {
        (Basis::State(print), Taking::Merge { meta, .. }) => {
            print == desk.committed().print() && at.epoch == meta.at.epoch && at <= meta.at
        }
        (Basis::Log(last), Taking::Override(meta)) => last == desk.node().last() && at == meta.at,
        _ => false,
    }
}

/// The check comes before anything has changed (P48): once the core has merged there is no way back.
fn journal_is_over(desk: &Desk, prepared: &Prepared) -> Option<Impasse> {
    let limits = &desk.node().settings().limits;
    let NewState { conflicts, journal, .. } = prepared.outcome.as_ref().ok()?;
    let over = journal.entries > limits.conflicts || journal.bytes > limits.conflict_bytes;
    // If a merge adds nothing to the journal, there is nothing to wait for.
    let more = *conflicts > 0 && !mutant::is_on(Mutant::JournalUnbounded);
    (over && more).then_some(Impasse::JournalFull { entries: journal.entries, bytes: journal.bytes })
}
