//! The lease events of roles and processes, for subscribers who receive them one by one.

use std::fmt::{self, Write};
use std::sync::Arc;

use crate::store::command::NewProcess;
use crate::store::encoding::write_text;
use crate::store::state::Store;
use crate::store::tables::{Key, Role};
use crate::types::{LeaseName, Text};

/// A change of a role's or a process's lease, for subscribers of events. `before` is the description that a process had until
/// now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseEvent {
    RoleAcquired { role: Text, instance: Text, token: u64 },
    RoleLost { role: Text, instance: Text, token: u64, why: Ended },
    ProcessRegistered { id: Text, process: Arc<NewProcess> },
    ProcessChanged { id: Text, process: Arc<NewProcess>, before: Arc<NewProcess> },
    ProcessRemoved { id: Text, process: Arc<NewProcess>, why: Ended },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The holder released it.
    Released,
    /// The process or an operator removed it.
    Removed,
    /// It was not renewed.
    Expired,
    /// An operator named another holder.
    Replaced,
    /// A merge kept the holder of another side.
    Merged,
}

impl Ended {
    pub fn name(self) -> &'static str {
        match self {
            Ended::Released => "released",
            Ended::Removed => "removed",
            Ended::Expired => "expired",
            Ended::Replaced => "replaced",
            Ended::Merged => "merged",
        }
    }
}

/// The reason why a document ended without being deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocEnded {
    /// The document was not written or renewed for its ttl.
    Expired,
    /// The lease that the document was bound to has ended.
    WithLease,
}

impl DocEnded {
    pub fn name(self) -> &'static str {
        match self {
            DocEnded::Expired => "expired",
            DocEnded::WithLease => "lease_ended",
        }
    }
}

impl fmt::Display for DocEnded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name())
    }
}

impl LeaseEvent {
    /// The event as JSON members, each with a comma before it.
    pub fn members(&self) -> String {
        let mut out = String::new();
        let mut text = |name: &str, text: &str| {
            write!(out, ",\"{name}\":")
                .and_then(|()| write_text(&mut out, text))
                .expect("writing to a String cannot fail");
        };
        match self {
            LeaseEvent::RoleAcquired { role, instance, .. } | LeaseEvent::RoleLost { role, instance, .. } => {
                text("role", role);
                text("instance_id", instance);
            }
            LeaseEvent::ProcessRegistered { id, process }
            | LeaseEvent::ProcessChanged { id, process, .. }
            | LeaseEvent::ProcessRemoved { id, process, .. } => {
                text("process", id);
                text("identifier", &process.identifier);
                process.role.iter().for_each(|role| text("role", role));
            }
        }
        if let LeaseEvent::ProcessChanged { before, .. } = self {
            before.role.iter().for_each(|role| text("previous_role", role));
        }
        let rest = match self {
            LeaseEvent::RoleAcquired { token, .. } => format!(",\"token\":{token}"),
            LeaseEvent::RoleLost { token, why, .. } => {
                format!(",\"token\":{token},\"reason\":\"{}\"", why.name())
            }
            LeaseEvent::ProcessRegistered { .. } => String::new(),
            LeaseEvent::ProcessChanged { process, .. } => about(process),
            LeaseEvent::ProcessRemoved { why, .. } => format!(",\"reason\":\"{}\"", why.name()),
        };
        out + &rest
    }

    /// The role's name or the process's id.
    pub fn name(&self) -> &Text {
        match self {
            LeaseEvent::RoleAcquired { role, .. } | LeaseEvent::RoleLost { role, .. } => role,
            LeaseEvent::ProcessRegistered { id, .. }
            | LeaseEvent::ProcessChanged { id, .. }
            | LeaseEvent::ProcessRemoved { id, .. } => id,
        }
    }
}

/// The process's capabilities and metadata. Both are JSON already.
fn about(process: &NewProcess) -> String {
    let given = [("capabilities", &process.capabilities), ("metadata", &process.metadata)];
    given.iter().filter_map(|(name, json)| Some(format!(",\"{name}\":{}", json.as_ref()?))).collect()
}

/// The event of a process that registers again. A change of the ttl alone is no event, because the ttl only concerns its lease.
pub(super) fn changed(id: &Text, before: &Arc<NewProcess>, now: &Arc<NewProcess>) -> Option<LeaseEvent> {
    let same_but_for_its_ttl = **before == NewProcess { ttl: before.ttl, ..NewProcess::clone(now) };
    let (id, process, before) = (id.clone(), now.clone(), before.clone());
    (!same_but_for_its_ttl).then_some(LeaseEvent::ProcessChanged { id, process, before })
}

impl Store {
    /// The lease events of the step from another state to this one.
    /// A merge gives no events one by one, so they are worked out from the two states. Another token means that one
    /// holder lost the lease and another one got it.
    pub fn lease_events_since(&self, before: &Store, changed: &[Key]) -> Vec<LeaseEvent> {
        let mut events = Vec::new();
        let mut names: Vec<LeaseName> = changed.iter().filter_map(Key::lease).collect();
        names.sort();
        names.dedup();
        for name in names {
            let token = |store: &Store| store.lease(&name).map(|lease| lease.token);
            if token(before) != token(self) {
                events.extend(before.lost(&name));
                events.extend(self.got(&name));
            } else if let LeaseName::Process(id) = &name {
                events.extend(self.changed_since(before, id));
            }
        }
        events
    }

    fn changed_since(&self, before: &Store, id: &Text) -> Option<LeaseEvent> {
        changed(id, &before.processes.get(id)?.new, &self.processes.get(id)?.new)
    }

    fn lost(&self, name: &LeaseName) -> Option<LeaseEvent> {
        let why = Ended::Merged;
        Some(match name {
            LeaseName::Role(role) => {
                let Role { claim, token, .. } = self.roles.get(role)?;
                let (role, instance, token) = (role.clone(), claim.instance.clone(), *token);
                LeaseEvent::RoleLost { role, instance, token, why }
            }
            LeaseName::Process(id) => {
                let process = self.processes.get(id)?.new.clone();
                LeaseEvent::ProcessRemoved { id: id.clone(), process, why }
            }
            LeaseName::Doc(_) => return None,
        })
    }

    fn got(&self, name: &LeaseName) -> Option<LeaseEvent> {
        Some(match name {
            LeaseName::Role(role) => {
                let Role { claim, token, .. } = self.roles.get(role)?;
                let (role, instance, token) = (role.clone(), claim.instance.clone(), *token);
                LeaseEvent::RoleAcquired { role, instance, token }
            }
            LeaseName::Process(id) => {
                let process = self.processes.get(id)?.new.clone();
                LeaseEvent::ProcessRegistered { id: id.clone(), process }
            }
            LeaseName::Doc(_) => return None,
        })
    }
}
