//! The cluster on one thread: an event queue in true time, and the driver's part of every node.

use std::collections::{BTreeMap, VecDeque};

use eldest::protocol::{
    Checkpoint, Envelope, Event as Told, Fault, Input, Message, Node, Output, Refusal, Seq, SnapshotMeta,
    Verdict, Write,
};
use eldest::types::{Boot, Entry, Format, Incarnation, Index, NodeId, Record, RequestId};

use crate::checks::{Check, Checks, Violation, durable, ensure};
use crate::client::{Answer, Clients};
use crate::disk::Op;
use crate::host::{Ask, Call, Host};
use crate::net::{Filter, Net};
use crate::rng::Rng;
use crate::store::{Command, Store, encode};
use eldest::protocol::mutant::{self, Mutant};

/// Every ten records a snapshot falls due.
const BOUNDARY: Index = 10;

#[derive(Debug)]
pub enum Event {
    Deliver {
        envelope: Envelope,
        state: Option<Store>,
    },
    Tick {
        node: usize,
        life: u64,
    },
    Synced {
        node: usize,
        life: u64,
    },
    /// A port refuses. `lie`: something else answered, the process lives (P11).
    Refused {
        node: usize,
        peer: NodeId,
        lie: bool,
    },
    Call {
        node: usize,
        call: Call,
    },
    Answer {
        call: Call,
        answer: Answer,
    },
    ClientWakes {
        client: usize,
    },
    ClientGivesUp {
        call: Call,
    },
    Restart {
        node: usize,
    },
}

#[derive(Debug)]
pub struct World {
    pub now: u64,
    queue: BTreeMap<(u64, u64), Event>,
    sequence: u64,
    pub rng: Rng,
    pub net: Net,
    pub hosts: Vec<Host>,
    pub checks: Checks,
    pub clients: Clients,
    pub steps: u64,
    /// Folded over every step: two runs of a seed must agree on it.
    pub trace_hash: u64,
    /// Lines of what happened, if wanted.
    pub trace: Option<Vec<String>>,
    /// Faults that nodes have reported and that the plan has caused.
    pub odd: Vec<NodeId>,
    pub openings: Vec<(u64, NodeId)>,
    pub messages: u64,
    /// What a scenario wants to see again: copies of the messages that this picks.
    pub recorder: Option<Filter>,
    pub recorded: Vec<(Envelope, Option<Store>)>,
    /// What the messages weigh together, by a scale that a test may set.
    pub bytes: u64,
    pub scale: Option<fn(&Envelope) -> u64>,
    /// How many outputs have been carried out.
    pub outputs: u64,
    pub doom: Option<Doom>,
}

/// A node dies right before this output, whoever's it is, and comes back after a while.
#[derive(Clone, Copy, Debug)]
pub struct Doom {
    pub output: u64,
    pub node: usize,
    pub power: bool,
    pub back: u64,
}

impl World {
    pub fn new(hosts: Vec<Host>, clients: Clients, mut rng: Rng) -> World {
        World {
            now: 0,
            queue: BTreeMap::new(),
            sequence: 0,
            rng: rng.fork(),
            net: Net::calm(),
            hosts,
            checks: Checks::default(),
            clients,
            steps: 0,
            trace_hash: 0,
            trace: None,
            odd: Vec::new(),
            openings: Vec::new(),
            messages: 0,
            recorder: None,
            recorded: Vec::new(),
            bytes: 0,
            scale: None,
            outputs: 0,
            doom: None,
        }
    }

    pub fn at(&mut self, time: u64, event: Event) {
        self.sequence += 1;
        self.queue.insert((time.max(self.now), self.sequence), event);
    }

    pub fn after(&mut self, delay: u64, event: Event) {
        self.at(self.now + delay, event);
    }

    pub fn host(&self, id: NodeId) -> &Host {
        &self.hosts[self.slot(id)]
    }

    pub fn slot(&self, id: NodeId) -> usize {
        self.hosts.iter().position(|host| host.id == id).expect("a node of the topology")
    }

