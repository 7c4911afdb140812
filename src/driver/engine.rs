//! The loop's own object: it gives the replica its inputs and carries out what the replica says, in order. It decides nothing
//! that a client could tell apart.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tokio::sync::mpsc;

use super::answers::Answers;
use super::api::{Ask, PeerAsk, PeerCall, PeerState, Signs};
use super::chronicle::Chronicle;
use super::chunks::Chunk;
use super::disk::DiskEnd;
use super::end::End;
use super::numbers::{Counting, Numbers};
use super::remarks::Remarks;
use super::replies::Replies;
use super::setup::Setup;
use super::snapshots::{SnapshotWriter, Taken};
use super::transport::{Arrived, Network};
use super::{channels, clock, feed};
use crate::replica::{Brought, Call, CallId, In, Out, Prepared, Replica};
use crate::storage::node::DiskState;
use crate::storage::snapshot::{SnapshotError, Snapshots};
use crate::types::{ClusterId, Members, NodeId, Time};
use crate::wire::Route;

#[derive(Debug)]
pub struct Engine {
    pub(super) setup: Arc<Setup>,
    pub(super) replica: Replica,
    pub(super) disk: DiskEnd,
    pub(super) network: Arc<Network>,
    /// Peers' calls that are open.
    pub(super) answers: Answers,
    pub(super) replies: Replies,
    pub(super) snapshots: Arc<Mutex<Snapshots>>,
    pub(super) snapshot_writer: SnapshotWriter,
    /// Where what is worked out beside the loop comes back.
    pub(super) prepared: mpsc::Sender<Prepared>,
    /// What carrying out brought about: the replica hears of it next.
    pub(super) inputs: VecDeque<In>,
    pub(super) signs: Signs,
    pub(super) remarks: Remarks,
    pub(super) numbers: Arc<Numbers>,
    pub(super) counting: Counting,
    /// Who reads along is told from here.
    pub(super) feed: feed::Writer,
    /// Records have been told since readers were last woken.
    pub(super) fed: bool,
    /// Messages are passed on for as long as this is there.
    pub channels: channels::Keeper,
    pub(super) chronicle: Chronicle,
    pub end: Option<End>,
}

/// What connects an engine to the rest of the process.
#[derive(Debug)]
pub struct Wiring {
    pub setup: Arc<Setup>,
    pub network: Arc<Network>,
    pub snapshots: Arc<Mutex<Snapshots>>,
    pub snapshot_writer: SnapshotWriter,
    pub prepared: mpsc::Sender<Prepared>,
    pub signs: Signs,
    pub numbers: Arc<Numbers>,
    pub feed: feed::Writer,
    pub channels: channels::Keeper,
    pub chronicle: Chronicle,
}

impl Engine {
    pub fn new(replica: Replica, disk: DiskEnd, wiring: Wiring) -> Engine {
        let Wiring {
            setup,
            network,
            snapshots,
            snapshot_writer,
            prepared,
            signs,
            numbers,
            feed,
            channels,
            chronicle,
        } = wiring;
        Engine {
            setup,
            replica,
            disk,
            network,
            answers: Answers::default(),
            replies: Replies::default(),
            snapshots,
            snapshot_writer,
            prepared,
            inputs: VecDeque::new(),
            signs,
            remarks: Remarks::default(),
            numbers,
            counting: Counting::new(clock::now().mono),
            feed,
            fed: false,
            channels,
            chronicle,
            end: None,
        }
    }

    /// Gives the replica an input, carries out what it says, and goes on with what that brings about.
    fn handle(&mut self, input: In) {
        self.inputs.push_back(input);
        while let Some(input) = self.inputs.pop_front() {
            if self.end.is_some() {
                return;
            }
            for out in self.replica.handle(clock::now(), input) {
                self.carry_out(out);
            }
        }
        if std::mem::take(&mut self.fed) {
            self.feed.wake();
        }
        let core = self.replica.core();
        let (leader, epoch) = (core.leader(), core.vote().promise.epoch);
        self.counting.leader(&self.numbers, clock::now().mono, leader);
        self.signs.let_in(self.replica.committed());
        self.signs.show(leader, epoch, self.replica.committed().applied().index);
    }

    fn carry_out(&mut self, out: Out) {
        match out {
            Out::Write { seq, write } => self.write(seq, write),
            Out::Send { envelope, after } => self.send(&envelope, after),
            Out::SendSnapshot { to, term, after } => self.send_snapshot(to, term, after),
            Out::SendState(outgoing) => self.send_state(*outgoing),
            Out::Members { cluster, members } => self.follow_members(cluster, &members),
            Out::Probe(peer) => self.network.probe(peer),
            Out::Answer(call, answer) => {
                let unheard = self.replies.answer(call, answer);
                self.inputs.extend(unheard.map(In::Unheard));
            }
            Out::Snapshot(order) => self.take_snapshot(*order),
            Out::Prepare(preparation) => self.prepare(*preparation),
            Out::Discard(discarded) => self.discard(discarded),
            Out::Feed(event) => self.tell_feed(event),
            Out::Event(event) => {
                self.counting.event(&self.numbers, &event);
                self.chronicle.event(&event);
                super::told::event(&self.setup, event);
            }
            Out::End(why) => {
                self.end.get_or_insert(End::from(why));
            }
        }
    }

    fn follow_members(&mut self, cluster: ClusterId, members: &Members) {
        self.setup.directory.follow(cluster, members);
        self.network.follow(&self.setup);
    }

