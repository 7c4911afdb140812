//! The replica itself: what it holds, how it takes inputs in and comes to rest, what it makes of the protocol's outputs, and what others may look at.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

use super::answer::{Answer, Denied, LeaseTimes, Opinion, View, Written};
use super::feed::{self, FeedEvent};
use super::io::{Brought, Call, CallId, DiskWrite, End, In, Out, Prepared};
use super::pending::{Pending, Restoring, Round, Waiting};
use super::roles::{Roles, Turn};
use super::snapshots::SnapshotPlan;
use super::versions::Versions;
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::{
    Checkpoint, Envelope, Event, Impasse, Input, IsLeader, Node, Output, Recovered, Refusal, Roster,
    Settings, SnapshotMeta, Verdict, Write,
};
use crate::store::{Key, Print, Store};
use crate::types::{
    Digest, Entry, Index, LeaseName, NodeId, Now, Owner, Position, Record, RequestId, Span, Text, Time,
};

/// It has come, and what it leads to is being prepared (P49).
#[derive(Clone, Debug)]
pub(in crate::replica) struct TakingIn {
    /// What it came with. The protocol is yet to hear of it.
    pub envelope: Envelope,
    pub basis: Basis,
    /// Where what is prepared was to stand.
    pub at: Position,
    pub prepared: Option<Box<Prepared>>,
}

/// What is prepared holds for as long as this is so.
#[derive(Clone, Copy, Debug)]
pub(in crate::replica) enum Basis {
    /// A merge: the elder's state is this one, whatever records its holds take meanwhile.
    State(Print),
    /// An override: the log ends here, and so says what it comes to.
    Log(Position),
}

/// What the state has just become by a merge or an override.
#[derive(Clone, Debug)]
pub(in crate::replica) struct Rebase {
    pub meta: SnapshotMeta,
    pub origin: Index,
    pub chain: u32,
    /// Each entry that is not as it was.
    pub changes: Vec<Key>,
}

/// What a node begins with: its settings, and what it found on its disk.
#[derive(Clone, Debug)]
pub struct Start {
    pub settings: Settings,
    /// Records from one snapshot to the next.
    pub snapshot_every: u64,
    pub recovered: Recovered,
    /// The newest snapshot: its state, its index, and from where snapshots are numbered.
    pub store: Store,
    pub snapshot_index: Index,
    pub origin: Index,
}

impl Start {
    /// Where the log ends.
    pub fn last_index(&self) -> Index {
        self.recovered.records.last().map_or(self.snapshot_index, |record| record.position.index)
    }

    /// Who belongs to the cluster, and whose disks count, by the whole log.
    pub fn roster(&self) -> Roster {
        let mut roster = self.recovered.base.roster.clone();
        for record in &self.recovered.records {
            roster.absorb(record);
        }
        roster
    }
}

/// One node, but for its clock, its disk and its network.
#[derive(Clone, Debug)]
pub struct Replica {
    pub(in crate::replica) core: Node,
    pub(in crate::replica) now: Now,
    pub(in crate::replica) versions: Versions,
    pub(in crate::replica) round: Round,
    pub(in crate::replica) pending: Pending,
    pub(in crate::replica) roles: Roles,
    /// One document at a time.
    pub(in crate::replica) restoring: Option<Restoring>,
    pub(in crate::replica) snapshots: SnapshotPlan,
    /// The state that came with the message being handled.
    pub(in crate::replica) brought: Option<Brought>,
    /// A state that has come and is not taken in yet.
    pub(in crate::replica) taking_in: Option<TakingIn>,
    /// What the message being handled comes to, if it is taken in.
    pub(in crate::replica) prepared: Option<Prepared>,
    /// What the state has just become by a merge or an override; the disk is yet to be told.
    pub(in crate::replica) rebase: Option<Rebase>,
    /// A merge that readers of the feed are told of once the disk has this node's promise.
    pub(in crate::replica) untold: Option<FeedEvent>,
    /// Whether an election that the feed was told of is still under way.
    pub(in crate::replica) electing: bool,
    /// What the protocol is to be told next.
    pub(in crate::replica) inputs: VecDeque<Input>,
    pub(in crate::replica) out: Vec<Out>,
    /// When this node last heard its leader, or led.
    pub(in crate::replica) led_at: Time,
    pub(in crate::replica) ended: Option<End>,
}

