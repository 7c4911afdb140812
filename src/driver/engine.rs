//! The engine owns the replica. Every input goes through one call of the replica's `handle`, which returns the outputs. A message
//! is held back until the writes that it relies on are durable (P29).
//!
//! The order of outputs matters. `Encoder` follows the log write by write, so the `Write` of a record must be carried out before
//! a `Send` that contains the record; otherwise the encoder has no line for it, and the node ends as broken.
//!
//! ```text
//!   Out::Write ──► Encoder ──► jobs ──────────────────────────► flush ──► the disk
//!   Out::Send ───► send_when ── durable ─────► transmit ──► a response, or a link
//!                      └────── not yet ──────► Unsynced ── release_unsynced, when the disk reports ──► transmit
//! ```

use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;

use super::answers::Answers;
use super::{channels, clock, feed};
use crate::protocol::{After, Envelope, Message, Seq, SnapshotMeta, Term};
use crate::replica::{
    Brought, Call, CallId, Discarded, DiskWrite, FeedEvent, In, Out, Outgoing, Preparation, Prepared,
    ReadProof, Replica, SnapshotOrder,
};
use crate::storage::node::{DiskState, Encoder, SentDifference};
use crate::storage::snapshot::{SnapshotError, Snapshots};
use crate::storage::{Boundary, Disk, Job};
use crate::store::{Store, date_text};
use crate::types::{ClusterId, Digest, Index, Members, NodeId, Time, Vector, WallTime};
use crate::wire::{Packet, Route, Sender};

use super::chronicle::{self, Chronicle};
use super::end::End;
use super::feed::{Draft, Fact, Kind, quoted};
use super::handle::{Ask, PeerAsk, PeerCall, PeerState, Signs};
use super::numbers::{Counting, Numbers};
use super::reads::{Level, Readers, Reads};
use super::replies::{CallChunk, Replies, To};
use super::setup::Setup;
use super::shown::Remarks;
use super::snapshots::{SnapshotWriter, Taken};
use super::transport::{Arrived, LogPacket, Network, Packed, TransferContent, TransferKind};

/// The parts of the loop. Only `handle` changes the replica; `view.rs` reads it to answer questions.
#[derive(Debug)]
pub struct Engine {
    pub(super) setup: Arc<Setup>,
    /// The time at which this process began.
    started: WallTime,
    pub(super) replica: Replica,
    pub(super) disk: DiskEnd,
    pub(super) network: Arc<Network>,
    /// The open calls of peers.
    pub(super) answers: Answers,
    pub(super) replies: Replies,
    pub(super) snapshots: Arc<Mutex<Snapshots>>,
    pub(super) snapshot_writer: SnapshotWriter,
    /// Work that was prepared on other threads comes back through this channel.
    pub(super) prepared: mpsc::Sender<Prepared>,
    /// Inputs that arose while outputs were carried out; the replica receives them next. They wait here because all outputs of
    /// one input are carried out before the next input begins.
    pub(super) inputs: VecDeque<In>,
    pub(super) signs: Signs,
    pub(super) reads: Arc<Reads>,
    /// Local reads are answered from a view. The loop takes no lock that readers hold while there is none.
    shows_view: bool,
    pub(super) remarks: Remarks,
    pub(super) numbers: Arc<Numbers>,
    pub(super) counting: Counting,
    /// Events for the feed's readers are written here.
    pub(super) feed: feed::FeedWriter,
    /// Records have been written to the feed since its readers were last woken. They are woken once for an input, however many
    /// records it has committed.
    pub(super) fed: bool,
    /// Messages are delivered for as long as this exists.
    pub channels: channels::Keeper,
    pub(super) chronicle: Chronicle,
    pub end: Option<End>,
}

