//! The replica itself: its parts, the dispatch of inputs, the handling of the protocol's outputs, and read access for others.

use std::hash::{Hash, Hasher};

use super::answer::{Answer, CatchUp, Denied, LeaseTimes, Opinion, View, Written};
use super::desk::Desk;
use super::feed::{self, FeedEvent};
use super::io::{Call, CallId, DiskWrite, End, In, Out};
use super::pending::Waiting;
use super::restore::Restores;
use super::roles::Roles;
use super::snapshots::SnapshotPlan;
use super::state_transfer::{self, Transfers};
use super::versions::Versions;
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::{
    Checkpoint, Event, Impasse, Input, IsLeader, Node, Output, Recovered, Roster, Settings, Verdict, Write,
};
use crate::store::Store;
use crate::types::{Digest, Index, KeyedCall, LeaseName, NodeId, Now, Record, RequestId, Text, Time};

/// Everything that a node begins with: its settings, and the data from its disk.
#[derive(Clone, Debug)]
pub struct Start {
    pub settings: Settings,
    /// The number of records from one snapshot to the next.
    pub snapshot_every: u64,
    pub recovered: Recovered,
    /// The newest snapshot: its state, its index, and the index from where snapshots are numbered.
    pub store: Store,
    pub snapshot_index: Index,
    pub origin: Index,
}

impl Start {
    /// The index where the log ends.
    pub fn last_index(&self) -> Index {
        self.recovered.records.last().map_or(self.snapshot_index, |record| record.position.index)
    }

    /// The members of the cluster and the disks that count, by the whole log.
    pub fn roster(&self) -> Roster {
        let mut roster = self.recovered.base.roster.clone();
        for record in &self.recovered.records {
            roster.absorb(record);
        }
        roster
    }
}

/// One node, without its clock, its disk and its network.
#[derive(Clone, Debug)]
pub struct Replica {
    desk: Desk,
    roles: Roles,
    restores: Restores,
    transfers: Transfers,
    snapshots: SnapshotPlan,
    /// Whether an election that the feed announced is still under way.
    electing: Option<feed::OngoingElection>,
}

impl Replica {
    pub fn new(start: Start, now: Now) -> Replica {
        let Start { settings, snapshot_every, recovered, store, snapshot_index, origin } = start;
        let node = Node::new(settings, recovered, now);
        // The protocol decides what a history includes, even where the history has only just begun.
        let meta = node.log().meta_at(snapshot_index);
        let versions = Versions::new(store.clone(), meta, origin, snapshot_every);
        Replica {
            desk: Desk::new(node, now, versions),
            roles: Roles::default(),
            restores: Restores::default(),
            transfers: Transfers::default(),
            snapshots: SnapshotPlan::new(snapshot_index, store),
            electing: None,
        }
    }
}

// The dispatch of inputs, and how the replica comes to rest.
impl Replica {
    /// Takes in one input and returns what to do about it.
    pub fn handle(&mut self, now: Now, input: In) -> Vec<Out> {
        if self.desk.has_ended() {
            return Vec::new();
        }
        // A monotonic clock does not go back. If one does, the replica's time stands still until the clock has caught up.
        self.desk.now = Now { mono: now.mono.max(self.desk.now.mono), wall: now.wall };
        self.dispatch(input);
        self.settle();
        if let Some(why) = self.desk.ended().cloned() {
            self.break_off();
            self.desk.out.push(Out::End(why));
        }
        let out = std::mem::take(&mut self.desk.out);
        self.roles.forget_answered(&out);
        out
    }

