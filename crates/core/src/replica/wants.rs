//! Calls that want a role, or keep something up, and what is known of them by now.

use super::io::{Acquire, CallId, Registration, Renewal};
use crate::store::{Command, LeaseOperation, Operation, Role};
use crate::types::{LeaseName, Span};

/// A call that wants a role for somebody, and what is known of it by now.
#[derive(Clone, Debug)]
pub struct Acquiring {
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
pub struct Renewing {
    pub call: CallId,
    pub what: What,
}

#[derive(Clone, Debug)]
pub enum What {
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
