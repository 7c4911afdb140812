//! The leader's knowledge of roles and processes, and of the calls that ask for one or renew one.
//!
//! All of this is in memory, and ends with the leadership. The log has the grants; renewals, ties and the queue are
//! here alone (P38, P41). Calls are turns in a queue, not function calls, because one turn may cause another: a release frees
//! a role, the first waiter gets it, and waiters whose time is over get an answer.

mod granting;

use std::collections::{BTreeMap, VecDeque};

use crate::leases::{Leases, Waiter, Waiters};
use crate::protocol::mutant::{self, Mutant};
use crate::replica::answer::LeaseTime;
use crate::replica::io::{CallId, Out};
use crate::replica::wants::{Acquiring, Renewing};
use crate::types::{Epoch, LeaseName, Text, Time};

#[derive(Clone, Debug, Default)]
pub struct Roles {
    leases: Leases,
    waiters: Waiters<Box<Acquiring>>,
    /// The epoch that this node leads and counts leases in.
    led: Option<Epoch>,
    /// The state was replaced, or another epoch has begun, so all leases are to be counted from the start again.
    anew: bool,
    /// The number of the newest record about leases; it may still be under way.
    record: u64,
    turns: VecDeque<Turn>,
    /// Calls for a role that have no answer yet.
    callers: BTreeMap<CallId, Caller>,
}

#[derive(Clone, Debug)]
struct Caller {
    role: Text,
    instance: Text,
    gone: bool,
}

/// The next thing to do.
#[derive(Clone, Debug)]
enum Turn {
    Acquire(Box<Acquiring>),
    Renew(Renewing),
    /// The role was released, or its lease ended.
    Freed(Text),
}

impl Roles {
    pub fn deadline(&self) -> Time {
        self.leases.deadline().min(self.waiters.deadline())
    }

    pub fn leads(&self) -> bool {
        self.led.is_some()
    }

    /// The number of calls that wait for a role held by another instance.
    pub fn waiting(&self) -> usize {
        self.waiters.waiting()
    }

    /// The state has been replaced.
    pub fn start_over(&mut self) {
        self.anew = true;
    }

    /// The role may be free, so its first waiter gets the next turn, before the calls whose turns are queued: those came later, are
    /// judged again, or have waited until their time was over.
    /// The mutant `LatecomersPass` shows what happens otherwise: a call that arrives with the release gets the role.
    fn falls_free(&mut self, role: Text) {
        match mutant::is_on(Mutant::LatecomersPass) {
            true => self.turns.push_back(Turn::Freed(role)),
            false => self.turns.push_front(Turn::Freed(role)),
        }
    }

    fn add_turn(&mut self, turn: Turn) {
        self.turns.push_back(turn);
    }

    pub fn times(&self, name: &LeaseName, now: Time) -> LeaseTime {
        let waiting = match name {
            LeaseName::Role(role) => self.waiters.count(role),
            LeaseName::Process(_) | LeaseName::Doc(_) => 0,
        };
        LeaseTime { left: self.leases.left(name, now), waiting, tie: self.leases.tie(name) }
    }

    /// The first callers that wait for a role, in the order in which they would get it: each instance and its priority.
    pub fn queue(&self, role: &Text, most: usize) -> Vec<(Text, i64)> {
        let shown = |waiter: &Waiter<Box<Acquiring>>| (waiter.instance.clone(), waiter.priority);
        self.waiters.in_order(role).take(most).map(shown).collect()
    }

    fn called(&mut self, call: CallId, role: Text, instance: Text) {
        self.callers.insert(call, Caller { role, instance, gone: false });
    }

    fn is_gone(&self, call: CallId) -> bool {
        self.callers.get(&call).is_some_and(|caller| caller.gone)
    }

    /// Forgets the callers that have got their answer.
    pub fn forget_answered(&mut self, out: &[Out]) {
        for output in out {
            if let Out::Answer(call, _) = output {
                self.callers.remove(call);
            }
        }
    }

    /// Removes all calls that wait for a role, and returns them.
    fn drain_waiters(&mut self) -> Vec<Acquiring> {
        self.waiters.drain().into_iter().map(|waiter| *waiter.ticket).collect()
    }

    /// Removes every call that waits here and returns it, when the replica ends.
    pub fn drain_calls(&mut self) -> Vec<CallId> {
        let turns = std::mem::take(&mut self.turns);
        let waiters = self.drain_waiters().into_iter().map(|acquiring| acquiring.call);
        turns.iter().filter_map(Turn::call).chain(waiters).collect()
    }
}

impl Turn {
    /// The caller to answer.
    fn call(&self) -> Option<CallId> {
        match self {
            Turn::Acquire(acquiring) => Some(acquiring.call),
            Turn::Renew(renewing) => Some(renewing.call),
            Turn::Freed(_) => None,
        }
    }
}
