//! What operations on leases demand of the state, and what they do to it.

use std::sync::Arc;

use super::key::Key;
use super::lease_command::{Claim, LeaseOperation, NewProcess};
use super::leases::{Ended, LeaseEvent, Process, Role};
use super::rejection::{Reason, Thing};
use super::sides::Written;
use super::state::Store;
use crate::types::{LeaseName, Position, Text, WallTime};

/// What an operation brought about besides its entries.
pub(super) struct Making<'a> {
    pub at: Position,
    pub wall: WallTime,
    pub changes: &'a mut Vec<Key>,
    pub events: &'a mut Vec<LeaseEvent>,
}

impl Store {
    pub(super) fn check_lease(&self, operation: &LeaseOperation) -> Result<(), Reason> {
        match operation {
            LeaseOperation::Acquire { role, claim, elect } => self.check_acquire(role, claim, *elect),
            LeaseOperation::Release { role, instance, token } => match self.roles.get(role) {
                Some(held) if held.claim.instance == *instance && held.token == *token => Ok(()),
                _ => Err(Reason::LeaseLost { role: role.clone() }),
            },
            LeaseOperation::End { leases } => self.any_stands(leases, |_| true),
            LeaseOperation::Age { aged, renewed } => {
                let older = self.any_stands(aged, |was| !was);
                older.or_else(|_| self.any_stands(renewed, |was| was))
            }
            LeaseOperation::Register { id, process } => match self.processes.get(id) {
                Some(there) if there.new == process_after(&there.new, process) => Err(Reason::Unchanged),
                _ => Ok(()),
            },
            LeaseOperation::Remove { id } if self.processes.get(id).is_none() => {
                Err(Reason::NotFound { thing: Thing::Process, name: id.clone() })
            }
            LeaseOperation::Remove { .. } => Ok(()),
        }
    }

    /// A holder may say something else about itself; its token stays.
    fn check_acquire(&self, role: &Text, claim: &Arc<Claim>, elect: bool) -> Result<(), Reason> {
        match self.roles.get(role) {
            Some(held) if held.claim == claim_after(&held.claim, claim) => Err(Reason::Unchanged),
            Some(held) if held.claim.instance != claim.instance && !elect => {
                Err(Reason::RoleHeld { role: role.clone() })
            }
            _ => Ok(()),
        }
    }

    fn any_stands(&self, leases: &[(LeaseName, u64)], wanted: impl Fn(bool) -> bool) -> Result<(), Reason> {
        let stands = |(name, token): &(LeaseName, u64)| {
            self.lease(name).is_some_and(|lease| lease.token == *token && wanted(lease.aged))
        };
        if leases.iter().any(stands) { Ok(()) } else { Err(Reason::Unchanged) }
    }

    /// Only after `check_lease`.
    pub(super) fn carry_out_lease(&mut self, operation: &LeaseOperation, making: &mut Making) {
        match operation {
            LeaseOperation::Acquire { role, claim, .. } => self.grant(role, claim, making),
            LeaseOperation::Release { role, .. } => self.end_role(role, Ended::Released, making),
            LeaseOperation::End { leases } => self.end_all(leases, making),
            LeaseOperation::Age { aged, renewed } => {
                self.age_all(aged, true, making);
                self.age_all(renewed, false, making);
            }
            LeaseOperation::Register { id, process } => self.register(id, process, making),
            LeaseOperation::Remove { id } => self.end_process(id, Ended::Removed, making),
        }
    }

    fn grant(&mut self, role: &Text, claim: &Arc<Claim>, making: &mut Making) {
        let held = self.roles.get(role).filter(|held| held.claim.instance == claim.instance);
        let (token, since, claim) = match held {
            Some(held) => (held.token, held.since, claim_after(&held.claim, claim)),
            None => {
                self.end_role(role, Ended::Replaced, making);
                let token = self.take_token(making);
                let instance = claim.instance.clone();
                making.events.push(LeaseEvent::RoleAcquired { role: role.clone(), instance, token });
                (token, making.wall, claim.clone())
            }
        };
        let row = Role { at: making.at, claim, token, since, aged: false };
        let before = self.roles.insert(role.clone(), row).map(|before| before.at);
        self.note_lease(Key::Role(role.clone()), before, Written::Row(making.at), making);
    }