    pub fn run_until(&mut self, until: u64) -> Check {
        while let Some(entry) = self.queue.first_entry() {
            if entry.key().0 > until {
                break;
            }
            let ((time, _), event) = entry.remove_entry();
            self.now = time;
            self.step(event)?;
        }
        self.now = until;
        Ok(())
    }

    /// Runs until something holds, at most until `until`. Says whether it came to hold.
    pub fn run_until_true(&mut self, until: u64, holds: impl Fn(&World) -> bool) -> Result<bool, Violation> {
        while !holds(self) {
            let Some(entry) = self.queue.first_entry().filter(|entry| entry.key().0 <= until) else {
                self.now = until;
                return Ok(false);
            };
            let ((time, _), event) = entry.remove_entry();
            self.now = time;
            self.step(event)?;
        }
        Ok(true)
    }

    /// Runs until so many events have happened, counted from the beginning.
    pub fn run_to_step(&mut self, step: u64) -> Check {
        while self.steps < step {
            let Some(((time, _), event)) = self.queue.pop_first() else {
                break;
            };
            self.now = time;
            self.step(event)?;
        }
        Ok(())
    }

    fn step(&mut self, event: Event) -> Check {
        self.steps += 1;
        ensure(self.steps < 3_000_000, "I10 the simulation ends", || "too many steps".into())?;
        let Some(event) = self.unless_paused(event) else {
            return Ok(());
        };
        match event {
            Event::Deliver { envelope, state } => self.deliver(envelope, state)?,
            Event::Tick { node, life } if self.hosts[node].life == life => {
                self.hosts[node].tick_at = u64::MAX;
                self.feed(node, Input::Tick)?;
            }
            Event::Synced { node, life } if self.hosts[node].life == life => self.synced(node)?,
            Event::Refused { node, peer, lie } if lie || !self.host(peer).is_up() => {
                self.feed(node, Input::PeerRefused(peer))?;
            }
            Event::Call { node, call } => self.call(node, call)?,
            Event::Answer { call, answer } => self.answer(call, answer)?,
            Event::ClientWakes { client } => self.client_wakes(client),
            Event::ClientGivesUp { call } => self.client_gives_up(call),
            Event::Restart { node } => self.start(node)?,
            _ => {}
        }
        self.check_leases()
    }

    /// What a frozen process is given waits until it thaws.
    fn unless_paused(&mut self, event: Event) -> Option<Event> {
        let node = match &event {
            Event::Deliver { envelope, .. } => self.slot(envelope.to),
            Event::Tick { node, .. }
            | Event::Synced { node, .. }
            | Event::Refused { node, .. }
            | Event::Call { node, .. } => *node,
            _ => return Some(event),
        };
        let until = self.hosts[node].paused_until;
        if until <= self.now {
            return Some(event);
        }
        self.at(until, event);
        None
    }

    fn check_leases(&self) -> Check {
        let says_true = |host: &&Host| {
            let core = host.core.as_ref().filter(|core| core.is_open());
            let awake = host.paused_until <= self.now;
            awake && core.is_some_and(|core| core.is_leader(host.clock.now(self.now).mono))
        };
        let holders: Vec<NodeId> = self.hosts.iter().filter(says_true).map(|host| host.id).collect();
        self.checks.lease.holders(&holders)
    }

    pub fn note(&mut self, line: impl FnOnce() -> String) {
        let now = self.now;
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{:>10} {}", now, line()));
        }
    }

    fn mix(&mut self, word: u64) {
        self.trace_hash = (self.trace_hash ^ word).wrapping_mul(0x0000_0100_0000_01B3).rotate_left(23);
    }
}

