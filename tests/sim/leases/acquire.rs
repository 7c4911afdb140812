//! Who gets a role (`src/driver/leasing/acquire.rs`).

use std::sync::Arc;

use eldest::leases::{Judged as Standing, Waiter};
use eldest::protocol::Verdict;
use eldest::protocol::mutant::{self, Mutant};
use eldest::store::{Claim, Judged, LeaseOperation, Reason};
use eldest::types::{Call, LeaseName, Position, Text, Time};

use super::driver::{Pending, Turn, command};
use super::{Asked, Told};
use crate::checks::Check;
use crate::world::World;

/// A call that wants a role for somebody.
#[derive(Debug)]
pub struct Acquiring {
    pub asked: Asked,
    pub role: Text,
    pub claim: Arc<Claim>,
    pub elect: bool,
    pub priority: i64,
    pub until: Time,
    pub call: Option<Call>,
    pub waited: bool,
    /// It has the role already, and says something else about itself.
    pub again: bool,
    pub replayed: bool,
}

impl World {
    pub fn take_acquire(&mut self, node: usize, mut acquiring: Box<Acquiring>) -> Check {
        if !self.is_open(node) {
            return self.deny_leaderless(node, &acquiring.asked);
        }
        self.look_ahead(node);
        let now = self.clock_of(node);
        let (role, claim, elect) = (acquiring.role.clone(), acquiring.claim.clone(), acquiring.elect);
        let command = command(LeaseOperation::Acquire { role, claim, elect });
        let stamp = self.hosts[node].core.as_ref().and_then(|core| core.stamp(now)).unwrap_or_default();
        match self.newest(node).judge(&command, acquiring.call, stamp) {
            Judged::Accept => {
                let held = self.newest(node).role(&acquiring.role);
                acquiring.again = held.is_some_and(|held| held.claim.instance == acquiring.claim.instance);
                let payload = command.to_payload(acquiring.call);
                self.propose_lease(node, payload, Pending::Acquire(acquiring))
            }
            Judged::Rejected(rejection) => match rejection.reason {
                Reason::RoleHeld { .. } if self.may_wait(&acquiring, now.mono) => {
                    self.stand_in_line(node, acquiring)
                }
                Reason::RoleHeld { .. } | Reason::Unchanged => self.confirm_acquire(node, acquiring),
                _ => self.lease_reply(node, &acquiring.asked, Told::Held).map(|_| ()),
            },
            Judged::Replay { .. } => {
                acquiring.replayed = true;
                self.confirm_acquire(node, acquiring)
            }
            Judged::TooManyKeys => self.lease_reply(node, &acquiring.asked, Told::Refused(None)).map(|_| ()),
        }
    }

    fn may_wait(&self, acquiring: &Acquiring, now: Time) -> bool {
        !acquiring.elect && now < acquiring.until && !self.is_gone(&acquiring.asked)
    }

    fn confirm_acquire(&mut self, node: usize, acquiring: Box<Acquiring>) -> Check {
        let at_least = self.last_index(node);
        self.confirm(node, Pending::Acquire(acquiring), at_least)
    }

    fn stand_in_line(&mut self, node: usize, ticket: Box<Acquiring>) -> Check {
        let (role, instance) = (ticket.role.clone(), ticket.claim.instance.clone());
        let (priority, until) = (ticket.priority, ticket.until);
        let waiter = Waiter { role, instance, priority, until, ticket };
        let over = match self.hosts[node].leasing.waiters.join(waiter) {
            Ok(None) => return Ok(()),
            Ok(Some(before)) => before,
            Err(refused) => refused.waiter,
        };
        self.lease_reply(node, &over.ticket.asked, Told::Refused(None)).map(|_| ())
    }

