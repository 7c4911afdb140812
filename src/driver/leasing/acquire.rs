//! Who gets a role.

use std::sync::Arc;

use super::super::api::{Denied, Reply};
use super::super::clock;
use super::super::engine::Engine;
use super::super::pending;
use super::{Granted, HeldBy, Turn};
use crate::leases::{Judged as Standing, Waiter};
use crate::protocol::{Input, Verdict};
use crate::store::{Claim, Command, Judged, LeaseOperation, Operation, Reason, Role};
use crate::types::{Call, LeaseName, Position, Text, Time};

/// A call that wants a role for somebody.
#[derive(Debug)]
pub struct Acquiring {
    pub role: Text,
    pub claim: Arc<Claim>,
    /// An operator names the holder: whoever has it loses it.
    pub elect: bool,
    /// Among those who wait: higher first.
    pub priority: i64,
    /// So long it waits, if somebody has it.
    pub until: Time,
    pub call: Option<Call>,
    pub reply: Reply<Granted<Role>>,
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
    pub fn new(
        role: Text,
        claim: Arc<Claim>,
        until: Time,
        call: Option<Call>,
        reply: Reply<Granted<Role>>,
    ) -> Acquiring {
        Acquiring {
            role,
            claim,
            elect: false,
            priority: 0,
            until,
            call,
            reply,
            was_free: None,
            waited: false,
            again: false,
            replayed: false,
        }
    }

    pub fn deny(self, denied: Denied) {
        let _ = self.reply.send(Err(denied));
    }

    fn command(&self) -> Command {
        let (role, claim, elect) = (self.role.clone(), self.claim.clone(), self.elect);
        Command::Single(Operation::Lease(LeaseOperation::Acquire { role, claim, elect }.into()))
    }

    fn may_wait(&self, now: Time) -> bool {
        !self.elect && now < self.until && !self.reply.is_closed()
    }
}

impl Engine {
    pub(super) fn take_acquire(&mut self, mut acquiring: Box<Acquiring>) {
        if !self.core.is_open() {
            return acquiring.deny(self.not_leading());
        }
        if !self.look_ahead() {
            return acquiring.deny(Denied::Stopping);
        }
        let now = clock::now();
        let free = self.states.committed().role(&acquiring.role).is_none();
        acquiring.was_free.get_or_insert(free);
        let command = acquiring.command();
        let stamp = self.core.stamp(now).unwrap_or_default();
        match self.states.newest().judge(&command, acquiring.call, stamp) {
            Judged::Accept => {
                let held = self.states.newest().role(&acquiring.role);
                acquiring.again = held.is_some_and(|held| held.claim.instance == acquiring.claim.instance);
                let payload = command.to_payload(acquiring.call);
                self.propose(payload, pending::Call::Acquire(acquiring));
            }
            Judged::Rejected(rejection) => match rejection.reason {
                Reason::RoleHeld { .. } if acquiring.may_wait(now.mono) => self.stand_in_line(acquiring),
                Reason::RoleHeld { .. } | Reason::Unchanged => self.confirm_acquire(acquiring),
                _ => acquiring.deny(Denied::Rejected(rejection)),
            },
            // It is told how things are now, not how they were then (C16).
            Judged::Replay { .. } => {
                acquiring.replayed = true;
                self.confirm_acquire(acquiring);
            }
            Judged::TooManyKeys => {
                acquiring.deny(Denied::TooMany { bound: "idempotency keys that are remembered" });
            }
        }
    }

    /// What was judged by records that are not committed yet, or by a leader that may have been deposed, is looked at
    /// again once neither is so (P14).
    fn confirm_acquire(&mut self, acquiring: Box<Acquiring>) {
        let at_least = self.core.last().index;
        let call = pending::Call::Acquire(acquiring);
        self.request(call, |request| Input::Read { request, at_least });
    }

    fn stand_in_line(&mut self, ticket: Box<Acquiring>) {
        let (role, instance) = (ticket.role.clone(), ticket.claim.instance.clone());
        let (priority, until) = (ticket.priority, ticket.until);
        match self.leasing.waiters.join(Waiter { role, instance, priority, until, ticket }) {
            Ok(None) => {}
            Ok(Some(before)) => {
                before.ticket.deny(Denied::TooMany { bound: "one wait of an instance for a role" });
            }
            Err(refused) => {
                refused.waiter.ticket.deny(Denied::TooMany { bound: "calls that wait for roles" });
            }
        }
    }