/// Processes.
impl World {
    pub fn start(&mut self, node: usize) -> Check {
        let now = self.now;
        let boot = Boot(self.rng.next() | 1);
        let host = &mut self.hosts[node];
        if host.is_up() || !host.powered {
            return Ok(());
        }
        durable::stored(&host.disk.durable)?;
        let (recovered, store) = host.disk.recover(boot);
        host.store = store;
        let meta = recovered.base.clone();
        host.snapshot = (meta.index() > 0).then(|| (meta, host.store.clone()));
        let clock = host.clock.now(now);
        host.core = Some(Node::new(host.settings.clone(), recovered, clock));
        let id = host.id;
        let full = host.disk.full;
        self.note(|| format!("{id} starts"));
        if full {
            self.feed(node, Input::DiskFull(true))?;
        }
        self.feed(node, Input::Tick)
    }

    /// The process dies at once. `power`: with its machine, so that nobody refuses in its name.
    pub fn crash(&mut self, node: usize, power: bool) {
        if !self.hosts[node].is_up() {
            return;
        }
        let mut rng = self.rng.fork();
        let host = &mut self.hosts[node];
        host.disk.lose_power(&mut rng);
        host.lose_process();
        let id = host.id;
        self.note(|| format!("{id} dies{}", if power { " with its machine" } else { "" }));
        if !power {
            for peer in 0..self.hosts.len() {
                self.refuse(peer, id);
            }
        }
    }

    /// The peer's system answers in the dead process's name, if it can be reached.
    fn refuse(&mut self, node: usize, dead: NodeId) {
        let id = self.hosts[node].id;
        if id != dead && self.net.both_ways(id, dead) {
            let delay = self.net.delay(&mut self.rng);
            self.after(delay, Event::Refused { node, peer: dead, lie: false });
        }
    }

    pub fn restart_doubtful(&mut self, node: usize) {
        let incarnation = Incarnation(self.rng.next() | 1);
        self.crash(node, false);
        let durable = &mut self.hosts[node].disk.durable;
        durable.incarnation = incarnation;
        durable.vote.admitted = false;
        durable.snapshot = SnapshotMeta::default();
        durable.store = Store::default();
        durable.records.clear();
        self.after(1_000, Event::Restart { node });
    }