impl Replica {
    pub fn new(start: Start, now: Now) -> Replica {
        let Start { settings, snapshot_every, recovered, store, snapshot_index, origin } = start;
        let core = Node::new(settings, recovered, now);
        // What a history includes is for the core to say, also where it has only just begun to.
        let meta = core.log().meta_at(snapshot_index);
        Replica {
            core,
            now,
            versions: Versions::new(store.clone(), meta, origin, snapshot_every),
            round: Round::default(),
            pending: Pending::default(),
            roles: Roles::default(),
            restoring: None,
            snapshots: SnapshotPlan::new(snapshot_index, store),
            brought: None,
            taking_in: None,
            prepared: None,
            rebase: None,
            untold: None,
            electing: false,
            inputs: VecDeque::new(),
            out: Vec::new(),
            led_at: now.mono,
            ended: None,
        }
    }

    pub(in crate::replica) fn answer(&mut self, call: CallId, answer: Result<Answer, Denied>) {
        self.roles.answered(call);
        self.out.push(Out::Answer(call, answer));
    }

    pub(in crate::replica) fn deny(&mut self, call: CallId, denied: Denied) {
        self.answer(call, Err(denied));
    }

    /// Everybody is told, and then it is over. Of what has reached the log nobody knows: it may yet be applied.
    pub(in crate::replica) fn end(&mut self, why: End) {
        if self.has_ended() {
            return;
        }
        self.ended = Some(why);
        // Of a restore whose last step has not been proposed, nothing comes.
        if let Some(restoring) = self.restoring.take() {
            let denied = if restoring.is_in_doubt() { Denied::Unknown } else { Denied::Stopping };
            self.deny(restoring.call, denied);
        }
        for waiting in self.pending.drain().collect::<Vec<_>>() {
            if let Some(call) = waiting.call() {
                let denied = if waiting.changes_nothing() { Denied::Stopping } else { Denied::Unknown };
                self.deny(call, denied);
            }
        }
        for call in self.roles.drain_calls() {
            self.deny(call, Denied::Stopping);
        }
    }

    pub(in crate::replica) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    pub fn me(&self) -> NodeId {
        self.core.settings().me
    }

    /// The protocol's core, to look at.
    pub fn core(&self) -> &Node {
        &self.core
    }

    /// The committed state.
    pub fn committed(&self) -> &Store {
        self.versions.committed()
    }

    /// The index of the newest override.
    pub fn origin(&self) -> Index {
        self.versions.origin()
    }

    /// The newest boundary that has a finished snapshot.
    pub fn snapshot_id(&self) -> u64 {
        self.versions.snapshot_id(self.snapshots.newest())
    }

    /// A bit flips in memory: for the tests that prove that it is noticed (P25).
    #[cfg(feature = "mutants")]
    pub fn damage(&mut self) {
        self.versions.damage();
    }
}

// The dispatch of inputs, and how the replica comes to rest.
impl Replica {
    /// Takes in one input and says what to do about it.
    pub fn handle(&mut self, now: Now, input: In) -> Vec<Out> {
        if self.has_ended() {
            return Vec::new();
        }
        // A monotonic clock does not go back; if one does, time stands still until it has caught up.
        self.now = Now { mono: now.mono.max(self.now.mono), wall: now.wall };
        self.dispatch(input);
        self.settle();
        self.out.extend(self.ended.clone().map(Out::End));
        std::mem::take(&mut self.out)
    }

    fn dispatch(&mut self, input: In) {
        match input {
            In::Tick => self.tick(),
            In::Message(envelope, brought) => {
                self.hear(*envelope, brought);
            }
            In::StateTooLarge { to, bytes } => {
                let most = self.core.settings().limits.merge_bytes;
                self.tell_core(Input::MergeFails { other: to, why: Impasse::TooLarge { bytes, most } });
            }
            In::Durable(seq) => self.tell_core(Input::Durable(seq)),
            In::Promised(seq) => self.tell_core(Input::Promised(seq)),
            In::DiskFull(full) => self.tell_core(Input::DiskFull(full)),
            In::PeerRefused(peer) => self.tell_core(Input::PeerRefused(peer)),
            In::Calls(calls) => self.take_calls(calls),
            In::Gone(call) => self.caller_has_gone(call),
            In::Unheard(unheard) => self.take_back(&unheard),
            In::Prepared(prepared) => self.is_prepared(prepared),
            In::SnapshotEnded(reached) => {
                self.snapshots.ended(reached);
                self.inputs.extend(reached.map(Input::SnapshotTaken));
            }
        }
    }

