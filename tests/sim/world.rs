//! The cluster on one thread: an event queue in true time.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use eldest::protocol::{Envelope, Node};
use eldest::replica::{In, Prepared};
use eldest::types::NodeId;

use crate::checks::{Check, Checks, Violation, ensure};
use crate::client::{Answer, Call, Clients};
use crate::doubles::Doubles;
use crate::host::Host;
use crate::leases::{self, Lessees};
use crate::net::{Filter, Net};
use crate::readers::Readers;
use crate::restores::Operator;
use crate::rng::Rng;
use crate::sides::{self, Holders, Sides};
use crate::state::Transfer;
use crate::stored::Task;

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "most events are deliveries")]
pub enum Event {
    Deliver {
        envelope: Envelope,
        state: Option<Transfer>,
    },
    Tick {
        node: usize,
        life: u64,
        at: u64,
    },
    Disk {
        node: usize,
        life: u64,
        task: Task,
    },
    /// A preparation that ran while other things went on has ended; `from` is what it was made from (P49).
    Prepared {
        node: usize,
        life: u64,
        prepared: Box<Prepared>,
        from: Option<Transfer>,
    },
    /// A port refuses. With `lie`, something else answered and the process lives (P11).
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
    /// A node takes the calls that have gathered.
    Round {
        node: usize,
        life: u64,
    },
    Restart {
        node: usize,
    },
    OperatorRestores,
    TokenOrder,
    ReaderWakes {
        reader: usize,
    },
    Side(sides::Event),
    Lease(leases::Event),
}

#[derive(Debug)]
pub struct World {
    pub now: u64,
    /// Boxed: an event is large, and moves with its neighbours.
    queue: BTreeMap<(u64, u64), Box<Event>>,
    sequence: u64,
    pub rng: Rng,
    pub net: Net,
    pub hosts: Vec<Host>,
    pub checks: Checks,
    pub clients: Clients,
    pub sides: Sides,
    pub holders: Option<Holders>,
    pub lessees: Option<Lessees>,
    pub operator: Option<Operator>,
    pub tokens: Option<Rng>,
    pub readers: Option<Readers>,
    pub doubles: Doubles,
    pub steps: u64,
    /// Folded over every step: two runs of a seed must agree on it.
    pub trace_hash: u64,
    /// Lines of what happened, if wanted.
    pub trace: Option<Vec<String>>,
    /// Faults that nodes have reported and that the plan has caused.
    pub odd: Vec<NodeId>,
    pub openings: Vec<(u64, NodeId)>,
    pub messages: u64,
    /// Picks the messages of which copies are kept, for a scenario that wants to see them again.
    pub recorder: Option<Filter>,
    pub recorded: Vec<(Envelope, Option<Transfer>)>,
    /// The total weight of the messages, by a scale that a test may set.
    pub bytes: u64,
    pub scale: Option<fn(&Envelope) -> u64>,
    /// Calls wait for others at a node, so that a round takes several.
    pub gathers: bool,
    /// The number of outputs that have been carried out.
    pub outputs: u64,
    pub doom: Option<Doom>,
    /// The features of this run: how it was set up, and each kind of harm that was done.
    pub features: BTreeSet<String>,
}