/// The connections of an engine to the rest of the process.
#[derive(Debug)]
pub struct Wiring {
    pub setup: Arc<Setup>,
    pub network: Arc<Network>,
    pub snapshots: Arc<Mutex<Snapshots>>,
    pub snapshot_writer: SnapshotWriter,
    pub prepared: mpsc::Sender<Prepared>,
    pub signs: Signs,
    pub reads: Arc<Reads>,
    pub numbers: Arc<Numbers>,
    pub feed: feed::FeedWriter,
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
            reads,
            numbers,
            feed,
            channels,
            chronicle,
        } = wiring;
        Engine {
            setup,
            started: clock::now().wall,
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
            reads,
            shows_view: false,
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

    /// Gives the replica an input, carries out the outputs, and repeats this with the inputs that they produce.
    fn handle(&mut self, input: In) {
        if std::mem::take(&mut self.shows_view) {
            self.reads.forget();
        }
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
        // Tokens are published first: a client that has read an index finds the tokens of the records up to that index (P56).
        self.signs.let_in(self.replica.committed());
        self.signs.refuse_writes(self.disk.full, core.service_is_down());
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
                debug_assert!(!self.shows_view, "whoever is told of a change finds it in the next read");
                let unheard = self.replies.answer(call, answer);
                self.inputs.extend(unheard.map(In::Unheard));
            }
            Out::Snapshot(order) => self.take_snapshot(*order),
            Out::Prepare(preparation) => self.prepare(*preparation),
            Out::Discard(discarded) => self.discard(discarded),
            Out::Feed(event) => self.tell_feed(event),
            Out::Event(event) => {
                self.counting.event(&self.numbers, &event);
                let core = self.replica.core();
                let (last, promised) = (core.log().last(), core.vote().promise.epoch);
                if self.chronicle.event(&event, last, promised) {
                    chronicle::event(&self.setup, event);
                }
            }
            Out::End(why) => {
                // The first reason counts.
                self.end.get_or_insert(End::from(why));
            }
        }
    }

    fn follow_members(&mut self, cluster: ClusterId, members: &Members) {
        self.setup.directory.follow(cluster, members);
        self.network.follow(&self.setup);
    }

    /// Takes these calls: the replica decides them in one round. Questions are answered before any call of the same batch is
    /// handled, even if the call came first. The exception is the question whether a call has been carried out: an earlier attempt
    /// of that call may be among these calls, so they are handled first (P15).
    pub fn asked(&mut self, asks: impl Iterator<Item = Ask>, mut chunk: Option<CallChunk>) {
        let mut calls = Vec::new();
        for ask in asks {
            if matches!(ask, Ask::MayHaveBeen { .. }) {
                self.take_calls(std::mem::take(&mut calls), chunk.take());
            }
            calls.extend(self.look_or_call(ask));
        }
        self.take_calls(calls, chunk);
    }

    fn take_calls(&mut self, mut calls: Vec<(CallId, Call)>, chunk: Option<CallChunk>) {
        if let Some(CallChunk { first, calls: more, gathering }) = chunk {
            self.replies.add_chunk(first, gathering);
            calls.extend((first.0..).map(CallId).zip(more));
        }
        if !calls.is_empty() {
            self.handle(In::Calls(calls));
        }
    }

    /// Answers a read-only call at once, and returns any other call for the replica. A question changes nothing, so it is no
    /// input of the replica: it is answered from what the replica is between two inputs.
    fn look_or_call(&mut self, ask: Ask) -> Option<(CallId, Call)> {
        let now = clock::now();
        match ask {
            // The caller has gone, so the call is dropped: a role granted to it would be lost to all others until the grant is
            // taken back (P41).
            Ask::Call { to, .. } if to.is_cancelled() => {}
            Ask::Call { id, call, to } => {
                self.replies.add(id, to);
                return Some((id, call));
            }
            Ask::Read { id, level, readers } => return self.read(id, level, readers),
            Ask::IsLeader(reply) => drop(reply.send(self.replica.whether_leader(now.mono))),
            Ask::MayHaveBeen { call, reply } => drop(reply.send(self.replica.may_have_been(call))),
            Ask::Opinion { candidate, reply } => drop(reply.send(self.replica.opinion(candidate))),
            Ask::LeaseTimes { names, reply } => drop(reply.send(self.replica.lease_times(now, &names))),
            Ask::Waiters { role, most, reply } => drop(reply.send(self.replica.queue(&role, most))),
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

    /// Closes the call first: a read that comes now waits for the next one. If no read waits any more, or if the loop ends, the
    /// call is dropped.
    fn read(&mut self, id: CallId, level: Level, readers: Readers) -> Option<(CallId, Call)> {
        self.reads.close(level);
        if readers.is_closed() || self.end.is_some() {
            return None;
        }
        let proof = match level {
            Level::Linear => ReadProof::Round,
            Level::Leader => ReadProof::Lease,
            Level::Local => {
                let view = Arc::new(self.replica.view(clock::now().mono));
                self.shows_view = true;
                self.reads.show(view.clone());
                readers.send_replace(Some(Ok(view)));
                return None;
            }
        };
        self.replies.add(id, To::View(readers));
        Some((id, Call::Read(proof)))
    }

    /// A caller has disconnected.
    pub fn gone(&mut self, word: In) {
        self.handle(word);
    }

    /// Takes the writer's report: everything up to here is durable, or the disk is full, or it has failed. Waiting messages are
    /// released before the replica gets the report. So they leave before the messages that it causes, and appends to one peer
    /// stay in order.
    pub fn disk_reports(&mut self, state: DiskState) {
        if let Some(error) = state.failed {
            self.end = Some(End::Disk(error));
            return;
        }
        if state.full != self.disk.full {
            self.disk.full = state.full;
            if state.full {
                tracing::error!("the disk is full: this node accepts no writes until there is free space");
            } else {
                tracing::info!("the disk has free space again");
            }
            self.handle(In::DiskFull(state.full));
        }
        if state.durable > self.disk.durable {
            self.disk.durable = state.durable;
            let took = self.counting.durable(&self.numbers, state.durable, clock::now().mono);
            if took >= self.setup.settings.timing.dead_after {
                self.chronicle.disk_answers(took);
            }
            self.release_unsynced();
            self.handle(In::Durable(state.durable));
        }
        // A promise may be on disk ahead of records that find no room (P24). At or below `durable` it tells the replica nothing
        // new.
        if state.promised > self.disk.promised.max(self.disk.durable) {
            self.disk.promised = state.promised;
            self.release_unsynced();
            self.handle(In::Promised(state.promised));
        }
    }

    /// The call is opened before its message is handled, because the answer may be among the outputs. A caller that this node's
    /// log does not name gets a link, so that the answer can reach it (P43).
    pub fn on_peer_question(&mut self, ask: PeerAsk) {
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
            // The caller has nothing to wait for: the answer, if any, is a separate call.
            let _ = reply.send(None);
        }
        self.on_peer_message(call);
    }

    pub fn arrived(&mut self, arrived: Arrived) {
        match arrived {
            Arrived::Call(call) => self.on_peer_message(*call),
            Arrived::TooLarge { to, bytes } => self.handle(In::StateTooLarge { to, bytes }),
            Arrived::Refused(peer) => self.handle(In::PeerRefused(peer)),
        }
    }

    /// The encoder gets the lines first: if the replica takes the records, their lines are written and sent on as they came. A
    /// snapshot is installed while its message is handled, or not at all, so its files are given up after that.
    fn on_peer_message(&mut self, call: PeerCall) {
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

    /// After an I/O error the content of the directory is unknown, and the node ends. Any other failure, a full disk included,
    /// only makes the next snapshot larger.
    pub fn snapshot_taken(&mut self, taken: Taken) {
        self.counting.snapshot_ends(&self.numbers, clock::now().mono, taken.is_ok());
        match taken {
            Ok(index) => self.handle(In::SnapshotEnded(Some(index))),
            Err(error) if matches!(error, SnapshotError::Io { .. }) && !error.is_full() => {
                self.end = Some(End::Snapshot(error));
            }
            Err(error) => {
                tracing::warn!(%error, "a snapshot failed; the next one will include its changes");
                self.handle(In::SnapshotEnded(None));
            }
        }
    }

    pub fn is_prepared(&mut self, prepared: Prepared) {
        self.handle(In::Prepared(prepared.into()));
    }

    /// Runs the replica's timers that are due.
    pub fn tick(&mut self) {
        let now = clock::now().mono;
        if now >= self.replica.deadline() {
            self.handle(In::Tick);
        }
        let waited = self.counting.disk_waits(now);
        // Others wait no longer than this for a leader.
        if waited >= self.setup.settings.timing.dead_after {
            self.chronicle.disk_waits(waited);
        }
        self.look_around();
    }

    /// Passes on the writes and appends of this pass of the loop. Writes that are submitted together are synced together. Appends
    /// do not wait for this node's disk, so it works at the same time as the followers' disks.
    pub fn flush(&mut self) {
        if let Some((last, _)) = self.disk.jobs.last() {
            self.counting.on_write_started(*last, clock::now().mono);
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

// Carries out outputs for the disk, and small messages.
impl Engine {
    pub fn write(&mut self, seq: Seq, write: DiskWrite) {
        let Some(job) = self.disk.encoder.job(write) else {
            return self.end = Some(End::Broken("the snapshot to install was not received"));
        };
        if let Job::Install(incoming) = &job {
            tracing::info!(index = incoming.boundary().index(), "the state is replaced by a snapshot");
        }
        self.disk.jobs.push((seq, job));
    }

    pub fn take_snapshot(&mut self, order: SnapshotOrder) {
        match self.disk.encoder.boundary(&order.meta, order.origin) {
            Some(boundary) => {
                self.counting.snapshot_begins(clock::now().mono);
                self.snapshot_writer.write(boundary, order);
            }
            // The changes are due again with the next snapshot.
            None => self.inputs.push_back(In::SnapshotEnded(None)),
        }
    }

    /// Encodes a message and sends it when it may leave. It is encoded now, because the log may be cut or trimmed while the
    /// message waits.
    pub fn send(&mut self, envelope: &Envelope, after: After) {
        let message = match &envelope.message {
            Message::Append { term, prev, records, commit } => {
                let Some((chain, lines)) = self.disk.encoder.lines_after(*prev, records) else {
                    return self.end = Some(End::Broken("records to send have no lines"));
                };
                let last = records.last().map_or(*prev, |record| record.position);
                let (count, sender) = (records.len(), Sender::of(envelope));
                let (term, prev, commit) = (*term, *prev, *commit);
                let packet = LogPacket { sender, term, prev, chain, count, last, commit, lines };
                Waiting::Lines { to: envelope.to, packet }
            }
            message => {
                let lines = match message {
                    Message::Pulled { prev, records, .. } => self.disk.encoder.lines_after(*prev, records),
                    _ => Some((0, Bytes::new())),
                };
                let Some((chain, lines)) = lines else {
                    return self.end = Some(End::Broken("records to send have no lines"));
                };
                let packet = Packet::new(envelope, lines, chain);
                let number = Route::number(message);
                Waiting::Small { packet, answers: Route::answered_by(message).map(|route| (route, number)) }
            }
        };
        self.send_when(after, message);
    }

    /// Every message of the core leaves through here (P29). Otherwise a promise could leave, be lost in a power failure, and be
    /// given again to another claim (P2).
    pub fn send_when(&mut self, after: After, message: Waiting) {
        if after.is_met(self.disk.durable, self.disk.promised) {
            self.transmit(message);
        } else {
            self.disk.unsynced.add(after, message);
        }
    }

    pub fn release_unsynced(&mut self) {
        for message in self.disk.unsynced.release(self.disk.durable, self.disk.promised) {
            self.transmit(message);
        }
    }

    fn transmit(&mut self, message: Waiting) {
        match message {
            Waiting::Lines { to, packet } => self.disk.appends.push((to, packet)),
            Waiting::Snapshot { to, term } => self.transmit_snapshot(to, term),
            Waiting::Difference(source) => self.transmit_difference(*source),
            Waiting::Small { packet, answers } => {
                // The response to a call stays open for one heartbeat (`http/peer`). A later answer is sent as a separate call.
                let left = match answers {
                    Some((route, number)) => self.answers.give(route, number, packet).err(),
                    None => Some(packet),
                };
                if let Some(packet) = left {
                    self.network.look_elsewhere(&self.setup, packet.sender.to);
                    self.network.send(packet);
                }
            }
        }
    }

    pub fn send_snapshot(&mut self, to: NodeId, term: crate::protocol::Term, after: After) {
        self.send_when(after, Waiting::Snapshot { to, term });
    }
}

/// The loop's side of the disk.
#[derive(Debug)]
pub struct DiskEnd {
    pub encoder: Encoder,
    pub disk: Disk,
    /// All writes up to here are durable.
    pub durable: Seq,
    /// Promises up to here are durable, although an earlier write waits for disk space.
    pub promised: Seq,
    pub full: bool,
    /// Messages that wait for the writes that they rely on.
    pub unsynced: Unsynced,
    /// The writes and appends of this pass of the loop, passed on together: inputs that arrive together are synced together.
    pub jobs: Vec<(Seq, Job)>,
    pub appends: Vec<(NodeId, LogPacket)>,
}

/// A message in its final form.
#[derive(Debug)]
pub enum Waiting {
    /// A message that may travel in the response to an open call of that route.
    Small {
        packet: Packet,
        /// The route, and the number of the call that the message answers.
        answers: Option<(Route, Option<u64>)>,
    },
    Lines {
        to: NodeId,
        packet: LogPacket,
    },
    /// An order to send the snapshot that is newest when the message may leave.
    Snapshot {
        to: NodeId,
        term: Term,
    },
    Difference(Box<TransferSource>),
}

/// Messages that wait for the writes that they rely on (P29, I9). Their number is bounded by what the core sends between two
/// syncs.
#[derive(Debug, Default)]
pub struct Unsynced {
    waiting: VecDeque<(After, Waiting)>,
}

impl Unsynced {
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    pub fn add(&mut self, after: After, message: Waiting) {
        self.waiting.push_back((after, message));
    }

    /// Returns the messages that may leave now, in the order in which the core sent them. The search does not stop at the first
    /// message that must wait: a promise can be durable ahead of the records before it (P24).
    pub fn release(&mut self, durable: Seq, promised: Seq) -> Vec<Waiting> {
        let (free, waiting) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|(after, _)| after.is_met(durable, promised));
        self.waiting = waiting;
        let free: VecDeque<(After, Waiting)> = free;
        free.into_iter().map(|(_, message)| message).collect()
    }
}

// The part of a state that is sent to another node: the difference that the node lacks, or the newest snapshot.

/// The committed state as it was when the core sent the message, for a node that lacks a part of it.
#[derive(Debug)]
pub struct TransferSource {
    pub packet: Packet,
    pub kind: TransferKind,
    pub base: Vector,
    pub boundary: Boundary,
    pub store: Store,
    /// The packet of the newest snapshot, which is sent instead if the difference is unknown or too large. A merge has no such
    /// packet, because a snapshot would replace the elder's state: if its difference is unknown, the whole state is sent to be
    /// merged.
    pub instead: Option<Packet>,
}

impl TransferSource {
    /// Determines what to send. This takes a while, and must not block the loop.
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
            // The peer would refuse such a large difference, but takes a snapshot: that is never held in memory as text.
            Some(packet) if content.length() > most => newest(snapshots, packet),
            _ => Ok(Some((packet, content))),
        }
    }
}

/// Opens the files of the newest snapshot. This may wait for a snapshot that is being written.
pub fn newest(snapshots: &Mutex<Snapshots>, packet: Packet) -> Packed {
    let export = snapshots.lock().unwrap_or_else(PoisonError::into_inner).export()?;
    Ok(export.map(|export| (packet, TransferContent::Snapshot(export))))
}

// Sends states to other nodes: the part of this node's state that a peer lacks, or the newest snapshot.
impl Engine {
    pub fn send_state(&mut self, outgoing: Outgoing) {
        let kind = if outgoing.is_merge() { TransferKind::Merge } else { TransferKind::Override };
        // A transfer of this kind is running. The core repeats the message.
        if self.network.is_busy(outgoing.envelope.to, kind) {
            return;
        }
        let base = outgoing.base();
        let Outgoing { envelope, meta, origin, store, instead, after } = outgoing;
        let Some(boundary) = self.disk.encoder.boundary(&meta, origin) else {
            return self.end = Some(End::Broken("the state to send is not in the log"));
        };
        let packet = Packet::new(&envelope, Bytes::new(), 0);
        let instead = instead.map(|envelope| Packet::new(&envelope, Bytes::new(), 0));
        let source = TransferSource { packet, kind, base, boundary, store, instead };
        self.send_when(after, Waiting::Difference(Box::new(source)));
    }

    /// The permit is taken here, and `send_state` only looks: meanwhile another transfer of this kind may have begun.
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

/// The bound on prepared work: the replica requests one at a time.
pub const PREPARED_MOST: usize = 1;

// Work whose duration grows with the amount of data is done on another thread: states from other nodes are processed (P49), and large
// values are freed.
impl Engine {
    pub fn prepare(&self, preparation: Preparation) {
        let tell = self.prepared.clone();
        tokio::task::spawn_blocking(move || {
            let prepared: Prepared = preparation.run();
            // The send fails only if the loop has ended; then the process is about to end.
            let _ = tell.blocking_send(prepared);
        });
    }

    pub fn discard(&self, discarded: Discarded) {
        tokio::task::spawn_blocking(move || drop(discarded));
    }
}

// Passes the replica's events to the feed and to people, with the address of each node.
impl Engine {
    pub fn tell_feed(&mut self, event: FeedEvent) {
        match event {
            FeedEvent::Record { at, history, stamp, drafts } => {
                if drafts.iter().any(|draft| draft.kind == Kind::NewState) {
                    self.tell_restore(at.index, stamp.wall);
                }
                self.chronicle.drafts(at, stamp.wall, &drafts);
                let drafts = drafts.into_iter().map(|draft| self.located(draft)).collect();
                self.feed.record(at, history, stamp.wall, drafts);
                self.fed = true;
            }
            FeedEvent::Replaced { at, history, changes, last } => {
                // The changes are known after a merge, and not after a snapshot.
                if last.for_all {
                    tracing::info!(
                        %at,
                        "the leader's log no longer has all the records that this node lacks: its snapshot is the state now"
                    );
                } else {
                    let conflicts = changes.iter().filter(|draft| draft.kind == Kind::Conflict).count();
                    let changed = changes.len();
                    tracing::warn!(%at, changed, conflicts, "the state is replaced by another node's");
                }
                self.feed.replaced(at, history, changes, last);
            }
            FeedEvent::Passing(draft) => {
                let draft = self.located(draft);
                self.feed.passing(clock::now().wall, draft);
            }
        }
    }

    /// A restore that is older than this process is history: a node reads it from the log when it starts or joins.
    fn tell_restore(&self, index: Index, written: WallTime) {
        let at = date_text(written);
        match written < self.started {
            true => tracing::info!(index, %at, "read from the log: a restore replaced all data"),
            false => tracing::warn!(index, %at, "all data has been replaced by a restore"),
        }
    }

    /// The replica knows nodes by their numbers, but readers need their addresses.
    fn located(&self, draft: Draft) -> Draft {
        let Fact::Leader { epoch, more } = draft.fact else {
            return draft;
        };
        let url = self.setup.member(epoch.leader).map(|member| self.setup.url(&member)).unwrap_or_default();
        let (leader, url) = (epoch.leader.0, quoted(&url));
        let json = format!(",\"epoch\":\"{epoch}\",\"leader\":{{\"id\":{leader},\"url\":{url}}}{more}");
        Draft { fact: Fact::Members { name: None, json }, ..draft }
    }
}