    fn tick(&mut self) {
        if self.now.mono >= self.core.deadline() {
            self.tell_core(Input::Tick);
        }
        self.tick_leases();
    }

    /// What is answered by the clock is answered before the rest takes its time.
    fn take_calls(&mut self, calls: Vec<(CallId, Call)>) {
        let (looks, others): (Vec<_>, Vec<_>) = calls.into_iter().partition(|(_, call)| call.only_looks());
        looks.into_iter().chain(others).for_each(|(id, call)| self.take_call(id, call));
    }

    fn take_call(&mut self, id: CallId, call: Call) {
        if self.has_ended() {
            return self.deny(id, Denied::Stopping);
        }
        match call {
            Call::Write { command, key } => self.on_write(id, &command, key),
            Call::Restore(document) => self.on_restore(id, document),
            Call::Read(level) => self.on_read(id, level),
            Call::HandOver { to } => self.on_hand_over(id, to),
            Call::Service(change) => self.on_service(id, change),
            Call::Form { without } => self.on_form(id, without),
            Call::ChangeMembers(change) => self.on_change_members(id, change),
            Call::Acquire(acquire) => self.on_acquire(id, *acquire),
            Call::Renew(renewal) => self.on_renew(id, renewal),
            Call::Untie(untie) => self.on_untie(id, untie),
            Call::Register(registration) => self.on_register(id, registration),
            Call::Stop => self.on_stop(),
        }
    }

    /// Goes on until nothing is left to do: what one thing brings about may be another.
    fn settle(&mut self) {
        while !self.has_ended() {
            self.follow_leadership();
            if let Some(turn) = self.roles.next_turn() {
                self.take_turn(turn);
            } else if self.settle_restore() {
                continue;
            } else if !self.round.is_empty() {
                self.propose_round();
            } else if let Some(input) = self.inputs.pop_front() {
                self.tell_core(input);
            } else if !self.settle_taking() {
                break;
            }
        }
        if !self.has_ended() {
            self.settle_untold();
            self.settle_snapshots();
            self.note_leader();
        }
    }

    fn take_turn(&mut self, turn: Turn) {
        match turn {
            Turn::Acquire(acquiring) => self.take_acquire(acquiring),
            Turn::Renew(renewing) => self.take_renewal(renewing),
            Turn::Freed(role) => self.take_freed(&role),
        }
    }

    /// Gives the protocol an input, and carries out what it says.
    pub(super) fn tell_core(&mut self, input: Input) {
        for output in self.core.handle(self.now, input) {
            if self.has_ended() {
                return;
            }
            self.carry_out(output);
        }
    }

    fn note_leader(&mut self) {
        match self.core.leader() {
            Some(leader) if leader == self.me() => self.led_at = self.now.mono,
            Some(leader) => self.led_at = self.core.last_heard(leader).unwrap_or(self.led_at),
            None => {}
        }
    }

    /// When to call `handle` with a tick, if nothing else happens before.
    pub fn deadline(&self) -> Time {
        if self.has_ended() {
            return Time::NEVER;
        }
        let own = self.next_snapshot().min(self.roles.deadline()).min(self.restore_deadline());
        self.core.deadline().min(own)
    }
}

// Carrying out what the protocol says: what concerns disk and network goes on to the driver, the rest ends here.
impl Replica {
    fn carry_out(&mut self, output: Output) {
        match output {
            Output::Write { seq, write } => {
                if let Some(write) = self.disk_write(write) {
                    self.out.push(Out::Write { seq, write });
                }
            }
            Output::Send { envelope, after } => self.out.push(Out::Send { envelope, after }),
            Output::SendSnapshot { to, term, after } => self.out.push(Out::SendSnapshot { to, term, after }),
            Output::SendMerge { to, base, after } => self.send_merge(to, base, after),
            Output::SendOverride { to, term, base, after } => self.send_override(to, term, base, after),
            Output::Merge { meta, .. } => self.merge(meta),
            Output::Override(meta) => self.be_overridden(meta),
            Output::Apply(records) => self.apply(&records),
            // The state has been replaced when the disk was told to install it.
            Output::Restore(meta) => {
                let history = self.committed().history();
                self.tell_readers(feed::of_snapshot(meta.at, history));
            }
            Output::Verdict { request, verdict } => self.verdict(request, verdict),
            Output::Members { cluster, members } => self.out.push(Out::Members { cluster, members }),
            Output::Probe(peer) => self.out.push(Out::Probe(peer)),
            Output::Event(event) => self.tell(event),
            Output::Stop(fault) => self.end(End::Fault(fault)),
        }
    }

