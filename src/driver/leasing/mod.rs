//! Roles and processes on the leader: grants, waits, renewals, and what nobody renews.
//!
//! ```text
//! acquire ──► judged by the newest state ──┬─ free ──► a record ──► committed ──► granted
//!                 ▲                        ├─ held, and there is time to wait ──► the line ──┐
//!                 │                        └─ held ──► a round ──► still so ──► told who     │
//!                 └────────── a release or an end stands in the log: the first in line ◄─────┘
//!
//! renewal, or acquire by the holder ──► a round ──► counted (`crate::leases`) ──► answered
//! ```
//!
//! The line moves as soon as the record that frees the role stands in the log: the grant of the next one is the
//! record behind it, and both are synced together. Nobody who comes later passes by.
//!
//! Nothing of this is on disk but the records. A leader that is deposed sends everybody who waits to the next one.

mod acquire;
mod ends;
mod handle;
mod renew;

use std::collections::VecDeque;

use tokio::sync::oneshot;

pub use acquire::Acquiring;
pub use renew::Renewing;

use super::clock;
use super::engine::Engine;
use crate::leases::{Leases, Waiters};
use crate::store::{Applied, LeaseEvent, Role};
use crate::types::{Epoch, Index, LeaseName, Position, Span, Text, Time, WallTime};

/// What is asked of leases. What needs no more than a record is a plain write: a release, a removal.
#[derive(Debug)]
pub enum LeaseAsk {
    Acquire(Box<Acquiring>),
    Renew(Renewing),
    /// How long each has left, and how many wait for it.
    Times {
        names: Vec<LeaseName>,
        reply: oneshot::Sender<Option<LeaseTimes>>,
    },
}

#[derive(Debug, Default)]
pub struct Leasing {
    leases: Leases,
    waiters: Waiters<Box<Acquiring>>,
    /// The epoch that this node leads and counts leases in.
    led: Option<Epoch>,
    /// The state is another one: all is counted anew.
    anew: bool,
    /// The number of the record about leases that is under way, or was the last.
    record: u64,
    /// What is to be done when the core is at rest again.
    turns: VecDeque<Turn>,
    busy: bool,
}

#[derive(Debug)]
enum Turn {
    Acquire(Box<Acquiring>),
    Renew(Renewing),
    /// Somebody gave it back, or it ended.
    Freed(Text),
}

impl Leasing {
    pub fn deadline(&self) -> Time {
        self.leases.deadline().min(self.waiters.deadline())
    }

    pub fn start_over(&mut self) {
        self.anew = true;
    }
}

impl Engine {
    pub fn on_lease(&mut self, ask: LeaseAsk) {
        match ask {
            LeaseAsk::Acquire(acquiring) => self.leasing.turns.push_back(Turn::Acquire(acquiring)),
            LeaseAsk::Renew(renewing) => self.leasing.turns.push_back(Turn::Renew(renewing)),
            LeaseAsk::Times { names, reply } => drop(reply.send(self.lease_times(&names))),
        }
        self.settle_leases();
    }

    /// Does what is to be done. Called whenever the core is at rest; what it does may bring about more of it.
    pub fn settle_leases(&mut self) {
        if std::mem::replace(&mut self.leasing.busy, true) {
            return;
        }
        self.follow_leadership();
        while let Some(turn) = self.leasing.turns.pop_front() {
            match turn {
                Turn::Acquire(acquiring) => self.take_acquire(acquiring),
                Turn::Renew(renewing) => self.take_renewal(renewing),
                Turn::Freed(role) => self.take_freed(&role),
            }
            self.follow_leadership();
        }
        self.leasing.busy = false;
    }

    fn follow_leadership(&mut self) {
        let epoch = self.core.is_open().then(|| self.core.vote().promise.epoch);
        if epoch != self.leasing.led {
            self.leasing.leases.resign();
            self.leasing.led = epoch;
            self.leasing.anew = true;
            for waiter in self.leasing.waiters.drain() {
                waiter.ticket.deny(self.not_leading());
            }
        }
        if std::mem::take(&mut self.leasing.anew) && epoch.is_some() {
            let store = self.states.committed().clone();
            self.leasing.leases.lead(clock::now().mono, store.leases());
        }
    }

    /// A record has been committed.
    pub fn count_leases(&mut self, applied: &Applied) {
        if self.leasing.led.is_none() {
            return;
        }
        let now = clock::now().mono;
        for name in applied.changes.iter().filter_map(|key| key.lease()) {
            let lease = self.states.committed().lease(&name);
            self.leasing.leases.changed(now, name, lease);
        }
    }

    /// This record stands in the log: whoever waits for what it frees is next.
    pub fn move_lines(&mut self, index: Index) {
        let Some(applied) = self.states.brought_about(index) else { return };
        for event in &applied.events {
            if let LeaseEvent::RoleLost { role, .. } = event {
                self.leasing.turns.push_back(Turn::Freed(role.clone()));
            }
        }
    }

    /// None on a node that does not lead.
    fn lease_times(&self, names: &[LeaseName]) -> Option<LeaseTimes> {
        self.leasing.led?;
        let now = clock::now();
        let left = |name: &LeaseName| self.leasing.leases.left(name, now.mono);
        let waiting = |name: &LeaseName| match name {
            LeaseName::Role(role) => self.leasing.waiters.count(role),
            LeaseName::Process(_) => 0,
        };
        let times = names.iter().map(|name| (left(name), waiting(name)));
        Some(LeaseTimes { wall: now.wall, times: times.collect() })
    }
}

/// A role, a process, or the time that it has left, as the one who asked is told.
#[derive(Debug)]
pub struct Granted<T> {
    pub what: T,
    /// It was not there before, or nobody's.
    pub new: bool,
    pub expires_in: Span,
    /// Where its record stands; for what needed no record, how far the state was.
    pub position: Position,
    /// How many nodes had that record durably.
    pub acks: Option<usize>,
}

/// Who has a role.
#[derive(Clone, Debug)]
pub struct HeldBy {
    pub role: Text,
    pub by: Option<Role>,
    pub expires_in: Option<Span>,
    /// Nobody had it when the call came.
    pub conflict: bool,
}

/// What only the leader knows of leases, in the order in which they were asked for.
#[derive(Clone, Debug)]
pub struct LeaseTimes {
    /// The leader's clock, for people.
    pub wall: WallTime,
    /// What is left of each, and how many wait for it.
    pub times: Vec<(Option<Span>, usize)>,
}
