//! What a leader remembers of roles and of those who want them.

use std::collections::{BTreeMap, VecDeque};

use super::acquiring::Acquiring;
use super::renewing::Renewing;
use crate::leases::{Leases, Waiters};
use crate::replica::io::CallId;
use crate::types::{Epoch, LeaseName, Span, Text, Time};

#[derive(Clone, Debug, Default)]
pub(in crate::replica) struct Roles {
    pub leases: Leases,
    pub waiters: Waiters<Box<Acquiring>>,
    /// The epoch that this node leads and counts leases in.
    pub led: Option<Epoch>,
    /// The state is another one: all is counted anew.
    pub anew: bool,
    /// The number of the record about leases that is under way, or was the last.
    pub record: u64,
    pub turns: VecDeque<Turn>,
    /// Calls for a role that have no answer yet.
    pub callers: BTreeMap<CallId, Caller>,
}

#[derive(Clone, Debug)]
pub(in crate::replica) struct Caller {
    pub role: Text,
    pub instance: Text,
    pub gone: bool,
}

/// What is to be done next.
#[derive(Clone, Debug)]
pub(in crate::replica) enum Turn {
    Acquire(Box<Acquiring>),
    Renew(Renewing),
    /// Somebody gave it back, or it ended.
    Freed(Text),
}

impl Roles {
    pub fn deadline(&self) -> Time {
        self.leases.deadline().min(self.waiters.deadline())
    }

    pub fn leads(&self) -> bool {
        self.led.is_some()
    }

    /// The state has been replaced.
    pub fn start_over(&mut self) {
        self.anew = true;
    }

    pub fn next_turn(&mut self) -> Option<Turn> {
        self.turns.pop_front()
    }

    pub fn add_turn(&mut self, turn: Turn) {
        self.turns.push_back(turn);
    }

    /// What is left of a lease, and how many wait for it.
    pub fn times(&self, name: &LeaseName, now: Time) -> (Option<Span>, usize) {
        let waiting = match name {
            LeaseName::Role(role) => self.waiters.count(role),
            LeaseName::Process(_) | LeaseName::Doc(_) => 0,
        };
        (self.leases.left(name, now), waiting)
    }

    pub fn called(&mut self, call: CallId, role: Text, instance: Text) {
        self.callers.insert(call, Caller { role, instance, gone: false });
    }

    pub fn is_gone(&self, call: CallId) -> bool {
        self.callers.get(&call).is_some_and(|caller| caller.gone)
    }

    pub fn answered(&mut self, call: CallId) {
        self.callers.remove(&call);
    }

    /// Everybody who waits for a role.
    pub fn drain_waiters(&mut self) -> Vec<Acquiring> {
        self.waiters.drain().into_iter().map(|waiter| *waiter.ticket).collect()
    }

    /// Every call that waits here, when the replica ends.
    pub fn drain_calls(&mut self) -> Vec<CallId> {
        let turns = std::mem::take(&mut self.turns);
        let waiters = self.drain_waiters().into_iter().map(|acquiring| acquiring.call);
        turns.iter().filter_map(Turn::call).chain(waiters).collect()
    }
}

impl Turn {
    /// Who is to be answered.
    fn call(&self) -> Option<CallId> {
        match self {
            Turn::Acquire(acquiring) => Some(acquiring.call),
            Turn::Renew(renewing) => Some(renewing.call),
            Turn::Freed(_) => None,
        }
    }
}