    fn disk_write(&mut self, write: Write) -> Option<DiskWrite> {
        match write {
            Write::Vote(vote) => Some(DiskWrite::Vote(vote)),
            Write::Append(records) => Some(DiskWrite::Append(records)),
            Write::Truncate { above } => Some(DiskWrite::Truncate { above }),
            Write::Trim { upto } => Some(DiskWrite::Trim { upto }),
            Write::Install(_) => self.install(),
            Write::Rebase(_) => self.rebase_disk(),
        }
    }

    fn tell(&mut self, event: Event) {
        let me = self.me();
        self.out.extend(feed::of_protocol(&event, me, &mut self.electing).map(Out::Feed));
        self.out.push(Out::Event(event));
    }

    /// A merge begins an epoch at once. Until the disk knows, the same node may begin it again, with another state at the same place.
    fn settle_untold(&mut self) {
        if self.core.promise_is_durable() || mutant::is_on(Mutant::MergeToldAtOnce) {
            self.out.extend(self.untold.take().map(Out::Feed));
        }
    }

    /// What comes after a merge is committed on the disk that has its epoch.
    fn tell_readers(&mut self, event: FeedEvent) {
        self.out.extend(self.untold.take().into_iter().chain([event]).map(Out::Feed));
    }

    fn apply(&mut self, records: &[Record]) {
        for record in records {
            if record.index() <= self.versions.meta().index() {
                continue;
            }
            let committed = match self.versions.commit(record, records) {
                Ok(committed) => committed,
                Err(error) => return self.end(End::Unreadable { index: record.index(), error }),
            };
            let effect = committed.effect;
            let (at, stamp) = (record.position, record.stamp);
            let (history, drafts) = (effect.history, effect.drafts);
            self.tell_readers(FeedEvent::Record { at, history, stamp, drafts });
            if effect.applied.restored {
                self.roles.start_over();
                self.snapshots.start_over();
            } else {
                self.count_leases(effect.leases);
                self.snapshots.changed(effect.applied.changes);
            }
            if let Some(store) = committed.boundary {
                let digest = Digest { version: self.core.settings().digests, value: store.digest() };
                let checkpoint = Checkpoint { index: record.index(), digest };
                self.inputs.push_back(Input::Digest(checkpoint));
                self.snapshots.due(self.versions.meta().clone(), self.versions.origin(), store);
                self.versions.settle(self.snapshots.boundary_mut());
            }
        }
    }

    fn verdict(&mut self, request: RequestId, verdict: Verdict) {
        if let Some(waiting) = self.pending.take(request) {
            self.decided(waiting, verdict);
        }
    }

    /// Tells a caller what became of its call, or goes on with it.
    pub(super) fn decided(&mut self, waiting: Waiting, verdict: Verdict) {
        match (waiting, verdict) {
            (Waiting::Write { call, outcome: Ok(reply) }, Verdict::Written { position, acks }) => {
                self.answer(call, Ok(Answer::Written(Written { position, acks: Some(acks), reply })));
            }
            (Waiting::Write { call, outcome: Err(rejection) }, Verdict::Written { .. }) => {
                self.deny(call, Denied::Rejected(rejection));
            }
            (Waiting::Judged { call, answer }, Verdict::Readable { .. }) => {
                self.answer(call, answer.map(Answer::Written));
            }
            (Waiting::Read(call), Verdict::Readable { .. }) => {
                let view = self.view(self.now.mono);
                self.answer(call, Ok(Answer::View(view.into())));
            }
            (Waiting::Admin(call), Verdict::Done | Verdict::Written { .. } | Verdict::Readable { .. }) => {
                self.answer(call, Ok(Answer::Done));
            }
            (Waiting::Acquire(acquiring), verdict) => self.acquire_verdict(acquiring, verdict),
            (Waiting::Renew(renewing), verdict) => self.renew_verdict(renewing, verdict),
            (Waiting::Restore { call, outcome }, verdict) => self.restore_verdict(call, outcome, verdict),
            (Waiting::Leases(record), verdict) => self.leases_verdict(record, &verdict),
            (Waiting::Farewell, _) => self.end(End::Asked),
            (waiting, verdict) => {
                let denied = self.denied(&verdict);
                if let Some(call) = waiting.call() {
                    self.deny(call, denied);
                }
            }
        }
    }

