//! Who gets a role.

use super::answer::{Answer, Denied, Granted, HeldBy, Unheard};
use super::io::{Acquire, CallId};
use super::state::{Acquiring, Replica, Turn, Waiting};
use crate::leases::{Judged as Standing, Waiter};
use crate::protocol::Verdict;
use crate::protocol::mutant::{self, Mutant};
use crate::store::{Judged, Reason};
use crate::types::{LeaseName, Position, Span, Text};

impl Replica {
    pub(super) fn on_acquire(&mut self, call: CallId, wanted: Acquire) {
        self.roles.called(call, wanted.role.clone(), wanted.claim.instance.clone());
        let (waited, again, replayed) = (false, false, false);
        let acquiring = Acquiring { call, wanted, was_free: None, waited, again, replayed };
        self.roles.add_turn(Turn::Acquire(acquiring.into()));
    }

    pub(super) fn take_acquire(&mut self, mut acquiring: Box<Acquiring>) {
        if !self.core.is_open() {
            let denied = self.not_leading();
            return self.deny(acquiring.call, denied);
        }
        if !self.look_ahead() {
            return self.deny(acquiring.call, Denied::Stopping);
        }
        if !self.is_let_in(&acquiring) {
            return self.deny(acquiring.call, Denied::TokenEnded);
        }
        let free = self.committed().role(&acquiring.wanted.role).is_none();
        acquiring.was_free.get_or_insert(free);
        let command = acquiring.command();
        match self.judge(&command, acquiring.wanted.key) {
            Judged::Accept => {
                let held = self.versions.newest().role(&acquiring.wanted.role);
                acquiring.again = held.is_some_and(|held| acquiring.is_by(held));
                self.propose(&command, acquiring.wanted.key, Waiting::Acquire(acquiring));
            }
            Judged::Rejected(rejection) => match rejection.reason {
                Reason::RoleHeld { .. } if self.may_wait(&acquiring) => self.stand_in_line(acquiring),
                Reason::RoleHeld { .. } | Reason::Unchanged | Reason::WrongSecret => {
                    self.confirm_acquire(acquiring)
                }
                _ => self.deny(acquiring.call, Denied::Rejected(rejection)),
            },
            // It is told how things are now, not how they were then (C16).
            Judged::Replay { .. } => {
                acquiring.replayed = true;
                self.confirm_acquire(acquiring);
            }
            Judged::TooManyKeys => self.deny(acquiring.call, Denied::TOO_MANY_KEYS),
        }
    }

    /// By what stands in the log, though it may not be committed yet: what frees the role may stand right behind what revokes the token.
    fn is_let_in(&self, acquiring: &Acquiring) -> bool {
        let is_good =
            |id| self.versions.newest().token(id).is_some_and(|token| !token.has_ended(self.now.wall));
        acquiring.wanted.by.is_none_or(is_good) || mutant::is_on(Mutant::GrantToTheRevoked)
    }

    fn may_wait(&self, acquiring: &Acquiring) -> bool {
        let wanted = &acquiring.wanted;
        !wanted.elect && self.now.mono < wanted.until && !self.roles.is_gone(acquiring.call)
    }

    /// What was judged by records that are not committed yet, or by a leader that may have been deposed, is looked at
    /// again once neither is so (P14).
    fn confirm_acquire(&mut self, acquiring: Box<Acquiring>) {
        let at_least = self.last_index();
        self.confirm(Waiting::Acquire(acquiring), at_least);
    }

    fn stand_in_line(&mut self, ticket: Box<Acquiring>) {
        let (role, instance) = (ticket.wanted.role.clone(), ticket.wanted.claim.instance.clone());
        let (priority, until) = (ticket.wanted.priority, ticket.wanted.until);
        match self.roles.waiters.join(Waiter { role, instance, priority, until, ticket }) {
            Ok(None) => {}
            Ok(Some(before)) => {
                let bound = "one wait of an instance for a role";
                self.deny(before.ticket.call, Denied::TooMany { bound });
            }
            Err(refused) => {
                let bound = "calls that wait for roles";
                self.deny(refused.waiter.ticket.call, Denied::TooMany { bound });
            }
        }
    }

    /// The first waiter is next, if the role is nobody's by what stands in the log.
    pub(super) fn take_freed(&mut self, role: &Text) {
        if self.roles.waiters.count(role) == 0 || !self.core.is_open() || !self.look_ahead() {
            return;
        }
        if self.versions.newest().role(role).is_some() {
            return;
        }
        // Whoever has gone has left the queue.
        let next = self.roles.waiters.next(self.now.mono, role, |_| true);
        // Those who waited too long are told so.
        for late in next.dropped {
            self.roles.add_turn(Turn::Acquire(late.ticket));
        }
        if let Some(mut best) = next.best {
            best.ticket.waited = true;
            self.take_acquire(best.ticket);
            // If it could not be given the role, the next one can.
            self.roles.add_turn(Turn::Freed(role.clone()));
        }
    }