    /// All calls that wait: what the replica decides is one round.
    pub fn asked(&mut self, asks: impl Iterator<Item = Ask>, chunk: Option<Chunk>) {
        let mut calls: Vec<(CallId, Call)> = asks.filter_map(|ask| self.look_or_call(ask)).collect();
        if let Some(Chunk { first, calls: more, gathering }) = chunk {
            self.replies.add_chunk(first, gathering);
            calls.extend((first.0..).map(CallId).zip(more));
        }
        if !calls.is_empty() {
            self.handle(In::Calls(calls));
        }
    }

    /// What only looks is answered at once.
    fn look_or_call(&mut self, ask: Ask) -> Option<(CallId, Call)> {
        let now = clock::now();
        match ask {
            Ask::Call { to, .. } if to.wants_no_role_any_more() => {}
            Ask::Call { id, call, to } => {
                self.replies.add(id, to);
                return Some((id, call));
            }
            Ask::IsLeader(reply) => drop(reply.send(self.replica.whether_leader(now.mono))),
            Ask::MayHaveBeen { call, reply } => drop(reply.send(self.replica.may_have_been(call))),
            Ask::Opinion { candidate, reply } => drop(reply.send(self.replica.opinion(candidate))),
            Ask::LeaseTimes { names, reply } => drop(reply.send(self.replica.lease_times(now, &names))),
            Ask::Status(reply) => drop(reply.send(self.status())),
            Ask::Explain(reply) => drop(reply.send(self.explain())),
            Ask::Turns { role, reply } => drop(reply.send(self.chronicle.turns(&role))),
            Ask::Measures(reply) => drop(reply.send(self.measures())),
            Ask::CatchUp { snapshot_id, reply } => {
                drop(reply.send(self.replica.catch_up(snapshot_id)));
            }
        }
        None
    }

    /// A caller has gone.
    pub fn gone(&mut self, word: In) {
        self.handle(word);
    }

    /// What the writer says: everything up to here is safe, or the disk is full, or has failed.
    pub fn disk_reports(&mut self, state: DiskState) {
        if let Some(error) = state.failed {
            self.end = Some(End::Disk(error));
            return;
        }
        if state.full != self.disk.full {
            self.disk.full = state.full;
            if state.full {
                tracing::error!("the disk is full: this node takes no writes until there is room");
            } else {
                tracing::info!("the disk has room again");
            }
            self.handle(In::DiskFull(state.full));
        }
        if state.durable > self.disk.durable {
            self.disk.durable = state.durable;
            self.counting.durable(&self.numbers, state.durable, clock::now().mono);
            self.release_unsynced();
            self.handle(In::Durable(state.durable));
        }
        if state.promised > self.disk.promised.max(self.disk.durable) {
            self.disk.promised = state.promised;
            self.release_unsynced();
            self.handle(In::Promised(state.promised));
        }
    }

    pub fn peer_asks(&mut self, ask: PeerAsk) {
        let PeerAsk { call, reply } = ask;
        let from = call.envelope.from;
        if !self.network.knows(from)
            && let Some(stranger) = self.setup.directory.stranger(from)
        {
            self.network.meet(&self.setup, &stranger);
        }
        if Route::expects_answer(&call.envelope.message) {
            let message = &call.envelope.message;
            self.answers.open(call.envelope.from, Route::of(message), Route::number(message), reply);
        } else {
            // There is nothing to wait for: the answer, if any, is a call of its own.
            let _ = reply.send(None);
        }
        self.peer_says(call);
    }

    pub fn arrived(&mut self, arrived: Arrived) {
        match arrived {
            Arrived::Call(call) => self.peer_says(*call),
            Arrived::TooLarge { to, bytes } => self.handle(In::StateTooLarge { to, bytes }),
            Arrived::Refused(peer) => self.handle(In::PeerRefused(peer)),
        }
    }

    fn peer_says(&mut self, call: PeerCall) {
        tracing::trace!("{}", call.envelope);
        self.disk.encoder.receive(call.lines);
        let brought = call.brought.map(|state| match state {
            PeerState::Snapshot(snapshot) => {
                let (incoming, store) = *snapshot;
                let (meta, origin) = (incoming.boundary().meta.clone(), incoming.boundary().origin);
                self.disk.encoder.bring(Some(incoming));
                Brought::Snapshot { meta, origin, store: store.into() }
            }
            PeerState::Difference(handed) => Brought::Difference(Box::new((*handed).into())),
        });
        self.handle(In::Message(Box::new(call.envelope), brought));
        self.disk.encoder.bring(None);
    }

    pub fn snapshot_taken(&mut self, taken: Taken) {
        self.counting.snapshot_ends(&self.numbers, clock::now().mono, taken.is_ok());
        match taken {
            Ok(index) => self.handle(In::SnapshotEnded(Some(index))),
            Err(error) if matches!(error, SnapshotError::Io { .. }) && !error.is_full() => {
                self.end = Some(End::Snapshot(error));
            }
            Err(error) => {
                tracing::warn!(%error, "a snapshot failed; the next one takes over its changes");
                self.handle(In::SnapshotEnded(None));
            }
        }
    }

    pub fn is_prepared(&mut self, prepared: Prepared) {
        self.handle(In::Prepared(prepared.into()));
    }

    /// What time has made due.
    pub fn tick(&mut self) {
        if clock::now().mono >= self.replica.deadline() {
            self.handle(In::Tick);
        }
        self.look_around();
    }

    /// Gives on what this round has brought together.
    pub fn flush(&mut self) {
        if let Some((last, _)) = self.disk.jobs.last() {
            self.counting.goes_to_disk(*last, clock::now().mono);
            self.disk.disk.submit_all(self.disk.jobs.drain(..));
        }
        for (to, packet) in self.disk.appends.drain(..) {
            self.network.send_log(to, packet);
        }
    }

    pub fn deadline(&self) -> Time {
        self.replica.deadline()
    }

    pub fn me(&self) -> NodeId {
        self.setup.settings.me
    }
}