    /// The first in line is next, if the role is nobody's by what stands in the log.
    pub(super) fn take_freed(&mut self, role: &Text) {
        if self.leasing.waiters.count(role) == 0 || !self.core.is_open() || !self.look_ahead() {
            return;
        }
        if self.states.newest().role(role).is_some() {
            return;
        }
        let now = clock::now().mono;
        let next = self.leasing.waiters.next(now, role, |ticket| !ticket.reply.is_closed());
        // Those who waited too long are told so; those who have gone away hear nothing.
        let late = next.dropped.into_iter().filter(|waiter| !waiter.ticket.reply.is_closed());
        self.leasing.turns.extend(late.map(|waiter| Turn::Acquire(waiter.ticket)));
        if let Some(mut best) = next.best {
            best.ticket.waited = true;
            self.take_acquire(best.ticket);
            // If it could not be given the role, the next one can.
            self.leasing.turns.push_back(Turn::Freed(role.clone()));
        }
    }

    pub fn acquire_verdict(&mut self, acquiring: Box<Acquiring>, verdict: Verdict) {
        match verdict {
            Verdict::Written { position, acks } => self.acquired(*acquiring, position, Some(acks)),
            Verdict::Readable { .. } => self.look_at_role(acquiring),
            Verdict::Refused(refusal) => {
                self.leasing.turns.push_back(Turn::Freed(acquiring.role.clone()));
                acquiring.deny(self.denied(refusal));
            }
            Verdict::Done | Verdict::Unknown => acquiring.deny(Denied::Unknown),
        }
    }

    /// Its record has been applied; others may have been, too.
    fn acquired(&mut self, acquiring: Acquiring, position: Position, acks: Option<usize>) {
        let name = LeaseName::Role(acquiring.role.clone());
        let held = self.states.committed().role(&acquiring.role).cloned();
        let Some(what) = held.filter(|held| held.claim.instance == acquiring.claim.instance) else {
            return self.tell_holder(acquiring);
        };
        if self.leasing.leases.renewal(&name, what.token) == Standing::Ending {
            // Said of itself too late: by the state to come the role is free.
            return self.leasing.turns.push_back(Turn::Acquire(acquiring.into()));
        }
        let expires_in = self.left(&name, what.claim.ttl);
        let Acquiring { reply, waited, again, .. } = acquiring;
        let (token, own) = (what.token, what.at == position);
        let granted = Granted { what, new: !again, expires_in, position, acks };
        if reply.send(Ok(granted)).is_err() && waited && own {
            // Nobody is there to use what was waited for.
            self.leasing.leases.give_up(clock::now().mono, &name, token);
        }
    }

    /// By a state that is confirmed: it has the role already, somebody else has it, or nobody any more.
    fn look_at_role(&mut self, acquiring: Box<Acquiring>) {
        if acquiring.reply.is_closed() {
            // Whoever has gone keeps nothing up.
            return;
        }
        let store = self.states.committed();
        let (position, held) = (store.applied(), store.role(&acquiring.role).cloned());
        let Some(held) = held else {
            return match acquiring.replayed {
                // What that call was granted has ended since, and a late copy of it must not bring it back.
                true => {
                    let free = self.held_by(&acquiring.role, false);
                    acquiring.deny(Denied::LeaseLost(free));
                }
                false => self.leasing.turns.push_back(Turn::Acquire(acquiring)),
            };
        };
        if held.claim.instance != acquiring.claim.instance {
            return self.tell_holder(*acquiring);
        }
        let (name, ttl) = (LeaseName::Role(acquiring.role.clone()), Some(acquiring.claim.ttl));
        let now = clock::now().mono;
        match self.leasing.leases.renewal(&name, held.token) {
            Standing::Renewable => {
                let renewed = self.leasing.leases.renew(now, &name, held.token, ttl);
                let expires_in = renewed.map(|renewed| renewed.expires_in).unwrap_or_default();
                let granted = Granted { what: held, new: false, expires_in, position, acks: None };
                let _ = acquiring.reply.send(Ok(granted));
            }
            // By the state to come it is free.
            Standing::Ending => self.leasing.turns.push_back(Turn::Acquire(acquiring)),
            Standing::Lost => acquiring.deny(self.not_leading()),
        }
    }

    fn tell_holder(&self, acquiring: Acquiring) {
        let conflict = acquiring.was_free.unwrap_or(false);
        let held = self.held_by(&acquiring.role, conflict);
        acquiring.deny(Denied::RoleHeld(held));
    }

    /// By the committed state.
    pub(super) fn held_by(&self, role: &Text, conflict: bool) -> Box<HeldBy> {
        let (by, name) = (self.states.committed().role(role).cloned(), LeaseName::Role(role.clone()));
        let expires_in = self.leasing.leases.left(&name, clock::now().mono);
        HeldBy { role: role.clone(), by, expires_in, conflict }.into()
    }
}
