//! The loop: one owner of protocol and store. Inputs come from queues, outputs are carried out in order, and what they
//! bring about is the next input. There is one call of the core's `handle`, here.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use super::answers::Answers;
use super::api::{Brought, PeerAsk, Signs};
use super::held::Held;
use super::leasing::Leasing;
use super::pending::Pending;
use super::setup::Setup;
use super::states::States;
use super::taker::{Taken, Taker};
use super::transport::{Arrived, LogParcel, Network};
use super::{DiskState, End, channels, clock, feed};
use crate::protocol::{Input, Node, Output, Seq, SnapshotMeta};
use crate::storage::snapshot::{SnapshotError, Snapshots};
use crate::storage::{Boundary, Disk, Job, Lines};
use crate::store::Store;
use crate::types::{Index, NodeId, Time};
use crate::wire::Route;

#[derive(Debug)]
pub struct Engine {
    pub setup: Arc<Setup>,
    pub core: Node,
    pub states: States,
    /// The protocol's part of the committed state, as of the last record applied.
    pub meta: SnapshotMeta,
    /// The index of the newest override: snapshots are numbered from there.
    pub origin: Index,
    /// The newest boundary's state, by snapshot id.
    pub boundary: Option<(u64, Index, Store)>,
    pub lines: Lines,
    pub disk: Disk,
    pub durable: Seq,
    pub disk_full: bool,
    pub held: Held,
    /// Writes and appends of this round, given on together: what arrives together is synced together.
    pub jobs: Vec<(Seq, Job)>,
    pub appends: Vec<(NodeId, LogParcel)>,
    pub network: Arc<Network>,
    pub answers: Answers,
    pub snapshots: Arc<Mutex<Snapshots>>,
    pub taker: Taker,
    /// The newest finished snapshot.
    pub snapshot_index: Index,
    pub pending: Pending,
    pub leasing: Leasing,
    /// The state that came with the message being handled.
    pub brought: Option<Brought>,
    /// What the state has just become by a merge or an override; the disk is yet to be told.
    pub rebased: Option<Boundary>,
    pub inputs: VecDeque<Input>,
    pub signs: Signs,
    /// Who reads along is told from here.
    pub feed: feed::Writer,
    /// Messages are passed on for as long as this is there.
    pub channels: channels::Keeper,
    /// When this node last heard its leader, or led.
    pub led_at: Time,
    pub end: Option<End>,
}

impl Engine {
    /// Gives the core an input, carries out what it says, and goes on with what that brings about.
    pub fn feed(&mut self, input: Input) {
        self.inputs.push_back(input);
        while let Some(input) = self.inputs.pop_front() {
            if self.end.is_some() {
                return;
            }
            let outputs = self.core.handle(clock::now(), input);
            for output in outputs {
                self.carry_out(output);
            }
        }
        self.settle_leases();
        self.publish();
    }

    fn carry_out(&mut self, output: Output) {
        match output {
            Output::Write { seq, write } => self.write(seq, write),
            Output::Send { envelope, after } => self.send(envelope, after),
            Output::SendSnapshot { to, term, after } => self.send_snapshot(to, term, after),
            Output::SendMerge { to, base, after } => self.send_merge(to, base, after),
            Output::SendOverride { to, term, base, after } => self.send_override(to, term, base, after),
            Output::Merge { own, theirs, meta } => self.merge(&own, &theirs, meta),
            Output::Override(meta) => self.be_overridden(meta),
            Output::Apply(records) => self.apply(&records),
            Output::Restore(meta) => self.restore(meta),
            Output::Verdict { request, verdict } => self.verdict(request, verdict),
            Output::Probe(peer) => self.network.probe(peer),
            Output::Event(event) => {
                self.tell_protocol(&event);
                super::told::event(&self.setup, event);
            }
            Output::Stop(fault) => self.end = Some(End::Fault(fault)),
        }
    }

    /// What the writer says: everything up to here is safe, or the disk is full, or has failed.
    pub fn disk_reports(&mut self, state: DiskState) {
        if let Some(error) = state.failed {
            self.end = Some(End::Disk(error));
            return;
        }
        if state.full != self.disk_full {
            self.disk_full = state.full;
            match state.full {
                true => tracing::error!("the disk is full: this node takes no writes until there is room"),
                false => tracing::info!("the disk has room again"),
            }
            self.feed(Input::DiskFull(state.full));
        }
        if state.durable > self.durable {
            self.durable = state.durable;
            self.release_held();
            self.feed(Input::Durable(state.durable));
        }
    }

    pub fn peer_asks(&mut self, ask: PeerAsk) {
        let PeerAsk { call, reply } = ask;
        if Route::expects_answer(&call.envelope.message) {
            self.answers.open(call.envelope.from, Route::of(&call.envelope.message), reply);
        } else {
            // There is nothing to wait for: the answer, if any, is a call of its own.
            let _ = reply.send(None);
        }
        self.peer_says(call);
    }

    pub fn arrived(&mut self, arrived: Arrived) {
        match arrived {
            Arrived::Call(call) => self.peer_says(*call),
            Arrived::Refused(peer) => self.feed(Input::PeerRefused(peer)),
        }
    }

    fn peer_says(&mut self, call: super::api::PeerCall) {
        tracing::trace!("{}", call.envelope);
        self.lines.receive(call.lines);
        self.brought = call.brought;
        self.feed(Input::Message(call.envelope));
        self.brought = None;
    }

    pub fn snapshot_taken(&mut self, taken: Taken) {
        self.taker.ended(&taken);
        match taken {
            Ok(index) => {
                self.snapshot_index = self.snapshot_index.max(index);
                self.feed(Input::SnapshotTaken(index));
            }
            Err(error) if matches!(error, SnapshotError::Io { .. }) && !error.is_full() => {
                self.end = Some(End::Snapshot(error));
            }
            Err(error) => tracing::warn!(%error, "a snapshot failed; the next one takes over its changes"),
        }
    }

    /// What time has made due.
    pub fn tick(&mut self) {
        let now = clock::now().mono;
        if now >= self.core.deadline() {
            self.feed(Input::Tick);
        }
        self.tick_leases(now);
        self.taker.settle(now);
    }

    /// Gives on what this round has brought together.
    pub fn flush(&mut self) {
        if !self.jobs.is_empty() {
            self.disk.submit_all(self.jobs.drain(..));
        }
        for (to, parcel) in self.appends.drain(..) {
            self.network.send_log(to, parcel);
        }
    }

    pub fn deadline(&self) -> Time {
        self.core.deadline().min(self.taker.deadline()).min(self.leasing.deadline())
    }

    pub fn me(&self) -> NodeId {
        self.setup.settings.me
    }

    /// Tells the outside who leads, and how far this node is.
    fn publish(&mut self) {
        let (leader, epoch) = (self.core.leader(), self.core.vote().promise.epoch);
        self.signs.show(leader, epoch, self.states.committed().applied().index);
        if leader.is_some() {
            self.led_at = self.last_led(leader);
        }
    }

    fn last_led(&self, leader: Option<NodeId>) -> Time {
        match leader {
            Some(leader) if leader != self.me() => self.core.last_heard(leader).unwrap_or(self.led_at),
            _ => clock::now().mono,
        }
    }
}
