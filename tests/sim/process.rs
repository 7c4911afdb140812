//! The driver's part of every node: its process, its disk's queue, and the way out for its messages.

use std::collections::{BTreeSet, VecDeque};

use eldest::protocol::{Event as Told, Fault, HandOverReason, Settings};
use eldest::replica::{Answer, Call, CallId, Denied, End, FeedEvent, In, Out, Replica, Unheard};
use eldest::types::{Boot, ClusterId, Epoch, NodeId, Position};

use crate::calls::Waiting;
use crate::checks::{Check, durable, ensure};
use crate::disk::Refused;
use crate::membership;
use crate::readers;
use crate::world::{Event, World};

impl World {
    pub fn start(&mut self, node: usize) -> Check {
        let now = self.now;
        let boot = Boot(self.rng.next() | 1);
        let host = &mut self.hosts[node];
        if host.is_up() || !host.powered {
            return Ok(());
        }
        // A cluster that this process founds differs from one that any other process founds (P44).
        let settings =
            Settings { new_cluster: ClusterId(boot.0.into()), asks_from: boot.0, ..host.settings.clone() };
        let start = match host.disk.open(boot, settings)? {
            Ok(start) => start,
            Err(Refused(why)) => return self.does_not_start(node, &why),
        };
        durable::stored(&host.disk.durable)?;
        host.state = host.disk.durable.snapshot.state.clone();
        host.written =
            start.recovered.records.iter().map(|record| (record.position, record.clone())).collect();
        let clock = host.clock.now(now);
        host.replica = Some(Replica::new(start, clock));
        let (id, life) = (host.id, host.life);
        let applied = host.state.store.applied();
        let kept = readers::begin(host, host.settings.is_available());
        host.kept = kept;
        self.checks.told.begins(id, life, applied);
        self.checks.story.begins(node, id, clock);
        self.note(|| format!("{id} starts"));
        self.look_after_disk(node)?;
        self.feed(node, In::Tick)
    }