    /// Gives a node an input, carries out what it says, and goes on with what that brings about.
    pub fn feed(&mut self, node: usize, input: Input) -> Check {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let now = self.hosts[node].clock.now(self.now);
            let Some(core) = &mut self.hosts[node].core else {
                return Ok(());
            };
            let outputs = core.handle(now, input);
            let leads = core.leads().map(|epoch| (epoch, core.boot()));
            self.mix(outputs.len() as u64 + ((node as u64) << 8) + (self.now << 16));
            if let Some((epoch, boot)) = leads {
                let id = self.hosts[node].id;
                self.checks.epochs.leads(epoch, id, boot)?;
            }
            let life = self.hosts[node].life;
            for output in outputs {
                self.meet_doom();
                if self.hosts[node].life != life {
                    return Ok(());
                }
                self.carry_out(node, output, &mut inputs)?;
            }
        }
        self.start_sync(node);
        self.schedule_tick(node);
        Ok(())
    }

    fn meet_doom(&mut self) {
        if let Some(doom) = self.doom.take_if(|doom| doom.output == self.outputs) {
            self.crash(doom.node, doom.power);
            self.after(doom.back, Event::Restart { node: doom.node });
        }
        self.outputs += 1;
    }

    fn schedule_tick(&mut self, node: usize) {
        let now = self.now;
        let host = &mut self.hosts[node];
        let Some(core) = &host.core else {
            return;
        };
        let at = host.clock.truth_at(core.deadline()).max(now + 10);
        if at < host.tick_at {
            host.tick_at = at;
            let life = host.life;
            self.at(at, Event::Tick { node, life });
        }
    }

    fn carry_out(&mut self, node: usize, output: Output, inputs: &mut VecDeque<Input>) -> Check {
        match output {
            Output::Write { seq, write } => self.write(node, seq, write),
            Output::Send { envelope, after } => self.send(node, envelope, None, after)?,
            Output::SendSnapshot { to, term, after } => {
                let host = &self.hosts[node];
                if let (Some(core), Some((meta, state))) = (&host.core, host.snapshot.clone()) {
                    let envelope = core.envelope(to, Message::Snapshot { term, meta });
                    self.send(node, envelope, Some(state), after)?;
                }
            }
            Output::Apply(records) => {
                for record in &records {
                    self.apply(node, record, inputs)?;
                }
            }
            Output::Restore(meta) => self.restore(node, &meta)?,
            Output::Verdict { request, verdict } => self.verdict(node, request, verdict)?,
            Output::Probe(peer) if !self.host(peer).is_up() && self.host(peer).powered => {
                self.refuse(node, peer);
            }
            Output::Probe(_) => {}
            Output::Event(told) => self.told(node, told)?,
            Output::Stop(fault) => self.stopped(node, fault)?,
        }
        Ok(())
    }

    fn write(&mut self, node: usize, seq: Seq, write: Write) {
        let host = &mut self.hosts[node];
        let op = match write {
            Write::Install(meta) => {
                let state = host.incoming.clone().unwrap_or_default();
                Op::Install(seq, meta, state)
            }
            other => Op::Protocol(seq, other),
        };
        host.disk.push(op);
    }

    fn start_sync(&mut self, node: usize) {
        let host = &mut self.hosts[node];
        if host.is_up() && host.disk.start_sync() {
            let (life, sync) = (host.life, host.sync_us);
            let spread = if host.steady { 1 } else { sync };
            let delay = sync + self.rng.below(spread);
            self.after(delay, Event::Synced { node, life });
        }
    }

    fn synced(&mut self, node: usize) -> Check {
        let done = self.hosts[node].disk.finish_sync();
        durable::stored(&self.hosts[node].disk.durable)?;
        let mut newest = self.hosts[node].done;
        for op in done {
            match op {
                Op::Protocol(seq, _) | Op::Install(seq, _, _) => newest = newest.max(seq),
                Op::Snapshot(meta, state) => {
                    let index = meta.index();
                    self.hosts[node].snapshot = Some((meta, state));
                    self.feed(node, Input::SnapshotTaken(index))?;
                }
            }
        }
        self.hosts[node].done = newest;
        self.release_held(node)?;
        self.feed(node, Input::Durable(newest))
    }

    fn release_held(&mut self, node: usize) -> Check {
        let done = self.hosts[node].done;
        let held = std::mem::take(&mut self.hosts[node].held);
        for (after, envelope, state) in held {
            match after <= done {
                true => self.transmit(node, envelope, state)?,
                false => self.hosts[node].held.push_back((after, envelope, state)),
            }
        }
        Ok(())
    }

    fn send(&mut self, node: usize, envelope: Envelope, state: Option<Store>, after: Seq) -> Check {
        match after <= self.hosts[node].done {
            true => self.transmit(node, envelope, state),
            false => {
                self.hosts[node].held.push_back((after, envelope, state));
                Ok(())
            }
        }
    }

    /// Cuts a machine off from all others, both ways.
    pub fn cut_off(&mut self, node: usize) {
        let id = self.hosts[node].id;
        for other in self.others(id) {
            self.net.cut(id, other);
            self.net.cut(other, id);
        }
    }

    /// A firewall cuts a machine off and refuses connections in its name, though it lives.
    pub fn reject(&mut self, node: usize) {
        self.cut_off(node);
        let peer = self.hosts[node].id;
        for other in self.others(peer) {
            let (node, delay) = (self.slot(other), self.net.delay(&mut self.rng));
            self.after(delay, Event::Refused { node, peer, lie: true });
        }
    }

    pub fn others(&self, id: NodeId) -> Vec<NodeId> {
        let ids = self.hosts.iter().map(|host| host.id);
        ids.filter(|other| *other != id).collect()
    }

    fn transmit(&mut self, node: usize, envelope: Envelope, state: Option<Store>) -> Check {
        durable::sent(&envelope, &self.hosts[node].disk.durable)?;
        self.messages += 1;
        self.bytes += self.scale.map_or(0, |scale| scale(&envelope));
        if self.recorder.is_some_and(|wanted| wanted(&envelope)) {
            self.recorded.push((envelope.clone(), state.clone()));
        }
        if self.net.drops(&envelope) {
            return Ok(());
        }
        let mut rng = self.rng.fork();
        for delay in self.net.fates(&mut rng, envelope.from, envelope.to) {
            self.after(delay, Event::Deliver { envelope: envelope.clone(), state: state.clone() });
        }
        Ok(())
    }

    fn deliver(&mut self, envelope: Envelope, state: Option<Store>) -> Check {
        let node = self.slot(envelope.to);
        if !self.hosts[node].is_up() {
            if self.hosts[node].powered {
                let sender = self.slot(envelope.from);
                self.refuse(sender, envelope.to);
            }
            return Ok(());
        }
        self.note(|| envelope.to_string());
        if state.is_some() {
            self.hosts[node].incoming = state;
        }
        self.feed(node, Input::Message(envelope))
    }
}

