//! A call that wants a role.

use crate::replica::io::{Acquire, CallId};
use crate::store::{Command, LeaseOperation, Operation, Role};
use crate::types::LeaseName;

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