    fn dispatch(&mut self, input: In) {
        match input {
            In::Tick => {
                if self.desk.now.mono >= self.desk.node().deadline() {
                    self.step_protocol(Input::Tick);
                }
                self.roles.tick_leases(&mut self.desk);
            }
            In::Message(envelope, brought) => {
                let heard = self.transfers.hear(&mut self.desk, *envelope, brought);
                self.forward_transfer(heard);
            }
            In::StateTooLarge { to, bytes } => {
                let most = self.desk.node().settings().limits.merge_bytes;
                self.step_protocol(Input::MergeFails { other: to, why: Impasse::TooLarge { bytes, most } });
            }
            In::Durable(seq) => self.step_protocol(Input::Durable(seq)),
            In::Promised(seq) => self.step_protocol(Input::Promised(seq)),
            In::DiskFull(full) => self.step_protocol(Input::DiskFull(full)),
            In::PeerRefused(peer) => self.step_protocol(Input::PeerRefused(peer)),
            In::Calls(calls) => self.take_calls(calls),
            In::Gone(call) => self.roles.on_caller_gone(&mut self.desk, call),
            In::Unheard(unheard) => self.roles.take_back(&self.desk, &unheard),
            In::Prepared(prepared) => self.transfers.is_prepared(&mut self.desk, prepared),
            In::SnapshotEnded(reached) => {
                self.snapshots.ended(reached);
                self.desk.inputs.extend(reached.map(Input::SnapshotTaken));
            }
        }
    }

    /// Reads that are answered by the clock go first, before the other calls take their time.
    fn take_calls(&mut self, calls: Vec<(CallId, Call)>) {
        let (looks, others): (Vec<_>, Vec<_>) = calls.into_iter().partition(|(_, call)| call.only_looks());
        for (id, call) in looks.into_iter().chain(others) {
            self.take_call(id, call);
            // A call that waits for a role freed by this call is judged before the calls behind this one.
            self.roles.move_waiters(&mut self.desk);
            self.propose_if_full();
        }
    }

    fn take_call(&mut self, id: CallId, call: Call) {
        let desk = &mut self.desk;
        if desk.has_ended() {
            return desk.deny(id, Denied::Stopping);
        }
        match call {
            Call::Write { command, key } => desk.on_write(id, &command, key),
            Call::Restore(document) => self.restores.on_restore(desk, id, document),
            Call::Read(proof) => desk.on_read(id, proof),
            Call::HandOver { to, reason } => desk.on_hand_over(id, to, reason),
            Call::Service(change) => desk.on_service(id, change),
            Call::Form { without } => desk.on_form(id, without),
            Call::ChangeMembers(change) => desk.on_change_members(id, change),
            Call::Acquire(acquire) => self.roles.on_acquire(id, *acquire),
            Call::Renew(renewal) => self.roles.on_renew(id, renewal),
            Call::Untie(untie) => self.roles.on_untie(desk, id, untie),
            Call::Register(registration) => self.roles.on_register(id, registration),
            Call::Stop => desk.on_stop(),
        }
    }

    /// Works until nothing is left to do, because one step may cause another.
    /// The order matters:
    /// - Verdicts go first: they may give a role or a call another turn.
    /// - The round is proposed only when no turn adds to it, so that the grant of a freed role is in the round of the
    ///   record that frees it (P41).
    /// - The protocol gets no other input while a round is open. The records of the round were judged at the positions
    ///   behind the end of the log, and a record of the protocol itself would take one of these positions.
    fn settle(&mut self) {
        while !self.desk.has_ended() {
            if let Some((waiting, verdict)) = self.desk.decided.pop_front() {
                self.decided(waiting, verdict);
                continue;
            }
            self.roles.follow_leadership(&mut self.desk);
            self.roles.move_waiters(&mut self.desk);
            if self.roles.take_turn(&mut self.desk) || self.restores.settle(&mut self.desk) {
                self.propose_if_full();
            } else if self.desk.has_round() {
                self.propose_round();
            } else if let Some(input) = self.desk.inputs.pop_front() {
                self.step_protocol(input);
            } else if let Some(taken) = self.transfers.settle(&mut self.desk) {
                self.forward_transfer(Some(taken));
            } else {
                break;
            }
        }
        if !self.desk.has_ended() {
            self.desk.flush_merge_event();
            self.settle_snapshots();
            self.desk.note_leader();
        }
    }

    /// Every waiting caller gets an answer, and then the replica ends. For a call that has reached the log the outcome is unknown: its
    /// record may yet be applied.
    fn break_off(&mut self) {
        while let Some((waiting, verdict)) = self.desk.decided.pop_front() {
            self.decided(waiting, verdict);
        }
        self.restores.break_off(&mut self.desk);
        for waiting in self.desk.pending.drain().collect::<Vec<_>>() {
            if let Some(call) = waiting.call() {
                let denied = if waiting.changes_nothing() { Denied::Stopping } else { Denied::Unknown };
                self.desk.deny(call, denied);
            }
        }
        for call in self.roles.drain_calls() {
            self.desk.deny(call, Denied::Stopping);
        }
    }