/// The state.
impl World {
    fn apply(&mut self, node: usize, record: &Record, inputs: &mut VecDeque<Input>) -> Check {
        let id = self.hosts[node].id;
        let index = record.index();
        if index == self.checks.survival.len() + 1 {
            self.checks.time.committed(record)?;
        }
        self.checks.survival.committed(id, record)?;
        let host = &mut self.hosts[node];
        let happened = host.store.apply(record);
        let (digest, flipped) = (host.store.digest, host.flipped);
        if !flipped {
            self.checks.applied.state(id, index, digest)?;
        }
        if let Some((tag, command, effect)) = happened {
            let second_half = matches!(command, Command::Half { second: true, .. });
            self.checks.applied.effect(tag, second_half, index)?;
            self.checks.refused.applied(tag)?;
            if let (Command::Grant { role }, crate::store::Effect::Token(token)) = (command, effect) {
                self.checks.tokens.granted(role, index, token)?;
            }
        }
        if index % BOUNDARY == 0 {
            self.snapshot(node, index);
            inputs.push_back(Input::Digest(Checkpoint { index, digest }));
        }
        Ok(())
    }

    fn snapshot(&mut self, node: usize, index: Index) {
        let host = &mut self.hosts[node];
        if let Some(core) = &host.core {
            let meta = core.log().meta_at(index);
            let state = host.store.frozen();
            host.disk.push(Op::Snapshot(meta, state));
        }
    }

    fn restore(&mut self, node: usize, meta: &SnapshotMeta) -> Check {
        let id = self.hosts[node].id;
        let Some(state) = self.hosts[node].incoming.take() else {
            return ensure(false, "P26 a snapshot comes with a state", || format!("{id} at {}", meta.at));
        };
        ensure(state.applied == meta.index(), "P26 a snapshot comes with a state", || {
            format!("{id}: state at {}, meta at {}", state.applied, meta.at)
        })?;
        let forward = state.applied >= self.hosts[node].store.applied;
        ensure(forward, "I7 applied once", || format!("{id} goes back to {}", state.applied))?;
        self.hosts[node].snapshot = Some((meta.clone(), state.clone()));
        self.hosts[node].store = state;
        Ok(())
    }

    fn told(&mut self, node: usize, told: Told) -> Check {
        let id = self.hosts[node].id;
        self.note(|| format!("{id} {told:?}"));
        if let Told::Opened { epoch } = told {
            self.openings.push((self.now, id));
            if let Some(core) = &self.hosts[node].core {
                self.checks.survival.opened(id, epoch, core.log())?;
            }
        }
        Ok(())
    }

    fn stopped(&mut self, node: usize, fault: Fault) -> Check {
        let host = &self.hosts[node];
        let expected = fault == Fault::Odd && host.flipped;
        let id = host.id;
        self.note(|| format!("{id} stops: {fault:?}"));
        ensure(expected, "no node stops without a cause", || format!("{id} stops: {fault:?}"))?;
        self.odd.push(id);
        self.restart_doubtful(node);
        Ok(())
    }
}

