//! The game's time and what happens in it, one event after another.

use std::collections::BTreeMap;

use super::super::role;
use super::Bug;
use super::checker::{Checker, Violation};
use super::cluster::{Cluster, LeaderId, Record};
use super::renewals::Renewal;
use super::rng::Rng;
use crate::types::{LeaseName, Span, Text, Time};

const LENGTH: Span = Span::millis(15_000);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Wild,
    /// Nothing is lost and no holder is silent; only leaders change.
    Calm,
}

#[derive(Debug)]
pub enum Event {
    /// An instance asks for the lease, if it is free.
    Want(LeaseName),
    /// The holder of this token does something.
    Act {
        name: LeaseName,
        token: u64,
        ttl: Span,
    },
    Arrive(Renewal),
    /// A majority has answered the round.
    Confirmed(Renewal),
    /// The leader has seen the answer of the majority.
    Process(Renewal),
    /// The holder reads how long it may believe from when it sent the renewal.
    Answer {
        renewal: Renewal,
        expires_in: Span,
    },
    /// This leader was to wake up for something due at this time of its clock.
    Wake(LeaderId, Time),
    /// The decision on a record, and on the records before it.
    Decide {
        leader: LeaderId,
        record: u64,
        refused: bool,
    },
    Depose,
    Lead {
        since: Time,
    },
    Resign(LeaderId),
    ReplaceState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Seen {
    Grant,
    Renewal,
    /// The holder's own record about itself.
    Again,
    /// A renewal that was promised less than it asked for.
    Halved,
    /// A renewal that waited for an end to be decided.
    Waited,
    End,
    Age,
    Refresh,
    Term,
    /// A record that was refused.
    Refusal,
    /// A record that outlived its leader.
    Survivor,
}

/// The number of times that each thing was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally(BTreeMap<Seen, usize>);

impl Tally {
    pub fn see(&mut self, what: Seen, times: usize) {
        *self.0.entry(what).or_default() += times;
    }

    pub fn of(&self, what: Seen) -> usize {
        self.0.get(&what).copied().unwrap_or(0)
    }

    pub fn add(&mut self, other: &Tally) {
        other.0.iter().for_each(|(what, times)| self.see(*what, *times));
    }
}

#[derive(Debug)]
pub struct World {
    pub now: Time,
    pub rng: Rng,
    pub kind: Kind,
    pub bug: Bug,
    pub cluster: Cluster,
    pub checker: Checker,
    pub tally: Tally,
    /// Renewals that wait until a record that ends their token is decided.
    pub waiting: Vec<Renewal>,
    events: BTreeMap<(Time, u64), Event>,
    serial: u64,
}

impl World {
    pub fn new(kind: Kind, seed: u64, bug: Bug) -> World {
        let mut world = World {
            now: Time(0),
            rng: Rng::new(seed),
            kind,
            bug,
            cluster: Cluster::default(),
            checker: Checker::default(),
            tally: Tally::default(),
            waiting: Vec::new(),
            events: BTreeMap::new(),
            serial: 0,
        };
        world.after(Span::ZERO, Event::Lead { since: Time(0) });
        for name in ["a", "b", "c"] {
            world.after(Span::millis(1), Event::Want(role(name)));
            world.after(Span::millis(2), Event::Want(LeaseName::Process(Text::from(name))));
        }
        world
    }

    pub fn play(mut self) -> Result<Tally, Violation> {
        while let Some(((now, _), event)) = self.events.pop_first() {
            if now > Time(0) + LENGTH {
                break;
            }
            self.now = now;
            self.happen(event)?;
            self.set_alarms();
        }
        if self.cluster.in_charge().is_some() {
            let mut leases = self.cluster.state.values();
            leases.try_for_each(|lease| self.checker.check_late(lease.token, self.now))?;
        }
        Ok(self.tally)
    }

    pub fn after(&mut self, span: Span, event: Event) {
        self.serial += 1;
        self.events.insert((self.now + span, self.serial), event);
    }

    /// A number that was never given before, for tokens and records.
    pub fn number(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// Draws whether a mishap happens, once in so many times. None happens in a calm game.
    pub fn mishap(&mut self, one_in: u64) -> bool {
        self.kind == Kind::Wild && self.rng.one_in(one_in)
    }

    fn happen(&mut self, event: Event) -> Result<(), Violation> {
        match event {
            Event::Want(name) => self.want(name),
            Event::Act { name, token, ttl } => self.act(name, token, ttl),
            Event::Arrive(renewal) => self.arrive(renewal),
            Event::Confirmed(renewal) => self.confirmed(renewal),
            Event::Process(renewal) => self.process(renewal),
            Event::Answer { renewal, expires_in } => return self.answer(&renewal, expires_in),
            Event::Wake(leader, deadline) => return self.wake(leader, deadline),
            Event::Decide { leader, record, refused } => return self.decide(leader, record, refused),
            Event::Depose => self.depose(),
            Event::Lead { since } => return self.lead(since),
            Event::Resign(leader) => self.resign(leader),
            Event::ReplaceState => self.replace_state(),
        }
        Ok(())
    }

    /// The newest leader that has not resigned wakes up a little after the next thing is due.
    fn set_alarms(&mut self) {
        let Some(id) = self.cluster.newest() else { return };
        let leader = &mut self.cluster.leaders[id];
        let deadline = leader.leases.deadline();
        if deadline == leader.wake {
            return;
        }
        leader.wake = deadline;
        if deadline != Time::NEVER {
            let ahead = leader.game_time(deadline).since(self.now);
            let late = self.rng.span(0, 20);
            self.after(ahead + late, Event::Wake(id, deadline));
        }
    }

    /// Gives a record to the leader's log, to be decided soon.
    pub fn propose(&mut self, leader: LeaderId, record: Record) {
        let number = self.number();
        let calm = self.cluster.leaders[leader].refusals >= 2;
        let refused = !calm && self.mishap(6);
        let due = matches!(record, Record::Due(_));
        if due {
            self.cluster.leaders[leader].refusals = match refused {
                true => self.cluster.leaders[leader].refusals + 1,
                false => 0,
            };
        }
        if refused && !due {
            return;
        }
        if !refused {
            self.cluster.leaders[leader].undecided.push_back((number, record));
        }
        let delay = self.rng.span(1, 80);
        self.after(delay, Event::Decide { leader, record: number, refused });
    }
}