    fn propose_if_full(&mut self) {
        if self.desk.has_full_round() {
            self.propose_round();
        }
    }

    /// Gives the round to the protocol: its records as one batch, then its reads.
    fn propose_round(&mut self) {
        let (entries, reads) = self.desk.take_round();
        if !entries.is_empty() {
            // Each record passed `Node::refusal` before it entered the round, and the protocol has had no input since.
            let last = self.desk.node().last().index + entries.len() as Index;
            self.step_protocol(Input::Propose(entries));
            if self.desk.node().last().index < last {
                self.desk.end(End::Broken("the protocol refused a call that it had said it would accept"));
            }
        }
        for (request, at_least) in reads {
            self.step_protocol(Input::Read { request, at_least });
        }
    }

    fn forward_transfer(&mut self, input: Option<Input>) {
        if let Some(input) = input {
            self.step_protocol(input);
        }
        self.transfers.forget_heard();
    }

    /// Passes an input to the protocol, and carries out its outputs.
    fn step_protocol(&mut self, input: Input) {
        for output in self.desk.tell(input) {
            if self.desk.has_ended() {
                return;
            }
            self.carry_out(output);
        }
    }

    /// The time of the next tick, if no other input comes before.
    pub fn deadline(&self) -> Time {
        if self.desk.has_ended() {
            return Time::NEVER;
        }
        let own = self.next_snapshot().min(self.roles.deadline()).min(self.restores.deadline());
        self.desk.node().deadline().min(own)
    }

    fn settle_snapshots(&mut self) {
        let now = self.desk.now.mono;
        if now >= self.next_snapshot() {
            let order = self.snapshots.start(now);
            self.desk.out.extend(order.map(|order| Out::Snapshot(order.into())));
        }
    }

    /// The time when the next snapshot may start. None starts while a peer's snapshot is still to be installed, because the
    /// installation would replace the newer one. None starts while the disk lacks this node's promise: a snapshot with
    /// records of that epoch would look as if the disk had lost the promise.
    fn next_snapshot(&self) -> Time {
        let node = self.desk.node();
        let installs = node.is_installing() && !mutant::is_on(Mutant::SnapshotBeforeInstalled);
        let promises = !node.promise_is_durable() && !mutant::is_on(Mutant::SnapshotBeforePromise);
        if installs || promises { Time::NEVER } else { self.snapshots.deadline() }
    }
}

// The protocol's outputs. Outputs for disk and network go on to the driver; the others are handled here.
impl Replica {
    fn carry_out(&mut self, output: Output) {
        match output {
            Output::Write { seq, write } => {
                if let Some(write) = self.disk_write(write) {
                    self.desk.out.push(Out::Write { seq, write });
                }
            }
            Output::Send { envelope, after } => self.desk.out.push(Out::Send { envelope, after }),
            Output::SendSnapshot { to, term, after } => {
                self.desk.out.push(Out::SendSnapshot { to, term, after });
            }
            Output::SendMerge { to, base, after } => {
                state_transfer::send_merge(&mut self.desk, to, base, after)
            }
            Output::SendOverride { to, term, base, after } => {
                state_transfer::send_override(&mut self.desk, to, term, base, after);
            }
            Output::Merge { meta, .. } => {
                self.transfers.merge(&mut self.desk, meta);
                self.roles.start_over();
            }
            Output::Override(meta) => {
                self.transfers.be_overridden(&mut self.desk, meta);
                self.roles.start_over();
            }
            Output::Apply(records) => self.apply(&records),
            // The state was replaced when the disk got the order to install it.
            Output::Restore(meta) => {
                let history = self.desk.committed().history();
                self.desk.publish(feed::of_snapshot(meta.at, history));
            }
            Output::Verdict { request, verdict } => self.verdict(request, verdict),
            Output::Members { cluster, members } => self.desk.out.push(Out::Members { cluster, members }),
            Output::Probe(peer) => self.desk.out.push(Out::Probe(peer)),
            Output::Event(event) => self.tell(event),
            Output::Stop(fault) => self.desk.end(End::Fault(fault)),
        }
    }