/// Clients' calls.
impl World {
    fn call(&mut self, node: usize, call: Call) -> Check {
        let host = &mut self.hosts[node];
        let Some(core) = host.core.as_ref() else {
            return Ok(());
        };
        let last = core.last().index;
        let judge = core.is_open();
        let command = match call.ask {
            Ask::Command(command) => command,
            Ask::Read { .. } | Ask::ReadPair { .. } => {
                let request = host.request(call);
                return self.feed(node, Input::Read { request, at_least: 0 });
            }
        };
        if judge && matches!(command, Command::Cas { .. } | Command::Create { .. }) {
            let ahead = host.ahead();
            if ahead.result(call.tag.op).is_none() && !ahead.would_change(command) {
                return self.refuse_command(node, call, last);
            }
        }
        self.propose(node, call, command)
    }

    /// A refusal is a read (P14): it waits for what it was judged against.
    fn refuse_command(&mut self, node: usize, call: Call, last: Index) -> Check {
        if mutant::is_on(Mutant::RefusalUnconfirmed) {
            self.reply(call, Answer::Mismatch);
            return Ok(());
        }
        let request = self.hosts[node].request(Call { judged: true, ..call });
        self.feed(node, Input::Read { request, at_least: last })
    }

    fn propose(&mut self, node: usize, call: Call, command: Command) -> Check {
        let host = &mut self.hosts[node];
        let format = match command {
            Command::Grant { role: 1 } => host.settings.format,
            _ => Format(1),
        };
        let parts = match command {
            Command::Pair { key, value } if mutant::is_on(Mutant::SplitBatch) => {
                vec![Command::Half { key, second: false, value }, Command::Half { key, second: true, value }]
            }
            whole => vec![whole],
        };
        let mut entries = Vec::new();
        for part in parts {
            let request = host.request(call);
            entries.push((request, Entry::Client(encode(call.tag, part, format))));
        }
        self.feed(node, Input::Propose(entries))
    }

    fn verdict(&mut self, node: usize, request: RequestId, verdict: Verdict) -> Check {
        let host = &mut self.hosts[node];
        let Some(call) = host.calls.remove(&request) else {
            return Ok(());
        };
        let answer = match (&verdict, call.ask) {
            (Verdict::Written { .. }, _) => match host.store.result(call.tag.op) {
                Some(effect) => Answer::Effect(effect),
                None => return Ok(()),
            },
            (Verdict::Readable { .. }, Ask::Command(_)) => Answer::Mismatch,
            (Verdict::Readable { index }, ask) => {
                let behind = host.store.applied < *index;
                ensure(!behind, "P13 reads see what they must", || format!("{call:?} at {index}"))?;
                read(&host.store, ask)?
            }
            (Verdict::Refused(refusal), ask) => {
                if matches!(ask, Ask::Command(_)) && !call.judged {
                    self.checks.refused.refused(call.tag)?;
                }
                Answer::Refused(hint(*refusal))
            }
            (Verdict::Unknown | Verdict::Done, _) => Answer::Unknown,
        };
        self.reply(call, answer);
        Ok(())
    }

    fn reply(&mut self, call: Call, answer: Answer) {
        if self.rng.chance(995) || self.clients.reliable {
            let delay = self.net.delay(&mut self.rng);
            self.after(delay, Event::Answer { call, answer });
        }
    }
}

fn hint(refusal: Refusal) -> Option<NodeId> {
    match refusal {
        Refusal::NotLeader { leader } => leader,
        _ => None,
    }
}

fn read(store: &Store, ask: Ask) -> Result<Answer, Violation> {
    match ask {
        Ask::Read { key } => Ok(Answer::Value(store.register(key))),
        Ask::ReadPair { key } => {
            let pair = store.pair(key);
            let whole = pair.is_none_or(|(first, second)| first == second);
            ensure(whole, "P12 a batch is whole", || format!("pair {key} reads {pair:?}"))?;
            Ok(Answer::Value(pair.map(|(first, _)| first)))
        }
        Ask::Command(_) => Ok(Answer::Mismatch),
    }
}