    /// What whoever asked is told of a verdict that answers nothing.
    pub(super) fn denied(&self, verdict: &Verdict) -> Denied {
        let Verdict::Refused(refusal) = verdict else {
            return Denied::Unknown;
        };
        match refusal {
            Refusal::NotLeader { .. } => self.not_leading(),
            // Another leader's record stands in its place: it never happens, and that leader may be asked.
            Refusal::Superseded => self.not_leading(),
            Refusal::HandingOver => Denied::HandingOver,
            Refusal::ServiceDown => Denied::ServiceDown { reason: self.reason_for_stop() },
            Refusal::DiskFull => Denied::DiskFull,
            Refusal::TooMany => Denied::TooMany { bound: "writes that are not committed yet" },
            Refusal::TooManyReads => Denied::TooMany { bound: "answers that wait for a round" },
            Refusal::FormatNotShared => Denied::FormatNotShared,
            Refusal::NotAnHeir => Denied::NotAnHeir,
            Refusal::Members(refusal) => Denied::Members(*refusal),
        }
    }

    /// Why this node does not answer as the leader.
    pub(super) fn not_leading(&self) -> Denied {
        match self.core.leader() {
            Some(leader) if leader != self.me() => Denied::NotLeader { leader },
            _ if !self.core.is_admitted() && self.core.vote().formed => Denied::CatchingUp,
            // In available mode nobody needs a majority.
            _ if self.core.reaches_majority(self.now.mono) => Denied::NoLeader,
            _ => Denied::NoQuorum,
        }
    }

    /// Why the service is down, in the words of whoever stopped it last.
    fn reason_for_stop(&self) -> Text {
        let said = self.core.log().records().filter_map(|record| match &record.entry {
            Entry::ServiceDown { owner: Owner::Operator, reason, .. } => Some(reason.clone()),
            _ => None,
        });
        said.last().unwrap_or_else(|| "".into())
    }
}

// What a replica shows to whoever looks at it. Nothing changes.
impl Replica {
    /// Checked against the lease at the moment of asking.
    pub fn is_leader(&self, now: Time) -> bool {
        self.core.is_leader(now)
    }

    pub fn whether_leader(&self, now: Time) -> IsLeader {
        self.core.whether_leader(now)
    }

    /// The committed state as it is shown to a reader.
    pub fn view(&self, now: Time) -> View {
        let store = self.committed().clone();
        let index = store.applied().index;
        let leader = self.core.leader();
        let age_ms = if leader == Some(self.me()) { 0 } else { now.since(self.led_at).0 / 1000 };
        View { store, leader, epoch: self.core.vote().promise.epoch, index, age_ms }
    }

    /// Would this node approve that one now? Nothing changes.
    pub fn opinion(&self, candidate: NodeId) -> Opinion {
        let known = self.core.is_member(candidate);
        let approved = known && self.core.opinion_of(candidate);
        let reason = match (approved, self.core.leader()) {
            _ if !known => "no member has that index",
            (true, _) => "this node would approve it now",
            (false, Some(leader)) if leader == self.me() => "this node leads",
            (false, Some(_)) => "this node follows a leader that it does not suspect",
            (false, None) => "this node may not vote, or waits for another candidate",
        };
        Opinion { approved, reason }
    }

    /// Calls that want a role which somebody else has.
    pub fn waiting_for_roles(&self) -> usize {
        self.roles.waiters.waiting()
    }

    /// How long each lease has left, and how many wait for it. None on a node that does not lead.
    pub fn lease_times(&self, now: Now, names: &[LeaseName]) -> Option<LeaseTimes> {
        let times = |name: &LeaseName| -> (Option<Span>, usize) { self.roles.times(name, now.mono) };
        self.roles.leads().then(|| LeaseTimes { wall: now.wall, times: names.iter().map(times).collect() })
    }
}

// Which replicas go on alike, for whoever explores all that can become of them.
impl Replica {
    /// Hashes what decides what comes next, between two inputs: the core, the states that calls are judged by and answered
    /// from, and who waits for which verdict. Left out is what only shows: since when there is a leader, and whether the
    /// feed was told of an election.
    ///
    /// Leases, waits for roles, restores and snapshots are not in it either. Where there are none, two replicas of the same
    /// settings and the same print do the same for the same input.
    pub fn fingerprint(&self, state: &mut impl Hasher) {
        self.core.hash(state);
        self.has_ended().hash(state);
        self.versions.fingerprint(state);
        self.pending.fingerprint(state);
    }
}