    fn disk_write(&mut self, write: Write) -> Option<DiskWrite> {
        match write {
            Write::Vote(vote) => Some(DiskWrite::Vote(vote)),
            Write::Append(records) => Some(DiskWrite::Append(records)),
            Write::Truncate { above } => Some(DiskWrite::Truncate { above }),
            Write::Trim { upto } => Some(DiskWrite::Trim { upto }),
            Write::Install(_) => {
                self.roles.start_over();
                self.transfers.install(&mut self.desk, &mut self.snapshots)
            }
            Write::Rebase(_) => self.transfers.rebase_disk(&mut self.desk, &mut self.snapshots),
        }
    }

    fn tell(&mut self, event: Event) {
        let me = self.me();
        self.desk
            .out
            .extend(feed::of_protocol(&event, me, self.desk.now.mono, &mut self.electing).map(Out::Feed));
        self.desk.out.push(Out::Event(event));
    }

    fn apply(&mut self, records: &[Record]) {
        for record in records {
            // After a start the protocol commits from the beginning of its log, which may lie below the snapshot.
            if record.index() <= self.desk.versions.meta().index() {
                continue;
            }
            let committed = match self.desk.versions.commit(record, records) {
                Ok(committed) => committed,
                Err(error) => return self.desk.end(End::Unreadable { index: record.index(), error }),
            };
            let effect = committed.effect;
            let (at, stamp) = (record.position, record.stamp);
            let (history, drafts) = (effect.history, effect.drafts);
            self.desk.publish(FeedEvent::Record { at, history, stamp, drafts });
            if effect.applied.restored {
                self.roles.start_over();
                // A restore does not list its changes: every lease is counted again, and the next snapshot is a whole
                // one.
                self.snapshots.start_over();
            } else {
                self.roles.count_leases(&self.desk, effect.leases);
                self.snapshots.changed(effect.applied.changes);
            }
            if let Some(store) = committed.boundary {
                // The digest goes into the queue: the protocol is in the middle of its outputs here.
                let digest = Digest { version: self.desk.node().settings().digests, value: store.digest() };
                let checkpoint = Checkpoint { index: record.index(), digest };
                self.desk.inputs.push_back(Input::Digest(checkpoint));
                self.snapshots.due(self.desk.versions.meta().clone(), self.desk.versions.origin(), store);
                // All states that this node keeps have grown out of the boundary, so the boundary's rows can move to the
                // level that all of them share.
                self.desk.versions.settle(self.snapshots.boundary_mut());
            }
        }
    }

    fn verdict(&mut self, request: RequestId, verdict: Verdict) {
        if let Some(waiting) = self.desk.pending.take(request) {
            self.decided(waiting, verdict);
        }
    }

    /// Answers a caller by the verdict, or continues with its call.
    fn decided(&mut self, waiting: Waiting, verdict: Verdict) {
        match (waiting, verdict) {
            (Waiting::Write { call, outcome: Ok(reply) }, Verdict::Written { position, acks }) => {
                self.desk.answer(call, Ok(Answer::Written(Written { position, acks: Some(acks), reply })));
            }
            (Waiting::Write { call, outcome: Err(rejection) }, Verdict::Written { .. }) => {
                self.desk.deny(call, Denied::Rejected(rejection));
            }
            (Waiting::Judged { call, answer }, Verdict::Readable { .. }) => {
                self.desk.answer(call, answer.map(Answer::Written));
            }
            (Waiting::Read(call), Verdict::Readable { .. }) => {
                let view = self.desk.view(self.desk.now.mono);
                self.desk.answer(call, Ok(Answer::View(view.into())));
            }
            (Waiting::Admin(call), Verdict::Done | Verdict::Written { .. } | Verdict::Readable { .. }) => {
                self.desk.answer(call, Ok(Answer::Done));
            }
            (Waiting::Acquire(acquiring), verdict) => {
                self.roles.acquire_verdict(&mut self.desk, acquiring, verdict)
            }
            (Waiting::Renew(renewing), verdict) => {
                self.roles.renew_verdict(&mut self.desk, renewing, verdict)
            }
            (Waiting::Restore { call, outcome }, verdict) => {
                self.restores.verdict(&mut self.desk, call, outcome, verdict)
            }
            (Waiting::Leases(record), verdict) => self.roles.leases_verdict(&self.desk, record, &verdict),
            (Waiting::Farewell, _) => self.desk.end(End::Asked),
            (waiting, verdict) => {
                let denied = self.desk.denied(&verdict);
                if let Some(call) = waiting.call() {
                    self.desk.deny(call, denied);
                }
            }
        }
    }
}

