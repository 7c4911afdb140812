//! The driver's part of every node: its process, its disk's queue, its messages' way out.

use std::collections::VecDeque;

use eldest::protocol::{Envelope, Input, Message, Node, Output, Seq, SnapshotMeta, Term, Write};
use eldest::types::{Boot, Incarnation, NodeId, Vector};

use crate::checks::{Check, durable, forward};
use crate::disk::Op;
use crate::store::Store;
use crate::world::{Event, World};
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
    pub fn refuse(&mut self, node: usize, dead: NodeId) {
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
        durable.store = durable.store.blank();
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
            // In available mode a leader that merges goes on at once: until its disk knows, nobody can.
            let stored = self.hosts[node].disk.durable.vote.promise.epoch;
            let leads = leads.filter(|(epoch, _)| !self.is_available() || *epoch <= stored);
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
        self.settle_leases(node)?;
        self.schedule_tick(node);
        Ok(())
    }

    pub fn meet_doom(&mut self) {
        if let Some(doom) = self.doom.take_if(|doom| doom.output == self.outputs) {
            self.crash(doom.node, doom.power);
            self.after(doom.back, Event::Restart { node: doom.node });
        }
        self.outputs += 1;
    }

    pub fn schedule_tick(&mut self, node: usize) {
        let now = self.now;
        let host = &mut self.hosts[node];
        let Some(core) = &host.core else {
            return;
        };
        let at = host.clock.truth_at(core.deadline().min(host.leasing.deadline())).max(now + 10);
        if at < host.tick_at {
            host.tick_at = at;
            let life = host.life;
            self.at(at, Event::Tick { node, life });
        }
    }

    pub fn carry_out(&mut self, node: usize, output: Output, inputs: &mut VecDeque<Input>) -> Check {
        match output {
            Output::Write { seq, write } => self.write(node, seq, write),
            Output::Send { envelope, after } => self.send(node, envelope, None, after)?,
            Output::SendSnapshot { to, term, after } => self.send_snapshot(node, to, term, after)?,
            Output::SendMerge { to, base, after } => self.send_merge(node, to, base, after)?,
            Output::SendOverride { to, term, base, after } => {
                self.send_override(node, to, term, base, after)?;
            }
            Output::Merge { own, theirs, meta } => self.merge(node, &own, &theirs, &meta)?,
            Output::Override(meta) => self.take_override(node, &meta)?,
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

    pub fn send_snapshot(&mut self, node: usize, to: NodeId, term: Term, after: Seq) -> Check {
        let host = &self.hosts[node];
        let (Some(core), Some((meta, state))) = (&host.core, host.snapshot.clone()) else {
            return Ok(());
        };
        let envelope = core.envelope(to, Message::Snapshot { term, meta });
        self.send(node, envelope, Some(state), after)
    }

    pub fn write(&mut self, node: usize, seq: Seq, write: Write) {
        let host = &mut self.hosts[node];
        let op = match write {
            Write::Install(meta) => {
                let state = host.incoming.clone().unwrap_or_default();
                Op::Install(seq, meta, state)
            }
            Write::Rebase(meta) => Op::Install(seq, meta, host.store.clone()),
            other => Op::Protocol(seq, other),
        };
        host.disk.push(op);
    }

    pub fn start_sync(&mut self, node: usize) {
        let host = &mut self.hosts[node];
        if host.is_up() && host.disk.start_sync() {
            let (life, sync) = (host.life, host.sync_us);
            let spread = if host.steady { 1 } else { sync };
            let delay = sync + self.rng.below(spread);
            self.after(delay, Event::Synced { node, life });
        }
    }

    pub fn synced(&mut self, node: usize) -> Check {
        let life = self.hosts[node].life;
        let reached = self.hosts[node].disk.durable.last();
        let done = self.hosts[node].disk.finish_sync();
        if self.is_available() {
            let host = &self.hosts[node];
            forward::disk(host.id, reached, host.disk.durable.last())?;
        }
        durable::stored(&self.hosts[node].disk.durable)?;
        let mut newest = self.hosts[node].done;
        for op in done {
            match op {
                Op::Protocol(seq, _) => newest = newest.max(seq),
                Op::Install(seq, meta, state) => {
                    newest = newest.max(seq);
                    self.reached(node, &meta, &state)?;
                }
                Op::Snapshot(meta, state) => {
                    let index = meta.index();
                    let held = &mut self.hosts[node].snapshot;
                    // One that was installed meanwhile is newer.
                    if held.as_ref().is_none_or(|(held, _)| held.index() < index) {
                        *held = Some((meta, state));
                    }
                    self.feed(node, Input::SnapshotTaken(index))?;
                }
            }
        }
        if self.hosts[node].life != life {
            // It died over one of them: its next process has written nothing yet.
            return Ok(());
        }
        self.hosts[node].done = newest;
        self.release_held(node)?;
        self.feed(node, Input::Durable(newest))
    }

    pub fn release_held(&mut self, node: usize) -> Check {
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

    pub fn send(&mut self, node: usize, envelope: Envelope, state: Option<Store>, after: Seq) -> Check {
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

    pub fn transmit(&mut self, node: usize, envelope: Envelope, state: Option<Store>) -> Check {
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

    pub fn deliver(&mut self, envelope: Envelope, state: Option<Store>) -> Check {
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
            let host = &mut self.hosts[node];
            host.incoming = state;
            host.left_out = match &envelope.message {
                Message::Merge { base, .. } | Message::Override { base, .. } => base.clone(),
                _ => Vector::default(),
            };
        }
        self.feed(node, Input::Message(envelope))
    }
}
