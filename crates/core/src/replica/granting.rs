//! Roles and processes on the leader: grants, waits, renewals, and what nobody renews.
//!
//! ```text
//! acquire ──► judged by the newest version ──┬─ free ──► a record ──► committed ──► granted
//!                 ▲                          ├─ held, and there is time to wait ──► the waiter queue ──┐
//!                 │                          └─ held ──► a round ──► still so ──► told who             │
//!                 └────────── a release or an end enters the log: the first waiter ◄───────────────────┘
//! renewal, or acquire by the holder ──► a round ──► counted (`crate::leases`) ──► answered
//! ```
//!
//! The queue moves as soon as the record that frees the role enters the log: the grant of the next one is the record behind
//! it, and both are synced together. Nobody who comes later passes by.
//! Nothing of this is on disk but the records. A leader that is deposed sends everybody who waits to the next one.

use super::answer::{Answer, Denied, Granted, HeldBy, Unheard};
use super::io::{Acquire, CallId, Registration, Renewal, Untie};
use super::pending::Waiting;
use super::roles::{Acquiring, Renewing, Turn, What};
use super::state::Replica;
use crate::leases::{Due, Outcome, RenewalVerdict as Standing, Waiter};
use crate::protocol::Verdict;
use crate::protocol::mutant::{self, Mutant};
use crate::store::{
    Command, Judged, LeaseEvent, LeaseOperation, Operation, Reason, Role, SecretHash, Tenure, Thing,
};
use crate::types::{Index, Lease, LeaseName, Position, Span, Text, Time};

impl Replica {
    /// Leases are counted in one epoch at a time, by the state as it is when that begins.
    pub(super) fn follow_leadership(&mut self) {
        let epoch = self.core.is_open().then(|| self.core.vote().promise.epoch);
        if epoch != self.roles.led {
            if !mutant::is_on(Mutant::LeasesCarriedOver) {
                self.roles.leases.resign();
                self.roles.anew = true;
            }
            self.roles.anew |= self.roles.leases.deadline() == Time::NEVER;
            self.roles.led = epoch;
            for acquiring in self.roles.drain_waiters() {
                let denied = self.not_leading();
                self.deny(acquiring.call, denied);
            }
        }
        if std::mem::take(&mut self.roles.anew) && epoch.is_some() {
            let forgets = mutant::is_on(Mutant::DocTtlForgotten);
            let leases = self.versions.committed().leases();
            self.roles.leases.lead(self.now.mono, leases.filter(|(name, _)| name.ages() || !forgets));
        }
    }

    /// A record has been committed that left these leases so.
    pub(super) fn count_leases(&mut self, leases: Vec<(LeaseName, Option<Lease>)>) {
        if self.roles.leads() {
            for (name, lease) in leases {
                self.roles.leases.changed(self.now.mono, name, lease);
            }
        }
    }

    /// This record enters the log: whoever waits for what it frees is next.
    pub(super) fn move_waiters(&mut self, index: Index) {
        let Some(effect) = self.versions.effect(index) else { return };
        for event in &effect.applied.events {
            if let LeaseEvent::RoleLost { role, .. } = event {
                self.roles.turns.push_back(Turn::Freed(role.clone()));
            }
        }
    }

    /// What was granted to somebody who did not hear of it is free again.
    pub(super) fn take_back(&mut self, unheard: &Unheard) {
        let Unheard { name, token, granted } = unheard;
        match granted {
            true => self.roles.leases.give_up(self.now.mono, name, *token),
            false => self.roles.leases.take_back(self.now.mono, name, *token),
        }
    }

    /// Nobody waits for this answer any more.
    pub(super) fn caller_has_gone(&mut self, call: CallId) {
        let Some(caller) = self.roles.callers.get_mut(&call) else { return };
        caller.gone = true;
        if mutant::is_on(Mutant::GrantToTheGone) {
            return;
        }
        let left = self.roles.waiters.leave(&caller.role, &caller.instance, |waiter| waiter.call == call);
        if left.is_some() {
            // Nobody hears it, and whoever keeps the way to the caller forgets it.
            self.deny(call, Denied::Unknown);
        }
    }
}

// Who gets a role.
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

// Who goes on holding what: answered after a round that started after the call arrived, and in no record (P39).
impl Replica {
    pub(super) fn on_renew(&mut self, call: CallId, renewal: Renewal) {
        self.roles.add_turn(Turn::Renew(Renewing { call, what: What::Held(renewal) }));
    }

    pub(super) fn on_register(&mut self, call: CallId, registration: Registration) {
        let what = What::Register { registration, new: false, replayed: false };
        self.roles.add_turn(Turn::Renew(Renewing { call, what }));
    }

    pub(super) fn take_renewal(&mut self, renewing: Renewing) {
        if !self.core.is_open() {
            let denied = self.not_leading();
            return self.deny(renewing.call, denied);
        }
        match renewing.what {
            What::Register { registration, .. } => self.take_registration(renewing.call, registration),
            _ => self.confirm_renewal(renewing),
        }
    }