// Read access to a replica. Nothing changes.
impl Replica {
    pub fn me(&self) -> NodeId {
        self.desk.me()
    }

    /// Read access to the protocol.
    pub fn core(&self) -> &Node {
        self.desk.node()
    }

    /// The committed state.
    pub fn committed(&self) -> &Store {
        self.desk.committed()
    }

    /// The index of the newest restore or merge.
    pub fn origin(&self) -> Index {
        self.desk.versions.origin()
    }

    /// The number of the newest boundary that has a finished snapshot.
    pub fn snapshot_id(&self) -> u64 {
        self.desk.versions.snapshot_id(self.snapshots.newest())
    }

    /// Flips a bit in memory, for the tests that prove that divergence is noticed (P25).
    #[cfg(feature = "mutants")]
    pub fn damage(&mut self) {
        self.desk.versions.damage();
    }

    /// The committed state as a reader sees it.
    pub fn view(&self, now: Time) -> View {
        self.desk.view(now)
    }

    /// The records behind a boundary: from the log, or the whole state if the log no longer has them (P47).
    pub fn catch_up(&self, snapshot_id: u64) -> Result<CatchUp, Denied> {
        self.desk.catch_up(snapshot_id)
    }

    /// Whether an earlier attempt of this call has been carried out, or may yet be (P15).
    pub fn may_have_been(&self, call: KeyedCall) -> bool {
        self.desk.may_have_been(call)
    }

    /// Checks the lease at the moment of the call.
    pub fn is_leader(&self, now: Time) -> bool {
        self.desk.node().is_leader(now)
    }

    pub fn whether_leader(&self, now: Time) -> IsLeader {
        self.desk.node().whether_leader(now)
    }

    /// Whether this node would approve that candidate now. Nothing changes.
    pub fn opinion(&self, candidate: NodeId) -> Opinion {
        let known = self.desk.node().is_member(candidate);
        let approved = known && self.desk.node().opinion_of(candidate);
        let reason = match (approved, self.desk.node().leader()) {
            _ if !known => "no member has that index",
            (true, _) => "this node would approve it now",
            (false, Some(leader)) if leader == self.me() => "this node leads",
            (false, Some(_)) => "this node follows a leader that it does not suspect",
            (false, None) => "this node may not vote, or waits for another candidate",
        };
        Opinion { approved, reason }
    }

    /// The number of calls that wait for a role held by another instance.
    pub fn waiting_for_roles(&self) -> usize {
        self.roles.waiting()
    }

    /// The times, waiting calls and ties of these leases, which only the leader knows. `None` on a node that does not lead.
    pub fn lease_times(&self, now: Now, names: &[LeaseName]) -> Option<LeaseTimes> {
        let times = |name: &LeaseName| self.roles.times(name, now.mono);
        self.roles.leads().then(|| LeaseTimes { wall: now.wall, times: names.iter().map(times).collect() })
    }

    /// The first callers that wait for a role, each with its priority. `None` on a node that does not lead.
    pub fn queue(&self, role: &Text, most: usize) -> Option<Vec<(Text, i64)>> {
        self.roles.leads().then(|| self.roles.queue(role, most))
    }
}

// Fingerprints tell which replicas behave alike, for a search through all reachable states.
impl Replica {
    /// Hashes everything that decides the next steps, between two inputs: the core, the states that calls are judged by and
    /// answered from, and the calls that wait for a verdict. It leaves out what is only shown: since when there is a leader,
    /// and whether the feed announced an election.
    ///
    /// It leaves out leases, waits for roles, restores and snapshots, too. Where there are none of these, two replicas of the
    /// same settings and the same fingerprint do the same for the same input.
    pub fn fingerprint(&self, state: &mut impl Hasher) {
        self.desk.node().hash(state);
        self.desk.has_ended().hash(state);
        self.desk.versions.fingerprint(state);
        self.desk.pending.fingerprint(state);
    }
}
