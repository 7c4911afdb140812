//! A call that keeps something up.

use crate::replica::io::{CallId, Registration, Renewal};
use crate::types::{LeaseName, Span};

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