    fn take_registration(&mut self, call: CallId, registration: Registration) {
        if !self.look_ahead() {
            return self.deny(call, Denied::Stopping);
        }
        let (id, process, key) = (registration.id.clone(), registration.process.clone(), registration.key);
        let command = Command::Single(Operation::Lease(LeaseOperation::Register { id, process }.into()));
        let renewing = |registration, new, replayed| Renewing {
            call,
            what: What::Register { registration, new, replayed },
        };
        match self.judge(&command, key) {
            Judged::Accept => {
                let new = self.versions.newest().process(&registration.id).is_none();
                let renewing = renewing(registration, new, false);
                self.propose(&command, key, Waiting::Renew(renewing));
            }
            Judged::Rejected(rejection)
                if !matches!(rejection.reason, Reason::Unchanged | Reason::WrongSecret) =>
            {
                self.deny(call, Denied::Rejected(rejection));
            }
            Judged::Rejected(_) => self.confirm_renewal(renewing(registration, false, false)),
            Judged::Replay { .. } => self.confirm_renewal(renewing(registration, false, true)),
            Judged::TooManyKeys => self.deny(call, Denied::TOO_MANY_KEYS),
        }
    }

    /// A renewal of what a record is about to end waits for that record.
    fn confirm_renewal(&mut self, renewing: Renewing) {
        let name = renewing.name();
        let lease = self.committed().lease(&name);
        let standing = lease.map(|lease| self.roles.leases.renewal(&name, lease.token));
        let in_doubt = standing == Some(Standing::Ending) || renewing.registers();
        let at_least = if in_doubt { self.last_index() } else { 0 };
        self.confirm(Waiting::Renew(renewing), at_least);
    }

    pub(super) fn renew_verdict(&mut self, renewing: Renewing, verdict: Verdict) {
        match verdict {
            Verdict::Written { position, acks } => self.registered(renewing, position, acks),
            Verdict::Readable { .. } => self.renew(renewing),
            Verdict::Refused(_) | Verdict::Done | Verdict::Unknown => {
                let denied = self.denied(&verdict);
                self.deny(renewing.call, denied);
            }
        }
    }

    fn registered(&mut self, renewing: Renewing, position: Position, acks: usize) {
        let What::Register { registration, new, .. } = &renewing.what else { return };
        let Some(what) = self.committed().process(&registration.id).cloned() else {
            return self.deny_missing(&renewing);
        };
        let name = renewing.name();
        if self.roles.leases.renewal(&name, what.token) == Standing::Ending {
            // By the state to come it is gone, and comes anew.
            return self.roles.add_turn(Turn::Renew(renewing));
        }
        let expires_in = self.left(&name, what.new.ttl);
        let (new, waited, acks, if_unheard) = (*new, false, Some(acks), None);
        let granted = Granted { what, new, waited, expires_in, position, acks, if_unheard };
        self.answer(renewing.call, Ok(Answer::Process(granted.into())));
    }

    /// By a state that is confirmed.
    fn renew(&mut self, renewing: Renewing) {
        let name = renewing.name();
        let Some(lease) = self.lease_of(&renewing, &name) else {
            return self.tell_lost(renewing);
        };
        if !self.is_shown_its_secret(&renewing) {
            return self.deny(renewing.call, Denied::Rejected(Reason::WrongSecret.into()));
        }
        match self.roles.leases.renewal(&name, lease.token) {
            Standing::Renewable => self.renewed(&renewing, &name, lease.token),
            Standing::Ending => self.roles.add_turn(Turn::Renew(renewing)),
            // The state has it and the count has not: the leadership is gone.
            Standing::Lost => {
                let denied = self.not_leading();
                self.deny(renewing.call, denied);
            }
        }
    }

    /// The lease, if it is still that of the one who asks.
    fn lease_of(&self, renewing: &Renewing, name: &LeaseName) -> Option<Lease> {
        let store = self.committed();
        match &renewing.what {
            What::Held(Renewal::Role { role, tenure }) => {
                store.role(role).filter(|held| holds(tenure, held))?;
            }
            What::Held(Renewal::Doc { key, condition }) => store.check_renewal(key, condition).ok()?,
            What::Held(Renewal::Process { .. }) | What::Register { .. } => {}
        }
        store.lease(name)
    }

    /// Whether who asks may speak for what is there (P53).
    fn is_shown_its_secret(&self, renewing: &Renewing) -> bool {
        let store = self.committed();
        let of_process = |id: &Text, secret| {
            store.process(id).is_none_or(|process| SecretHash::admits(process.new.secret, secret))
        };
        match &renewing.what {
            What::Held(Renewal::Role { role, tenure }) => {
                store.role(role).is_none_or(|held| admits(tenure, held))
            }
            What::Held(Renewal::Process { id, secret }) => of_process(id, *secret),
            What::Register { registration, .. } => of_process(&registration.id, registration.process.secret),
            What::Held(Renewal::Doc { .. }) => true,
        }
    }

