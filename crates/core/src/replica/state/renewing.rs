//! A call that keeps something up.

use crate::replica::io::{CallId, Registration};
use crate::store::{Condition, SecretHash, Tenure};
use crate::types::{LeaseName, Span, Text};

/// A call that keeps something up, and what is known of it by now.
#[derive(Clone, Debug)]
pub(in crate::replica) struct Renewing {
    pub call: CallId,
    pub what: What,
}

#[derive(Clone, Debug)]
pub(in crate::replica) enum What {
    Role {
        role: Text,
        tenure: Tenure,
    },
    Process {
        id: Text,
        secret: Option<SecretHash>,
    },
    Doc {
        key: Text,
        condition: Condition,
    },
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
            What::Role { role, .. } => LeaseName::Role(role.clone()),
            What::Process { id, .. } => LeaseName::Process(id.clone()),
            What::Doc { key, .. } => LeaseName::Doc(key.clone()),
            What::Register { registration, .. } => LeaseName::Process(registration.id.clone()),
        }
    }

    /// How much the holder asks for, if not for all that it was granted.
    pub fn asked(&self) -> Option<Span> {
        match &self.what {
            What::Role { tenure, .. } => tenure.ttl,
            What::Process { .. } | What::Doc { .. } => None,
            What::Register { registration, .. } => Some(registration.process.ttl),
        }
    }

    /// The connection that its holder relies on, if any.
    pub fn tie(&self) -> Option<u64> {
        match &self.what {
            What::Role { tenure, .. } => tenure.tie,
            What::Process { .. } | What::Doc { .. } | What::Register { .. } => None,
        }
    }

    pub fn registers(&self) -> bool {
        matches!(self.what, What::Register { .. })
    }
}