    /// The first in line is next, if the role is nobody's by what stands in the log.
    pub fn take_freed(&mut self, node: usize, role: &Text) -> Check {
        if self.hosts[node].leasing.waiters.count(role) == 0 || !self.is_open(node) {
            return Ok(());
        }
        self.look_ahead(node);
        if self.newest(node).role(role).is_some() {
            return Ok(());
        }
        let now = self.clock_of(node).mono;
        let gone = &self.lessees.as_ref().expect("contenders").gone;
        let to_anybody = mutant::is_on(Mutant::GrantToTheGone);
        let leasing = &mut self.hosts[node].leasing;
        let next = leasing.waiters.next(now, role, |ticket| to_anybody || !gone.contains(&ticket.asked.id));
        let late = next.dropped.into_iter().filter(|waiter| !gone.contains(&waiter.ticket.asked.id));
        leasing.turns.extend(late.map(|waiter| Turn::Acquire(waiter.ticket)));
        match next.best {
            Some(mut best) => {
                best.ticket.waited = true;
                self.connection_may_break(&best.ticket.asked);
                self.take_acquire(node, best.ticket)?;
                self.hosts[node].leasing.turns.push_back(Turn::Freed(role.clone()));
                Ok(())
            }
            None => Ok(()),
        }
    }

    pub fn acquire_verdict(&mut self, node: usize, acquiring: Box<Acquiring>, verdict: &Verdict) -> Check {
        match verdict {
            Verdict::Written { position, .. } => self.acquired(node, acquiring, *position),
            Verdict::Readable { .. } => self.look_at_role(node, acquiring),
            Verdict::Refused(_) => {
                let role = acquiring.role.clone();
                self.hosts[node].leasing.turns.push_back(Turn::Freed(role));
                self.deny(node, &acquiring.asked, verdict)
            }
            Verdict::Done | Verdict::Unknown => self.deny(node, &acquiring.asked, verdict),
        }
    }

    /// Its record has been applied; others may have been, too.
    fn acquired(&mut self, node: usize, acquiring: Box<Acquiring>, position: Position) -> Check {
        let name = LeaseName::Role(acquiring.role.clone());
        let held = self.hosts[node].store.product().role(&acquiring.role).cloned();
        let Some(what) = held.filter(|held| held.claim.instance == acquiring.claim.instance) else {
            return self.lease_reply(node, &acquiring.asked, Told::Held).map(|_| ());
        };
        let leasing = &mut self.hosts[node].leasing;
        if leasing.leases.renewal(&name, what.token) == Standing::Ending {
            leasing.turns.push_back(Turn::Acquire(acquiring));
            return Ok(());
        }
        let expires_in = self.left(node, &name, what.claim.ttl);
        let yours = Told::Yours { token: what.token, expires_in, ttl: acquiring.claim.ttl };
        let there = self.lease_reply(node, &acquiring.asked, yours)?;
        if !there && acquiring.waited && what.at == position {
            self.witness_gone(node, position, what.token);
            if !mutant::is_on(Mutant::GrantToTheGone) {
                let now = self.clock_of(node).mono;
                self.hosts[node].leasing.leases.give_up(now, &name, what.token);
            }
        }
        Ok(())
    }

    /// By a state that is confirmed: it has the role already, somebody else has it, or nobody any more.
    fn look_at_role(&mut self, node: usize, acquiring: Box<Acquiring>) -> Check {
        if self.is_gone(&acquiring.asked) {
            return Ok(());
        }
        let held = self.hosts[node].store.product().role(&acquiring.role).cloned();
        let Some(held) = held else {
            if acquiring.replayed {
                return self.lease_reply(node, &acquiring.asked, Told::Lost).map(|_| ());
            }
            self.hosts[node].leasing.turns.push_back(Turn::Acquire(acquiring));
            return Ok(());
        };
        if held.claim.instance != acquiring.claim.instance {
            return self.lease_reply(node, &acquiring.asked, Told::Held).map(|_| ());
        }
        let (name, ttl) = (LeaseName::Role(acquiring.role.clone()), acquiring.claim.ttl);
        let now = self.clock_of(node).mono;
        let leases = &mut self.hosts[node].leasing.leases;
        match leases.renewal(&name, held.token) {
            Standing::Renewable => {
                let renewed = leases.renew(now, &name, held.token, Some(ttl));
                let expires_in = renewed.map(|renewed| renewed.expires_in).unwrap_or_default();
                let yours = Told::Yours { token: held.token, expires_in, ttl };
                self.lease_reply(node, &acquiring.asked, yours).map(|_| ())
            }
            Standing::Ending => {
                self.hosts[node].leasing.turns.push_back(Turn::Acquire(acquiring));
                Ok(())
            }
            Standing::Lost => self.deny_leaderless(node, &acquiring.asked),
        }
    }
}
