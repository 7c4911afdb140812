//! A small deterministic stage: every link takes 1 ms each way, every fsync 1 ms, and nothing is random.
//! Every fault comes from the script.

use std::collections::{BTreeMap, BTreeSet};

use eldest::protocol::{After, Envelope, Message, Seq, Term};
use eldest::replica::{Answer, Call, CallId, Denied, DiskWrite, FeedEvent, In, Out};
use eldest::types::{ClaimId, Epoch, NodeId, Payload, Position};

use crate::host::{Host, Op, Snapshot, clocks};
use crate::network::Network;
use crate::referee::Referee;
use crate::trace::{self, Fate, Trace};

pub const MS: u64 = 1000;
const LINK: u64 = MS;
const SYNC: u64 = MS;

#[expect(clippy::large_enum_variant, reason = "most are deliveries")]
enum Action {
    Deliver(Envelope),
    Synced { node: NodeId, life: u64 },
    Refused { to: NodeId, peer: NodeId },
}

pub struct Stage {
    pub now: u64,
    pub hosts: BTreeMap<NodeId, Host>,
    pub network: Network,
    pub trace: Trace,
    /// The claim that each epoch belongs to, so that a script can send messages of an old one.
    pub claims: BTreeMap<Epoch, ClaimId>,
    queue: BTreeMap<(u64, u64), Action>,
    scheduled: u64,
    calls: BTreeMap<CallId, String>,
    /// Every snapshot that a node has sent: a message only names it.
    sent: BTreeMap<(NodeId, Position), Snapshot>,
    referee: Referee,
    /// The number of times that a timer has gone off at this moment.
    woken: (u64, u32),
    /// The nodes that have learned of another's death, so that each learns of it once.
    refused: BTreeSet<(NodeId, NodeId)>,
}

impl Stage {
    pub fn new(hosts: Vec<Host>) -> Stage {
        let hosts = hosts.into_iter().map(|host| (host.settings.me, host));
        Stage {
            now: 0,
            hosts: hosts.collect(),
            network: Network::default(),
            trace: Trace::default(),
            claims: BTreeMap::new(),
            queue: BTreeMap::new(),
            scheduled: 0,
            calls: BTreeMap::new(),
            sent: BTreeMap::new(),
            referee: Referee::default(),
            woken: (0, 0),
            refused: BTreeSet::new(),
        }
    }

    pub fn run(&mut self, us: u64) {
        self.run_until(us, |_| false);
    }

    /// Runs until `done`, at most for `us`; returns whether it was done.
    pub fn run_until(&mut self, us: u64, done: impl Fn(&Stage) -> bool) -> bool {
        let end = self.now + us;
        while !done(self) {
            let next = self.next_moment();
            if next > end {
                self.now = end;
                return false;
            }
            self.now = next;
            self.step();
            self.note_the_sure();
        }
        true
    }

    /// The next moment at which something is due; at most a millisecond ahead, so that the
    /// expiry of a lease is noticed.
    fn next_moment(&self) -> u64 {
        let queued = self.queue.first_key_value().map(|((at, _), _)| *at);
        let timers = self.hosts.values().map(|host| host.deadline().0).min();
        let tick = self.now + MS;
        let soonest = queued.unwrap_or(tick).min(timers.unwrap_or(tick)).min(tick);
        soonest.max(self.now)
    }

    /// Does one thing that is due now: messages that arrive come before timers.
    fn step(&mut self) {
        if let Some(entry) = self.queue.first_entry()
            && entry.key().0 <= self.now
        {
            let action = entry.remove();
            self.act(action);
        } else if let Some(node) = self.due() {
            self.wake(node);
        }
    }

    /// A node may ask to be woken again at once, but not forever: that would be a busy loop.
    fn wake(&mut self, node: NodeId) {
        self.woken = match self.woken {
            (at, times) if at == self.now => (at, times + 1),
            _ => (self.now, 1),
        };
        assert!(self.woken.1 < 20, "{node} is woken again and again");
        self.give(node, In::Tick);
    }