/// A node dies right before this output, no matter which node makes it, and comes back after a while.
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
            sides: Sides::default(),
            holders: None,
            lessees: None,
            operator: None,
            tokens: None,
            readers: None,
            doubles: Doubles::default(),
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
            gathers: false,
            outputs: 0,
            doom: None,
            features: BTreeSet::new(),
        }
    }

    pub fn at(&mut self, time: u64, event: Event) {
        self.sequence += 1;
        self.queue.insert((time.max(self.now), self.sequence), event.into());
    }

    pub fn after(&mut self, delay: u64, event: Event) {
        self.at(self.now + delay, event);
    }

    pub fn host(&self, id: NodeId) -> &Host {
        &self.hosts[self.slot(id)]
    }

    pub fn slot(&self, id: NodeId) -> usize {
        let machine = |host: &Host| host.id == id && !host.retired;
        self.hosts.iter().position(machine).expect("a node of the topology")
    }

    pub fn run_until(&mut self, until: u64) -> Check {
        while let Some(entry) = self.queue.first_entry() {
            if entry.key().0 > until {
                break;
            }
            let ((time, _), event) = entry.remove_entry();
            self.now = time;
            self.step(*event)?;
        }
        self.now = until;
        Ok(())
    }

    /// Runs until something holds, at most until `until`. Returns whether it came to hold.
    pub fn run_until_true(&mut self, until: u64, holds: impl Fn(&World) -> bool) -> Result<bool, Violation> {
        while !holds(self) {
            let Some(entry) = self.queue.first_entry().filter(|entry| entry.key().0 <= until) else {
                self.now = until;
                return Ok(false);
            };
            let ((time, _), event) = entry.remove_entry();
            self.now = time;
            self.step(*event)?;
        }
        Ok(true)
    }

    /// Runs until this many events have happened, counted from the beginning.
    pub fn run_to_step(&mut self, step: u64) -> Check {
        while self.steps < step {
            let Some(((time, _), event)) = self.queue.pop_first() else {
                break;
            };
            self.now = time;
            self.step(*event)?;
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
            // Otherwise an earlier tick has taken its place, and its result has set the next one.
            Event::Tick { node, life, at }
                if self.hosts[node].life == life && self.hosts[node].tick_at == at =>
            {
                self.hosts[node].tick_at = u64::MAX;
                self.feed(node, In::Tick)?;
            }
            Event::Disk { node, life, task } if self.hosts[node].life == life => {
                self.disk_does(node, task)?
            }
            Event::Prepared { node, life, prepared, from } if self.hosts[node].life == life => {
                self.hosts[node].prepares = false;
                self.hosts[node].prepared_from = from;
                self.feed(node, In::Prepared(prepared))?;
            }
            Event::Refused { node, peer, lie } if lie || !self.hosts[self.machine(node, peer)].is_up() => {
                let now = self.hosts[node].clock.now(self.now).mono;
                if lie {
                    self.checks.story.denied(node, peer, self.now);
                }
                self.checks.answered.refused(self.hosts[node].id, peer, now);
                self.feed(node, In::PeerRefused(peer))?;
            }
            Event::Call { node, call } => self.call(node, call)?,
            Event::Round { node, life } if self.hosts[node].life == life => self.round(node)?,
            Event::Answer { call, answer } => self.answer(call, answer)?,
            Event::ClientWakes { client } => self.client_wakes(client),
            Event::ClientGivesUp { call } => self.client_gives_up(call),
            Event::Restart { node } => self.start(node)?,
            Event::ReaderWakes { reader } => self.reader_wakes(reader)?,
            Event::OperatorRestores => self.operator_restores()?,
            Event::TokenOrder => self.token_order()?,
            Event::Side(event) => self.side_event(event)?,
            Event::Lease(event) => self.lease_event(event)?,
            _ => {}
        }
        self.check_leases()
    }

    /// The node to whose process an event is given, if it is given to one.
    fn given_to(&self, event: &Event) -> Option<usize> {
        let node = match event {
            Event::Deliver { envelope, .. } => self.reached_from(envelope.from, envelope.to),
            Event::Tick { node, .. }
            | Event::Disk { node, .. }
            | Event::Prepared { node, .. }
            | Event::Refused { node, .. }
            | Event::Call { node, .. }
            | Event::Round { node, .. }
            | Event::Side(sides::Event::Call { node, .. })
            | Event::Side(sides::Event::Role(sides::RoleEvent::Call { node, .. }))
            | Event::Lease(leases::Event::Call { node, .. } | leases::Event::Document { node, .. }) => *node,
            _ => return None,
        };
        Some(node)
    }

    /// An event for a frozen process waits until it thaws.
    fn unless_paused(&mut self, event: Event) -> Option<Event> {
        let until = self.given_to(&event).map_or(0, |node| self.hosts[node].paused_until);
        if until <= self.now {
            return Some(event);
        }
        self.at(until, event);
        None
    }

    /// A frozen process thaws before its time, and gets at once what has waited.
    pub fn thaw(&mut self, node: usize) {
        let until = std::mem::take(&mut self.hosts[node].paused_until);
        if until > self.now {
            self.give_at_once(until..=until, |world, event| world.given_to(event) == Some(node));
        }
    }

    /// A slow machine has finished its preparation.
    pub fn finish_work(&mut self, node: usize) {
        let works = |event: &Event| matches!(event, Event::Prepared { node: of, .. } if *of == node);
        self.give_at_once(self.now..=u64::MAX, |_, event| works(event));
    }

    fn give_at_once(&mut self, due: RangeInclusive<u64>, given: impl Fn(&World, &Event) -> bool) {
        let waiting = self.queue.range((*due.start(), 0)..=(*due.end(), u64::MAX));
        let waiting = waiting.filter(|(_, event)| given(self, event));
        let waiting: Vec<(u64, u64)> = waiting.map(|(key, _)| *key).collect();
        for key in waiting {
            if let Some(event) = self.queue.remove(&key) {
                self.at(self.now, *event);
            }
        }
    }

    fn check_leases(&self) -> Check {
        let awake = self.hosts.iter().filter(|host| host.paused_until <= self.now);
        let open = awake.filter(|host| host.core().is_some_and(Node::is_open));
        // Every event comes by here, and a single leader disputes nothing.
        if open.clone().nth(1).is_none() {
            return Ok(());
        }
        let says = |host: &&Host| {
            let now = host.clock.now(self.now).mono;
            host.replica.as_ref().is_some_and(|replica| replica.is_leader(now))
        };
        let holders: Vec<NodeId> = open.filter(says).map(|host| host.id).collect();
        self.checks.lease.holders(&holders)
    }

    pub fn note(&mut self, line: impl FnOnce() -> String) {
        let now = self.now;
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{:>10} {}", now, line()));
        }
    }

    pub fn mix(&mut self, word: u64) {
        self.trace_hash = (self.trace_hash ^ word).wrapping_mul(0x0000_0100_0000_01B3).rotate_left(23);
    }
}
