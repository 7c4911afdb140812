//! The preconditions and effects of each operation on leases.

use std::sync::Arc;

use super::events::{DocEnded, Ended, LeaseEvent, changed};
use crate::protocol::mutant::{self, Mutant};
use crate::store::command::{LeaseOperation, NewProcess, Reason, RoleClaim, SecretHash, Thing};
use crate::store::encoding::{TOKEN_REMAINDERS, TOKENS_END};
use crate::store::state::Store;
use crate::store::tables::{Key, KeyChange, Process, Role};
use crate::types::{LeaseName, Position, Text, WallTime};

/// The effects of an operation apart from its entries.
pub struct Effects<'a> {
    pub at: Position,
    pub wall: WallTime,
    pub changes: &'a mut Vec<Key>,
    pub events: &'a mut Vec<LeaseEvent>,
    /// Documents that expired or ended with their lease.
    pub ended: &'a mut Vec<(Text, DocEnded)>,
}

impl Store {
    pub(in crate::store) fn check_lease(&self, operation: &LeaseOperation) -> Result<(), Reason> {
        match operation {
            LeaseOperation::Acquire { role, claim, elect } => self.check_acquire(role, claim, *elect),
            LeaseOperation::Release { role, instance, token, secret } => match self.roles.get(role) {
                Some(current) if current.claim.instance == *instance && current.token == *token => {
                    shown(current.claim.secret, *secret)
                }
                _ => Err(Reason::LeaseLost { role: role.clone() }),
            },
            LeaseOperation::End { leases } => self.any_stands(leases, |_| true),
            LeaseOperation::Age { aged, renewed } => {
                let older = self.any_stands(aged, |was| !was);
                older.or_else(|_| self.any_stands(renewed, |was| was))
            }
            LeaseOperation::Register { id, process } => self.check_register(id, process),
            LeaseOperation::Remove { id, secret } => match self.processes.get(id) {
                Some(there) => shown(there.new.secret, *secret),
                None => Err(Reason::NotFound { thing: Thing::Process, name: id.clone() }),
            },
        }
    }

    /// A holder may change its description; its token stays.
    fn check_acquire(&self, role: &Text, claim: &Arc<RoleClaim>, elect: bool) -> Result<(), Reason> {
        let Some(current) = self.roles.get(role) else { return Ok(()) };
        let same = current.claim.instance == claim.instance;
        if !elect {
            match same {
                true => shown(current.claim.secret, claim.secret)?,
                false => return Err(Reason::RoleHeld { role: role.clone() }),
            }
        }
        match same && current.claim == claim_after(&current.claim, claim) {
            true => Err(Reason::Unchanged),
            false => Ok(()),
        }
    }

    fn check_register(&self, id: &Text, process: &Arc<NewProcess>) -> Result<(), Reason> {
        let Some(there) = self.processes.get(id) else { return Ok(()) };
        shown(there.new.secret, process.secret)?;
        match there.new == process_after(&there.new, process) {
            true => Err(Reason::Unchanged),
            false => Ok(()),
        }
    }

    /// One lease that stands is enough to write the record. The others are skipped when it is applied.
    fn any_stands(&self, leases: &[(LeaseName, u64)], wanted: impl Fn(bool) -> bool) -> Result<(), Reason> {
        let stands = |(name, token): &(LeaseName, u64)| {
            self.lease(name).is_some_and(|lease| lease.token == *token && wanted(lease.aged))
        };
        if leases.iter().any(stands) { Ok(()) } else { Err(Reason::Unchanged) }
    }

    /// The caller must have called `check_lease` first.
    pub(in crate::store) fn carry_out_lease(&mut self, operation: &LeaseOperation, effects: &mut Effects) {
        match operation {
            LeaseOperation::Acquire { role, claim, .. } => self.grant(role, claim, effects),
            LeaseOperation::Release { role, .. } => self.end_role(role, Ended::Released, effects),
            LeaseOperation::End { leases } => self.end_all(leases, effects),
            LeaseOperation::Age { aged, renewed } => {
                self.age_all(aged, true, effects);
                self.age_all(renewed, false, effects);
            }
            LeaseOperation::Register { id, process } => self.register(id, process, effects),
            LeaseOperation::Remove { id, .. } => self.end_process(id, Ended::Removed, effects),
        }
    }

    fn grant(&mut self, role: &Text, claim: &Arc<RoleClaim>, effects: &mut Effects) {
        // A holder that asks again keeps its token: what was promised under it goes on, and so do documents that are
        // bound to it.
        let current = self.roles.get(role).filter(|current| current.claim.instance == claim.instance);
        let (token, since, claim) = match current {
            Some(current) => (current.token, current.since, claim_after(&current.claim, claim)),
            None => {
                self.end_role(role, Ended::Replaced, effects);
                let token = self.take_token(effects);
                let instance = claim.instance.clone();
                effects.events.push(LeaseEvent::RoleAcquired { role: role.clone(), instance, token });
                (token, effects.wall, claim.clone())
            }
        };
        let row = Role { at: effects.at, claim, token, since, aged: false };
        let before = self.roles.insert(role.clone(), row).map(|before| before.at);
        self.note_lease(Key::Role(role.clone()), before, KeyChange::Row(effects.at), effects);
    }

    fn take_token(&mut self, effects: &mut Effects) -> u64 {
        self.last_token = self.next_token(effects.at, effects.wall);
        effects.changes.push(Key::Token);
        self.last_token
    }