    fn take_token(&mut self, making: &mut Making) -> u64 {
        self.last_token = self.next_token(making.at, making.wall);
        making.changes.push(Key::Token);
        self.last_token
    }

    fn register(&mut self, id: &Text, process: &Arc<NewProcess>, making: &mut Making) {
        let (token, since, new) = match self.processes.get(id) {
            Some(there) => (there.token, there.since, process_after(&there.new, process)),
            None => {
                let event = LeaseEvent::ProcessRegistered { id: id.clone(), process: process.clone() };
                making.events.push(event);
                (self.take_token(making), making.wall, process.clone())
            }
        };
        let row = Process { at: making.at, new, token, since, aged: false };
        let before = self.processes.insert(id.clone(), row).map(|before| before.at);
        self.note_lease(Key::Process(id.clone()), before, Written::Row(making.at), making);
    }

    fn end_all(&mut self, leases: &[(LeaseName, u64)], making: &mut Making) {
        for (name, token) in leases {
            if self.lease(name).is_none_or(|lease| lease.token != *token) {
                continue;
            }
            match name {
                LeaseName::Role(role) => self.end_role(role, Ended::Expired, making),
                LeaseName::Process(id) => self.end_process(id, Ended::Expired, making),
            }
        }
    }

    fn end_role(&mut self, role: &Text, why: Ended, making: &mut Making) {
        let Some(Role { at: before, claim, token, .. }) = self.roles.remove(role) else { return };
        let instance = claim.instance.clone();
        making.events.push(LeaseEvent::RoleLost { role: role.clone(), instance, token, why });
        self.note_lease(Key::Role(role.clone()), Some(before), Written::Gone(making.at), making);
    }

    fn end_process(&mut self, id: &Text, why: Ended, making: &mut Making) {
        let Some(Process { at: before, new: process, .. }) = self.processes.remove(id) else { return };
        making.events.push(LeaseEvent::ProcessRemoved { id: id.clone(), process, why });
        self.note_lease(Key::Process(id.clone()), Some(before), Written::Gone(making.at), making);
    }

    fn age_all(&mut self, leases: &[(LeaseName, u64)], aged: bool, making: &mut Making) {
        for (name, token) in leases {
            if self.lease(name).is_none_or(|lease| lease.token != *token || lease.aged == aged) {
                continue;
            }
            let at = making.at;
            let before = match name {
                LeaseName::Role(role) => {
                    let Some(row) = self.roles.get(role).cloned() else { continue };
                    self.roles.insert(role.clone(), Role { at, aged, ..row }).map(|row| row.at)
                }
                LeaseName::Process(id) => {
                    let Some(row) = self.processes.get(id).cloned() else { continue };
                    self.processes.insert(id.clone(), Process { at, aged, ..row }).map(|row| row.at)
                }
            };
            self.note_lease(Key::from(name), before, Written::Row(at), making);
        }
    }

    fn note_lease(&mut self, key: Key, before: Option<Position>, now: Written, making: &mut Making) {
        making.changes.push(key.clone());
        if let Some(sides) = self.sides_mut() {
            sides.wrote(&key, before, now, making.changes);
        }
    }

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

/// What a holder says of itself now. A token's ttl may become longer and never shorter: the next leader would give less
/// than this one has promised (C14).
fn claim_after(before: &Arc<Claim>, now: &Arc<Claim>) -> Arc<Claim> {
    match before.instance == now.instance && before.ttl > now.ttl {
        true => Claim { ttl: before.ttl, ..Claim::clone(now) }.into(),
        false => now.clone(),
    }
}

fn process_after(before: &Arc<NewProcess>, now: &Arc<NewProcess>) -> Arc<NewProcess> {
    match before.ttl > now.ttl {
        true => NewProcess { ttl: before.ttl, ..NewProcess::clone(now) }.into(),
        false => now.clone(),
    }
}