    /// The process dies at once. With `power` its machine dies too, so that no system refuses in its name.
    pub fn crash(&mut self, node: usize, power: bool) {
        if !self.hosts[node].is_up() {
            return;
        }
        let host = &mut self.hosts[node];
        host.disk.die(power);
        host.lose_process();
        let id = host.id;
        self.checks.story.died(id, self.now);
        self.note(|| format!("{id} dies{}", if power { " with its machine" } else { "" }));
        if !power {
            for peer in 0..self.hosts.len() {
                if self.machine(peer, id) == node {
                    self.refuse(peer, id);
                }
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

    /// Its state has diverged: it comes back with nothing but its promise.
    fn starts_over(&mut self, node: usize) {
        self.crash(node, false);
        let id = self.hosts[node].id;
        self.hosts[node].disk.start_over(id);
        self.after(1_000, Event::Restart { node });
    }

    /// An operator's call whose answer is not awaited.
    pub fn order(&mut self, node: usize, call: Call) -> Check {
        self.calls(node, vec![(Waiting::Nobody, call)])
    }

    /// An operator orders a leader to hand over.
    pub fn hand_over(&mut self, node: usize, to: Option<NodeId>) -> Check {
        self.checks.story.ordered(node, self.now);
        self.order(node, Call::HandOver { to, reason: HandOverReason::Ordered { by: "operator".into() } })
    }

    /// Gives a node calls as one round.
    pub fn calls(&mut self, node: usize, calls: Vec<(Waiting, Call)>) -> Check {
        let host = &mut self.hosts[node];
        if !host.is_up() {
            return Ok(());
        }
        let calls = calls.into_iter().map(|(waiting, call)| (host.expect(waiting), call)).collect();
        self.feed(node, In::Calls(calls))
    }

    /// Gives a node an input, carries out its outputs, and goes on with the inputs that these bring about.
    pub fn feed(&mut self, node: usize, input: In) -> Check {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let now = self.hosts[node].clock.now(self.now);
            let host = &mut self.hosts[node];
            host.led = host.core().and_then(|core| core.leads());
            host.members_before = host.core().map(|core| core.members().clone());
            let Some(replica) = &mut self.hosts[node].replica else {
                return Ok(());
            };
            let ticked = matches!(input, In::Tick);
            let outs = replica.handle(now, input);
            let rests = self.hosts[node].comes_to_rest(ticked, now);
            let Some(replica) = &self.hosts[node].replica else {
                return Ok(());
            };
            ensure(rests, "I10 a tick leaves nothing due", || {
                format!("at {:?} due at {:?}: {:?}", now.mono, replica.deadline(), replica.core())
            })?;
            self.mix(outs.len() as u64 + ((node as u64) << 8) + (self.now << 16));
            self.note_leader(node)?;
            let life = self.hosts[node].life;
            for out in outs {
                if is_outward(&out) {
                    self.meet_doom();
                }
                if self.hosts[node].life != life {
                    return Ok(());
                }
                self.carry_out(node, out, &mut inputs)?;
            }
            if self.hosts[node].life != life {
                return Ok(());
            }
            self.has_what_it_says(node)?;
        }
        self.start_sync(node);
        self.schedule_tick(node);
        Ok(())
    }

    fn note_leader(&mut self, node: usize) -> Check {
        let host = &self.hosts[node];
        let leads = host.core().and_then(|core| core.leads().map(|epoch| (epoch, core.boot())));
        // In available mode a leader that merges goes on at once: no other node can know of its epoch before
        // its disk does.
        let stored = host.disk.durable.vote.promise.epoch;
        let leads = leads.filter(|(epoch, _)| !self.is_available() || *epoch <= stored);
        match leads {
            Some((epoch, boot)) => self.checks.epochs.leads(epoch, self.hosts[node].id, boot),
            None => Ok(()),
        }
    }

    /// The replica's state must be what its records make of it.
    fn has_what_it_says(&self, node: usize) -> Check {
        let host = &self.hosts[node];
        let Some(replica) = host.replica.as_ref().filter(|_| !host.is_flipped()) else {
            return Ok(());
        };
        let (has, must) = (replica.committed(), &host.state.store);
        let same = has.applied() == must.applied() && has.digest() == must.digest();
        ensure(same, "I5 a state is what its records make it", || {
            format!(
                "{} has {} {:x}, its records {} {:x}",
                host.id,
                has.applied(),
                has.digest(),
                must.applied(),
                must.digest()
            )
        })
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
        let Some(replica) = &host.replica else {
            return;
        };
        let at = host.clock.truth_at(replica.deadline()).max(now + 10);
        if at < host.tick_at {
            host.tick_at = at;
            let life = host.life;
            self.at(at, Event::Tick { node, life, at });
        }
    }

    fn carry_out(&mut self, node: usize, out: Out, inputs: &mut VecDeque<In>) -> Check {
        match out {
            Out::Write { seq, write } => self.write(node, seq, write)?,
            Out::Send { envelope, after } => self.send(node, envelope, None, after)?,
            Out::SendSnapshot { to, term, after } => self.send_snapshot(node, to, term, after)?,
            Out::SendState(outgoing) => match self.too_large(node, &outgoing) {
                Some(too_large) => inputs.push_back(too_large),
                None => self.send_state(node, *outgoing)?,
            },
            Out::Probe(peer) => {
                let machine = &self.hosts[self.machine(node, peer)];
                if !machine.is_up() && machine.powered {
                    self.refuse(node, peer);
                }
            }
            Out::Members { .. } => {}
            Out::Answer(call, answer) => {
                let unheard = if_unheard(&answer);
                if !self.answered(node, call, answer)? {
                    unheard.into_iter().for_each(|unheard| self.nobody_heard(node, unheard));
                }
            }
            Out::Snapshot(order) => self.take_snapshot(node, *order, inputs),
            Out::Prepare(preparation) => self.prepare(node, *preparation)?,
            Out::Discard(_) => {}
            Out::Feed(event) => self.told_to_readers(node, event)?,
            Out::Event(told) => self.told(node, told)?,
            Out::End(end) => self.ended(node, end)?,
        }
        Ok(())
    }

    /// A node tells the readers of its feed what it has applied.
    fn told_to_readers(&mut self, node: usize, event: FeedEvent) -> Check {
        if let FeedEvent::Record { at, .. } = &event {
            self.applies(node, *at)?;
        }
        let (id, life) = (self.hosts[node].id, self.hosts[node].life);
        self.checks.told.told(id, life, &event, self.is_available())?;
        self.publish(node, &event)
    }

    fn applies(&mut self, node: usize, at: Position) -> Check {
        let host = &mut self.hosts[node];
        let id = host.id;
        let Some(record) = host.written.get(&at).cloned() else {
            return ensure(false, "P12 what is applied stands in the log", || format!("{id} applies {at}"));
        };
        // A record that is applied is not asked for again.
        host.written = host.written.split_off(&at);
        self.apply(node, &record)
    }

    fn told(&mut self, node: usize, told: Told) -> Check {
        let id = self.hosts[node].id;
        self.note(|| format!("{id} {told:?}"));
        if let Told::Impasse { .. } = told {
            self.checks.told.called_off(id)?;
        }
        let standing = self.hosts[node].core().map(|core| (core.log().last(), core.vote().promise.epoch));
        let clock = self.hosts[node].clock.now(self.now);
        self.checks.story.told(self.now, node, clock, &told, standing.unwrap_or_default())?;
        if let Told::Opened { epoch } = told {
            self.openings.push((self.now, id));
            self.witness_opening();
            if self.tells_one_story() {
                self.checks.story.opened(epoch)?;
            }
            if let Some(core) = self.hosts[node].core().filter(|_| !self.is_available()) {
                self.checks.survival.opened(id, epoch, core.log())?;
            }
        }
        Ok(())
    }

    /// In available mode two leaders may follow different ones, and the chronicles of two machines under one id are mixed up.
    fn tells_one_story(&self) -> bool {
        let ids: BTreeSet<NodeId> = self.hosts.iter().map(|host| host.id).collect();
        !self.is_available() && ids.len() == self.hosts.len()
    }

    /// At the end of a run.
    pub fn stories_are_told(&self) -> Check {
        if self.tells_one_story() { self.checks.story.ended() } else { Ok(()) }
    }

    fn ended(&mut self, node: usize, end: End) -> Check {
        let host = &self.hosts[node];
        let id = host.id;
        let removed = matches!(&end, End::Fault(fault) if membership::was_removed(self, id, fault));
        let odd = matches!(end, End::Fault(Fault::Odd)) && host.is_suspect();
        let forgot = matches!(end, End::Fault(Fault::Forgot)) && host.put_back;
        let expected = removed || odd || forgot;
        ensure(host.calls.is_empty(), "P15 each call is answered", || {
            format!("{id} stops: {end:?} and owes {:?}", host.calls)
        })?;
        self.note(|| format!("{id} stops: {end:?}"));
        ensure(expected, "no node stops without a cause", || format!("{id} stops: {end:?}"))?;
        if removed {
            self.crash(node, false);
            // A supervisor starts the process again: the node may have been added meanwhile.
            self.after(3_000_000, Event::Restart { node });
            return Ok(());
        }
        self.hosts[node].put_back = false;
        self.odd.push(id);
        self.starts_over(node);
        Ok(())
    }

    pub fn promise_of(&self, node: usize) -> Epoch {
        self.hosts[node].core().map_or(Epoch::ZERO, |core| core.vote().promise.epoch)
    }

    /// A caller of a node has hung up.
    pub fn hang_up_at(&mut self, node: usize, call: CallId) -> Check {
        self.feed(node, In::Gone(call))
    }
}

fn if_unheard(answer: &Result<Answer, Denied>) -> Option<Unheard> {
    match answer {
        Ok(Answer::Role(granted)) => granted.if_unheard.clone(),
        _ => None,
    }
}

/// Outputs that others can see: the process may die between any two of them.
fn is_outward(out: &Out) -> bool {
    let inward =
        matches!(out, Out::Feed(_) | Out::Event(_) | Out::Prepare(_) | Out::Discard(_) | Out::End(_));
    !inward && !matches!(out, Out::Probe(_) | Out::Members { .. })
}