    /// The next token is greater than every token that was granted before, here or, by the wall time, in a past that a
    /// restored backup does not contain (P30, I6). In available mode no two sides grant the same token, because each
    /// leader has its own remainder: the configuration refuses node ids with the same one.
    fn next_token(&self, at: Position, wall: WallTime) -> u64 {
        if mutant::is_on(Mutant::TokenByCounter) {
            return self.last_token + 1;
        }
        let least = (self.last_token + 1).max(wall.min(WallTime::MOST).0);
        let token = match self.is_mergeable() {
            false => least,
            true => {
                let own = u64::from(at.epoch.leader.0) % TOKEN_REMAINDERS;
                least + (own + TOKEN_REMAINDERS - least % TOKEN_REMAINDERS) % TOKEN_REMAINDERS
            }
        };
        debug_assert!(token < TOKENS_END);
        token
    }

    fn register(&mut self, id: &Text, process: &Arc<NewProcess>, effects: &mut Effects) {
        let (token, since, new) = match self.processes.get(id) {
            Some(there) => {
                let now = process_after(&there.new, process);
                effects.events.extend(changed(id, &there.new, &now));
                (there.token, there.since, now)
            }
            None => {
                let event = LeaseEvent::ProcessRegistered { id: id.clone(), process: process.clone() };
                effects.events.push(event);
                (self.take_token(effects), effects.wall, process.clone())
            }
        };
        let row = Process { at: effects.at, new, token, since, aged: false };
        let before = self.processes.insert(id.clone(), row).map(|before| before.at);
        self.note_lease(Key::Process(id.clone()), before, KeyChange::Row(effects.at), effects);
    }

    fn end_all(&mut self, leases: &[(LeaseName, u64)], effects: &mut Effects) {
        for (name, token) in leases {
            // After this end was proposed, the lease has ended, or was granted under another token (P38).
            if self.lease(name).is_none_or(|lease| lease.token != *token) {
                continue;
            }
            match name {
                LeaseName::Role(role) => self.end_role(role, Ended::Expired, effects),
                LeaseName::Process(id) => self.end_process(id, Ended::Expired, effects),
                LeaseName::Doc(key) => self.end_doc(key, DocEnded::Expired, effects),
            }
        }
    }

    /// The bound documents end in the same record, after the row: no state has them without their lease (P54).
    fn end_role(&mut self, role: &Text, why: Ended, effects: &mut Effects) {
        let Some(Role { at: before, claim, token, .. }) = self.roles.remove(role) else { return };
        let instance = claim.instance.clone();
        effects.events.push(LeaseEvent::RoleLost { role: role.clone(), instance, token, why });
        self.note_lease(Key::Role(role.clone()), Some(before), KeyChange::deleted(effects.at), effects);
        self.end_bound(&LeaseName::Role(role.clone()), effects);
    }

    fn end_process(&mut self, id: &Text, why: Ended, effects: &mut Effects) {
        let Some(Process { at: before, new: process, .. }) = self.processes.remove(id) else { return };
        effects.events.push(LeaseEvent::ProcessRemoved { id: id.clone(), process, why });
        self.note_lease(Key::Process(id.clone()), Some(before), KeyChange::deleted(effects.at), effects);
        self.end_bound(&LeaseName::Process(id.clone()), effects);
    }

    fn age_all(&mut self, leases: &[(LeaseName, u64)], aged: bool, effects: &mut Effects) {
        for (name, token) in leases {
            if self.lease(name).is_none_or(|lease| lease.token != *token || lease.aged == aged) {
                continue;
            }
            // The row moves to this position: a merge knows versions by their positions alone.
            let at = effects.at;
            let before = match name {
                LeaseName::Role(role) => {
                    let Some(row) = self.roles.get(role).cloned() else { continue };
                    self.roles.insert(role.clone(), Role { at, aged, ..row }).map(|row| row.at)
                }
                LeaseName::Process(id) => {
                    let Some(row) = self.processes.get(id).cloned() else { continue };
                    self.processes.insert(id.clone(), Process { at, aged, ..row }).map(|row| row.at)
                }
                LeaseName::Doc(_) => continue,
            };
            self.note_lease(Key::from(name), before, KeyChange::Row(at), effects);
        }
    }

    pub(super) fn note_lease(
        &mut self,
        key: Key,
        before: Option<Position>,
        now: KeyChange,
        effects: &mut Effects,
    ) {
        effects.changes.push(key.clone());
        if let Some(merging) = self.merging_mut() {
            merging.wrote(&key, before, now, effects.changes);
        }
    }
}

/// The caller must show the secret if the lease was granted under one (P53).
fn shown(granted: Option<SecretHash>, shown: Option<SecretHash>) -> Result<(), Reason> {
    match SecretHash::admits(granted, shown) {
        true => Ok(()),
        false => Err(Reason::WrongSecret),
    }
}

/// The holder's claim after it changed its description. The ttl of a token may become longer but never shorter: otherwise the
/// next leader would grant less time than this leader has promised (C14). The secret stays: a caller that can read that there
/// is none must not set one.
fn claim_after(before: &Arc<RoleClaim>, now: &Arc<RoleClaim>) -> Arc<RoleClaim> {
    match before.instance == now.instance {
        true => {
            RoleClaim { ttl: before.ttl.max(now.ttl), secret: before.secret, ..RoleClaim::clone(now) }.into()
        }
        false => now.clone(),
    }
}

fn process_after(before: &Arc<NewProcess>, now: &Arc<NewProcess>) -> Arc<NewProcess> {
    NewProcess { ttl: before.ttl.max(now.ttl), secret: before.secret, ..NewProcess::clone(now) }.into()
}