    pub(super) fn acquire_verdict(&mut self, acquiring: Box<Acquiring>, verdict: Verdict) {
        match verdict {
            Verdict::Written { position, acks } => self.acquired(acquiring, position, Some(acks)),
            Verdict::Readable { .. } => self.look_at_role(acquiring),
            Verdict::Refused(_) => {
                self.roles.add_turn(Turn::Freed(acquiring.wanted.role.clone()));
                let denied = self.denied(&verdict);
                self.deny(acquiring.call, denied);
            }
            Verdict::Done | Verdict::Unknown => self.deny(acquiring.call, Denied::Unknown),
        }
    }

    /// Its record has been applied; others may have been, too.
    fn acquired(&mut self, acquiring: Box<Acquiring>, position: Position, acks: Option<usize>) {
        let name = acquiring.name();
        let held = self.committed().role(&acquiring.wanted.role).cloned();
        let Some(what) = held.filter(|held| acquiring.is_by(held)) else {
            return self.tell_holder(&acquiring);
        };
        if self.roles.leases.renewal(&name, what.token) == Standing::Ending {
            // Said of itself too late: by the state to come the role is free.
            return self.roles.add_turn(Turn::Acquire(acquiring));
        }
        let Acquiring { call, waited, again, .. } = *acquiring;
        // A record of whoever has it already is none that can be taken back: it may not have been counted.
        let granted = waited && !again && what.at == position && !mutant::is_on(Mutant::GrantToTheGone);
        let if_unheard = granted.then(|| Unheard { name: name.clone(), token: what.token, granted });
        let expires_in = self.left(&name, what.claim.ttl);
        let granted = Granted { what, new: !again, waited, expires_in, position, acks, if_unheard };
        self.answer(call, Ok(Answer::Role(granted.into())));
    }

    /// By a state that is confirmed: it has the role already, somebody else has it, or nobody any more.
    fn look_at_role(&mut self, acquiring: Box<Acquiring>) {
        if self.roles.is_gone(acquiring.call) {
            // Whoever has gone keeps nothing up.
            return self.deny(acquiring.call, Denied::Unknown);
        }
        let position = self.committed().applied();
        let Some(held) = self.committed().role(&acquiring.wanted.role).cloned() else {
            if !acquiring.replayed {
                return self.roles.add_turn(Turn::Acquire(acquiring));
            }
            // What that call was granted has ended since, and a late copy of it must not bring it back.
            let free = self.held_by(&acquiring.wanted.role, false);
            return self.deny(acquiring.call, Denied::LeaseLost(free));
        };
        if !acquiring.is_by(&held) {
            return match acquiring.is_named_by(&held) {
                true => self.deny(acquiring.call, Denied::Rejected(Reason::WrongSecret.into())),
                false => self.tell_holder(&acquiring),
            };
        }
        let (name, ttl) = (acquiring.name(), Some(acquiring.wanted.claim.ttl));
        match self.roles.leases.renewal(&name, held.token) {
            Standing::Renewable => {
                let renewed = self.roles.leases.renew(self.now.mono, &name, held.token, ttl);
                // Whoever asks anew may be another process under the same name: the connection of the one before ends nothing.
                self.roles.leases.forget_tie(&name, held.token);
                let expires_in = renewed.map(|renewed| renewed.expires_in).unwrap_or_default();
                let stands = mutant::is_on(Mutant::UnheardPromiseStands);
                let if_unheard = (!stands).then_some(Unheard { name, token: held.token, granted: false });
                let (new, waited, acks) = (false, false, None);
                let granted = Granted { what: held, new, waited, expires_in, position, acks, if_unheard };
                self.answer(acquiring.call, Ok(Answer::Role(granted.into())));
            }
            // By the state to come it is free.
            Standing::Ending => self.roles.add_turn(Turn::Acquire(acquiring)),
            Standing::Lost => {
                let denied = self.not_leading();
                self.deny(acquiring.call, denied);
            }
        }
    }

    fn tell_holder(&mut self, acquiring: &Acquiring) {
        let conflict = acquiring.was_free.unwrap_or(false);
        let held = self.held_by(&acquiring.wanted.role, conflict);
        self.deny(acquiring.call, Denied::RoleHeld(held));
    }

    /// By the committed state.
    pub(super) fn held_by(&self, role: &Text, conflict: bool) -> Box<HeldBy> {
        let (by, name) = (self.committed().role(role).cloned(), LeaseName::Role(role.clone()));
        let expires_in = self.roles.leases.left(&name, self.now.mono);
        HeldBy { role: role.clone(), by, expires_in, conflict }.into()
    }

    /// What is left of something that has just been granted for so long.
    pub(super) fn left(&self, name: &LeaseName, ttl: Span) -> Span {
        self.roles.leases.left(name, self.now.mono).unwrap_or_default().min(ttl)
    }
}