    fn due(&self) -> Option<NodeId> {
        let mut hosts = self.hosts.iter();
        hosts.find(|(_, host)| host.deadline().0 <= self.now).map(|(node, _)| *node)
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Deliver(envelope) => self.deliver(envelope),
            Action::Synced { node, life } => self.synced(node, life),
            Action::Refused { to, peer } => {
                if self.refused.insert((to, peer)) && self.hosts[&to].replica.is_some() {
                    self.trace.refused(self.now, peer, to);
                }
                self.give(to, In::PeerRefused(peer));
            }
        }
    }

    fn deliver(&mut self, envelope: Envelope) {
        let (from, to) = (envelope.from, envelope.to);
        if self.network.is_cut(from, to) {
            return;
        }
        match self.hosts[&to].replica.is_some() {
            true => self.receive(envelope),
            false => self.tell_refused(from, to),
        }
    }

    fn receive(&mut self, envelope: Envelope) {
        let (from, to) = (envelope.from, envelope.to);
        let snapshot = match &envelope.message {
            Message::Snapshot { meta, .. } => self.sent.get(&(from, meta.at)),
            _ => None,
        };
        let brought = snapshot.map(Snapshot::brought);
        let envelope = self.host(to).receive(envelope);
        self.give(to, In::Message(envelope.into(), brought));
    }

    fn synced(&mut self, node: NodeId, life: u64) {
        let host = self.host(node);
        if host.replica.is_none() || host.life() != life {
            return;
        }
        let (taken, seq) = host.synced();
        self.send_what_may_leave(node);
        self.start_sync(node);
        for index in taken {
            self.give(node, In::SnapshotEnded(Some(index)));
        }
        self.give(node, In::Durable(seq));
    }

    pub fn give(&mut self, to: NodeId, input: In) {
        let now = clocks(self.now);
        let host = self.host(to);
        if let Some(waiting) = &mut host.asleep {
            return waiting.push(input);
        }
        let Some(replica) = &mut host.replica else {
            return;
        };
        let outs = replica.handle(now, input);
        let store = replica.committed().clone();
        self.referee.state(to, &store);
        for out in outs {
            self.carry_out(to, out);
        }
        // One sync covers everything written for this input.
        self.start_sync(to);
        self.note_the_sure();
    }

    fn start_sync(&mut self, node: NodeId) {
        let host = self.host(node);
        if host.start_sync() {
            let life = host.life();
            self.schedule(SYNC, Action::Synced { node, life });
        }
    }

    fn carry_out(&mut self, node: NodeId, out: Out) {
        match out {
            Out::Write { seq, write } => self.write(node, seq, write),
            Out::Send { envelope, after } => self.post(node, after, envelope),
            Out::SendSnapshot { to, term, after } => {
                let envelope = self.with_newest_snapshot(node, to, term);
                self.post(node, after, envelope);
            }
            Out::SendState(_) | Out::Prepare(_) => unreachable!("safe mode"),
            Out::Discard(_) => {}
            Out::Snapshot(order) => self.host(node).write(Op::Snapshot(Snapshot::of(*order))),
            Out::Feed(FeedEvent::Record { at, .. }) => self.referee.applied(node, at),
            Out::Feed(_) | Out::Members { .. } => {}
            Out::Answer(call, answer) => self.show_answer(node, call, &answer),
            Out::Probe(peer) => {
                self.trace.note(self.now, node, format!("probes {peer}"));
                if self.hosts[&peer].replica.is_none() {
                    self.tell_refused(node, peer);
                }
            }
            Out::Event(event) => {
                let boot = self.hosts[&node].core().map(|core| core.boot());
                self.referee.told(boot.unwrap_or_default(), &event);
                self.trace.event(self.now, node, event);
            }
            Out::End(end) => self.trace.note(self.now, node, trace::end(&end)),
        }
    }

    fn write(&mut self, node: NodeId, seq: Seq, write: DiskWrite) {
        let host = self.host(node);
        let op = match write {
            DiskWrite::Install => host.installed().map(|snapshot| Op::Install(seq, snapshot)),
            write => Some(Op::Log(seq, write)),
        };
        if let Some(op) = op {
            self.show_write(node, &op);
            self.host(node).write(op);
        }
    }

    fn post(&mut self, node: NodeId, after: After, envelope: Envelope) {
        self.host(node).post(after, envelope);
        self.send_what_may_leave(node);
    }

    fn with_newest_snapshot(&mut self, from: NodeId, to: NodeId, term: Term) -> Envelope {
        let host = &self.hosts[&from];
        let snapshot = host.disk.snapshot.clone();
        let envelope = host.envelope(to, Message::Snapshot { term, meta: snapshot.meta.clone() });
        self.sent.insert((from, snapshot.meta.at), snapshot);
        envelope
    }

    fn send_what_may_leave(&mut self, node: NodeId) {
        for envelope in self.host(node).ready_to_leave() {
            self.send(envelope);
        }
    }

    pub fn send(&mut self, envelope: Envelope) {
        if let Message::Claim(claim) = &envelope.message {
            self.claims.insert(claim.term.epoch, claim.term.claim);
        }
        let fate = self.network.judge(&envelope);
        self.trace.message(self.now, &envelope, fate);
        if fate == Fate::Sent {
            self.schedule(LINK, Action::Deliver(envelope));
        }
    }

    /// A dead process's port refuses the connection, if the question and the answer get through.
    fn tell_refused(&mut self, to: NodeId, peer: NodeId) {
        if !self.network.is_cut(to, peer) && !self.network.is_cut(peer, to) {
            self.schedule(LINK, Action::Refused { to, peer });
        }
    }

    pub fn crash(&mut self, node: NodeId) {
        self.host(node).crash();
        for to in self.ids().into_iter().filter(|to| *to != node) {
            self.tell_refused(to, node);
        }
        self.note_the_sure();
    }

    pub fn start(&mut self, node: NodeId) {
        let now = clocks(self.now);
        self.refused.retain(|(_, peer)| *peer != node);
        self.host(node).start(now);
    }

    pub fn resume(&mut self, node: NodeId) {
        let waiting = self.host(node).asleep.take();
        for input in waiting.unwrap_or_default() {
            self.give(node, input);
        }
    }

    /// A client's call, with the words that its answer is shown with.
    pub fn call(&mut self, node: NodeId, words: String, call: Call) {
        let id = CallId(self.calls.len() as u64 + 1);
        self.calls.insert(id, words);
        self.give(node, In::Calls(vec![(id, call)]));
    }

    /// A bit flips: the next write that a leader sends to this node arrives as another.
    pub fn garble(&mut self, node: NodeId, write: Payload) {
        self.host(node).garbled = Some(write);
        self.referee.garbled = true;
    }

    fn schedule(&mut self, delay: u64, action: Action) {
        self.scheduled += 1;
        self.queue.insert((self.now + delay, self.scheduled), action);
    }

    pub fn host(&mut self, node: NodeId) -> &mut Host {
        self.hosts.get_mut(&node).expect("a node of the cluster")
    }

    pub fn ids(&self) -> Vec<NodeId> {
        self.hosts.keys().copied().collect()
    }

    /// The open leader of the greatest epoch.
    pub fn leader(&self) -> Option<NodeId> {
        let nodes = self.hosts.values().filter_map(Host::core);
        let open = nodes.filter(|node| node.is_open());
        open.max_by_key(|node| node.leads()).map(|n| n.settings().me)
    }

    /// The leader's epoch is open, its followers have committed all that it has, and no message is under way
    /// but heartbeats and the questions of the leaderless.
    pub fn is_settled(&self) -> bool {
        let Some(leader) = self.leader().and_then(|id| self.hosts[&id].core()) else {
            return false;
        };
        let up_to_date = |host: &Host| {
            host.core().is_none_or(|node| {
                node.leader() != leader.leader() || node.commit_index() == leader.log().last().index
            })
        };
        let busy = |action: &Action| match action {
            Action::Deliver(envelope) => !matches!(
                envelope.message,
                Message::Heartbeat(_)
                    | Message::HeartbeatReply(_)
                    | Message::Willing { .. }
                    | Message::Opinion { .. }
            ),
            _ => true,
        };
        self.hosts.values().all(|host| up_to_date(host) && !host.is_writing())
            && !self.queue.values().any(busy)
    }

    fn show_write(&mut self, node: NodeId, op: &Op) {
        let text = match op {
            Op::Install(_, snapshot) => format!("installs the snapshot at {}", snapshot.meta.at),
            Op::Log(_, DiskWrite::Truncate { above }) => format!("truncates above {above}"),
            Op::Log(_, DiskWrite::Trim { upto }) => format!("trims up to {upto}"),
            Op::Log(_, DiskWrite::Vote(vote)) if self.trace.disk => {
                format!("stores promise {}", vote.promise.epoch)
            }
            Op::Log(_, DiskWrite::Append(records)) if self.trace.disk => {
                format!("stores +{}", records.len())
            }
            _ => return,
        };
        self.trace.note(self.now, node, text);
    }

    fn show_answer(&mut self, node: NodeId, call: CallId, given: &Result<Answer, Denied>) {
        let words = &self.calls[&call];
        let text = format!("⇒ {words}: {}", trace::answer(given));
        self.trace.note(self.now, node, text);
    }

    /// Shows which nodes begin or cease to answer `/is_leader` with true.
    fn note_the_sure(&mut self) {
        let now = clocks(self.now).mono;
        for (id, host) in &self.hosts {
            let sure = host.core().is_some_and(|node| node.is_leader(now));
            if let Some(change) = self.referee.sure(*id, sure) {
                self.trace.note(self.now, *id, change.into());
            }
        }
        self.referee.only_one_is_sure();
    }
}