    fn renewed(&mut self, renewing: &Renewing, name: &LeaseName, token: u64) {
        let renewed = self.roles.leases.renew(self.now.mono, name, token, renewing.asked());
        let expires_in = renewed.map(|renewed| renewed.expires_in).unwrap_or_default();
        self.roles.leases.name_tie(name, token, renewing.tie());
        let store = self.committed();
        let (position, new, waited, acks, if_unheard) = (store.applied(), false, false, None, None);
        let answer = match name {
            LeaseName::Role(role) => store.role(role).cloned().map(|what| {
                Answer::Role(Granted { what, new, waited, expires_in, position, acks, if_unheard }.into())
            }),
            LeaseName::Process(id) => store.process(id).cloned().map(|what| {
                Answer::Process(Granted { what, new, waited, expires_in, position, acks, if_unheard }.into())
            }),
            LeaseName::Doc(key) => store.doc(key).map(|what| {
                Answer::Doc(Granted { what, new, waited, expires_in, position, acks, if_unheard }.into())
            }),
        };
        self.answer(renewing.call, answer.ok_or(Denied::Unknown));
    }

    /// Needs no round: by a leader that was deposed nothing ends, since the end is a record.
    pub(super) fn on_untie(&mut self, call: CallId, untie: Untie) {
        if !self.core.is_open() {
            let denied = self.not_leading();
            return self.deny(call, denied);
        }
        let Untie { role, tenure, tie } = untie;
        let name = LeaseName::Role(role.clone());
        let held = self.committed().role(&role).filter(|held| holds(&tenure, held));
        if held.is_some_and(|held| !admits(&tenure, held)) {
            return self.deny(call, Denied::Rejected(Reason::WrongSecret.into()));
        }
        if held.is_some() && self.roles.leases.untie(self.now.mono, &name, tenure.token, tie) {
            self.answer(call, Ok(Answer::Done));
        } else {
            let held = self.held_by(&role, false);
            self.deny(call, Denied::LeaseLost(held));
        }
    }

    fn tell_lost(&mut self, renewing: Renewing) {
        match &renewing.what {
            What::Held(Renewal::Role { role, .. }) => {
                let held = self.held_by(role, false);
                self.deny(renewing.call, Denied::LeaseLost(held));
            }
            What::Held(Renewal::Doc { key, condition }) => {
                let refused = self.committed().check_renewal(key, condition).err();
                let missing = Reason::NotFound { thing: Thing::Document, name: key.clone() };
                self.deny(renewing.call, Denied::Rejected(refused.unwrap_or(missing).into()));
            }
            // What that call brought about has ended since, and a late copy of it must not bring it back.
            What::Register { replayed: true, .. } | What::Held(Renewal::Process { .. }) => {
                self.deny_missing(&renewing)
            }
            // It has gone since it was looked at: it comes anew.
            What::Register { .. } => self.roles.add_turn(Turn::Renew(renewing)),
        }
    }

    fn deny_missing(&mut self, renewing: &Renewing) {
        let name = renewing.name().text().clone();
        let rejection = Reason::NotFound { thing: Thing::Process, name }.into();
        self.deny(renewing.call, Denied::Rejected(rejection));
    }
}

/// Whether it is this one that holds the role.
fn holds(tenure: &Tenure, held: &Role) -> bool {
    held.claim.instance == tenure.instance && held.token == tenure.token
}

fn admits(tenure: &Tenure, held: &Role) -> bool {
    SecretHash::admits(held.claim.secret, tenure.secret)
}

// What time makes due: leases that nobody renews end by a record, and waits end by an answer.
impl Replica {
    pub(super) fn tick_leases(&mut self) {
        let now = self.now.mono;
        for over in self.roles.waiters.expired(now) {
            self.roles.add_turn(Turn::Acquire(over.ticket));
        }
        if now >= self.roles.leases.deadline() {
            let state = self.versions.newest();
            let due = self.roles.leases.due_within(now, |name| state.ends_with(name));
            self.propose_due(due);
        }
    }

    fn propose_due(&mut self, due: Due) {
        if due.is_empty() {
            return;
        }
        let Due { end, age, refresh } = due;
        let operation =
            if end.is_empty() { LeaseOperation::age(age, refresh) } else { LeaseOperation::end(end) };
        let command = Command::Single(Operation::Lease(operation.into()));
        let open = self.core.is_open() && self.look_ahead();
        if open && self.judge(&command, None) == Judged::Accept {
            self.roles.record += 1;
            self.propose(&command, None, Waiting::Leases(self.roles.record));
        } else {
            // Another record about them stands in the log already.
            self.roles.leases.settled(self.now.mono, Outcome::Refused);
        }
    }

    /// One of an epoch before says nothing about the record that is under way in this one.
    pub(super) fn leases_verdict(&mut self, record: u64, verdict: &Verdict) {
        if record != self.roles.record {
            return;
        }
        let outcome = match verdict {
            Verdict::Written { .. } => Outcome::Applied,
            Verdict::Refused(_) => Outcome::Refused,
            Verdict::Readable { .. } | Verdict::Done | Verdict::Unknown => Outcome::Unknown,
        };
        self.roles.leases.settled(self.now.mono, outcome);
    }
}
