//! Calls that ask for a role or renew a lease, and what is known of them so far.

use super::io::{Acquire, CallId, Registration, Renewal};
use crate::store::{Command, LeaseOperation, Operation, Role};
use crate::types::{LeaseName, Span};

/// A call that asks for a role on behalf of an instance, and what is known of it so far.
#[derive(Clone, Debug)]
pub struct Acquiring {
    pub call: CallId,
    pub wanted: Acquire,
    /// Whether the role was free when the call was first judged; `None` before that.
    pub was_free: Option<bool>,
    /// The call got its turn after a wait.
    pub waited: bool,
    /// The caller has the role already, and changes its own description.
    pub again: bool,
    /// The key is that of an earlier call, which was granted.
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

    /// Every client can read the name, so the name alone proves nothing (P53).
    pub fn is_named_by(&self, held: &Role) -> bool {
        held.claim.instance == self.wanted.claim.instance
    }
}

/// A call that renews a lease or registers a process, and what is known of it so far.
#[derive(Clone, Debug)]
pub struct Renewing {
    pub call: CallId,
    pub what: What,
}

#[derive(Clone, Debug)]
pub enum What {
    /// The renewal of an existing lease.
    Held(Renewal),
    /// A registration. It is a renewal if the process describes itself as before; otherwise it is a record.
    Register {
        registration: Registration,
        /// The process was not registered when its record was proposed.
        new: bool,
        /// The key is that of an earlier call, which was carried out.
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

    /// The time that the holder asks for, if it is not all that it was granted.
    pub fn asked(&self) -> Option<Span> {
        match &self.what {
            What::Held(Renewal::Role { tenure, .. }) => tenure.ttl,
            What::Held(Renewal::Process { .. } | Renewal::Doc { .. }) => None,
            What::Register { registration, .. } => Some(registration.process.ttl),
        }
    }

    /// The connection that the holder relies on, if any.
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
