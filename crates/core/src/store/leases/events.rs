//! A lease event says what became of a role or a process, for those who are told of it one by one.

use std::fmt::Write;
use std::sync::Arc;

use crate::store::command::NewProcess;
use crate::store::encoding::write_text;
use crate::store::state::Store;
use crate::store::tables::{Key, Role};
use crate::types::{LeaseName, Text};

/// What became of leases, for those who are told one by one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseEvent {
    RoleAcquired { role: Text, instance: Text, token: u64 },
    RoleLost { role: Text, instance: Text, token: u64, why: Ended },
    ProcessRegistered { id: Text, process: Arc<NewProcess> },
    ProcessRemoved { id: Text, process: Arc<NewProcess>, why: Ended },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By the holder's own word.
    Released,
    /// By its own or an operator's word.
    Removed,
    /// It was not renewed.
    Expired,
    /// Another was named.
    Replaced,
    /// Another side's stays.
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

impl LeaseEvent {
    /// As JSON members, each with its comma before it.
    pub fn members(&self) -> String {
        let mut out = String::new();
        let mut text = |name: &str, text: &str| {
            write!(out, ",\"{name}\":")
                .and_then(|()| write_text(&mut out, text))
                .expect("a string takes everything");
        };
        match self {
            LeaseEvent::RoleAcquired { role, instance, .. } | LeaseEvent::RoleLost { role, instance, .. } => {
                text("role", role);
                text("instance_id", instance);
            }
            LeaseEvent::ProcessRegistered { id, process }
            | LeaseEvent::ProcessRemoved { id, process, .. } => {
                text("process", id);
                text("identifier", &process.identifier);
                process.role.iter().for_each(|role| text("role", role));
            }
        }
        let rest = match self {
            LeaseEvent::RoleAcquired { token, .. } => format!(",\"token\":{token}"),
            LeaseEvent::RoleLost { token, why, .. } => {
                format!(",\"token\":{token},\"reason\":\"{}\"", why.name())
            }
            LeaseEvent::ProcessRegistered { .. } => String::new(),
            LeaseEvent::ProcessRemoved { why, .. } => format!(",\"reason\":\"{}\"", why.name()),
        };
        out + &rest
    }

    /// The role's name or the process's id.
    pub fn name(&self) -> &Text {
        match self {
            LeaseEvent::RoleAcquired { role, .. } | LeaseEvent::RoleLost { role, .. } => role,
            LeaseEvent::ProcessRegistered { id, .. } | LeaseEvent::ProcessRemoved { id, .. } => id,
        }
    }
}

impl Store {
    /// What the step from another state to this one means to those who hold leases.
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
            }
        }
        events
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
        })
    }
}
