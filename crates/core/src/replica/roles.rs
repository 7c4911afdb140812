//! What a leader remembers of roles and processes, and of the calls that want one or keep one up.

use std::collections::{BTreeMap, VecDeque};

use super::io::{Acquire, CallId, Registration, Renewal};
use crate::leases::{Leases, Waiters};
use crate::store::{Command, LeaseOperation, Operation, Role};
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

/// A call that wants a role for somebody, and what is known of it by now.
#[derive(Clone, Debug)]
pub(in crate::replica) struct Acquiring {
    pub call: CallId,
    pub wanted: Acquire,
    /// Whether anybody had it when the call came; not known before it is looked at.
    pub was_free: Option<bool>,
    /// Its turn came after a wait.
    pub waited: bool,
    /// It has the role already, and says something else about itself.
    pub again: bool,
    /// Its key is that of an earlier call, which was granted.
    pub replayed: bool,
}

impl Acquiring {
    pub fn name(&self) -> LeaseName {
        LeaseName::Role(self.wanted.role.clone())
    }

    pub fn command(&self) -> Command {
        let (role, claim, elect) = (self.wanted.role.clone(), self.wanted.claim.clone(), self.wanted.elect);
        Command::Single(Operation::Lease(LeaseOperation::Acquire { role, claim, elect }.into()))
    }

    pub fn is_by(&self, held: &Role) -> bool {
        self.is_named_by(held) && (self.wanted.elect || held.claim.admits(&self.wanted.claim))
    }

    /// The name alone can be read by everybody (P53).
    pub fn is_named_by(&self, held: &Role) -> bool {
        held.claim.instance == self.wanted.claim.instance
    }
}

/// A call that keeps something up, and what is known of it by now.
#[derive(Clone, Debug)]
pub(in crate::replica) struct Renewing {
    pub call: CallId,
    pub what: What,
}

#[derive(Clone, Debug)]
pub(in crate::replica) enum What {
    /// It is there already.
    Held(Renewal),
    /// One that says the same of itself again is a renewal; else it is a record.
    Register {
        registration: Registration,
        /// It was not there when its record was proposed.
        new: bool,
        /// Its key is that of an earlier call, which was carried out.
        replayed: bool,
    },
}

impl Renewing {
    pub fn name(&self) -> LeaseName {
        match &self.what {
            What::Held(Renewal::Role { role, .. }) => LeaseName::Role(role.clone()),
            What::Held(Renewal::Process { id, .. }) => LeaseName::Process(id.clone()),
            What::Held(Renewal::Doc { key, .. }) => LeaseName::Doc(key.clone()),
            What::Register { registration, .. } => LeaseName::Process(registration.id.clone()),
        }
    }

    /// How much the holder asks for, if not for all that it was granted.
    pub fn asked(&self) -> Option<Span> {
        match &self.what {
            What::Held(Renewal::Role { tenure, .. }) => tenure.ttl,
            What::Held(Renewal::Process { .. } | Renewal::Doc { .. }) => None,
            What::Register { registration, .. } => Some(registration.process.ttl),
        }
    }

    /// The connection that its holder relies on, if any.
    pub fn tie(&self) -> Option<u64> {
        match &self.what {
            What::Held(Renewal::Role { tenure, .. }) => tenure.tie,
            What::Held(Renewal::Process { .. } | Renewal::Doc { .. }) | What::Register { .. } => None,
        }
    }

    pub fn registers(&self) -> bool {
        matches!(self.what, What::Register { .. })
    }
}
