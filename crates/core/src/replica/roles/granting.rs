//! Roles and processes on the leader: grants, waits, renewals, and the end of leases that are not renewed.
//!
//! ```text
//! acquire ──► judged by the newest version ──┬─ free ──► a record ──► committed ──► granted
//!                 ▲                          ├─ held, and there is time to wait ──► the waiter queue ──┐
//!                 │                          └─ held ──► a round ──► still so ──► answer: the holder   │
//!                 └────────── a release or an end enters the log: the first waiter ◄───────────────────┘
//! renewal, or acquire by the holder ──► a round ──► counted (`crate::leases`) ──► answered
//! ```
//!
//! The queue moves as soon as the record that frees the role enters the log. The grant of the next waiter follows in the same round, and
//! both records are synced together. A call that comes later never takes the freed role before the waiters.
//! Only records are on disk. A leader that is deposed sends all waiters to the next leader.

use super::{Roles, Turn};
use crate::leases::{Due, Outcome, RenewalVerdict as Standing, Waiter};
use crate::protocol::Verdict;
use crate::protocol::mutant::{self, Mutant};
use crate::replica::answer::{Answer, Denied, Granted, HeldBy, Unheard};
use crate::replica::desk::Desk;
use crate::replica::io::{Acquire, CallId, Registration, Renewal, Untie};
use crate::replica::pending::Waiting;
use crate::replica::wants::{Acquiring, Renewing, What};
use crate::store::{Command, Judged, LeaseOperation, Operation, Reason, Role, SecretHash, Tenure, Thing};
use crate::types::{Lease, LeaseName, Position, Span, Text, Time};

impl Roles {
    /// Leases are counted in one epoch at a time, starting from the state at the beginning of that epoch.
    pub fn follow_leadership(&mut self, desk: &mut Desk) {
        let epoch = desk.leads_in();
        // The counts of an earlier epoch are void: other leaders may have made promises since (P40, mutant
        // `LeasesCarriedOver`).
        if epoch != self.led {
            if !mutant::is_on(Mutant::LeasesCarriedOver) {
                self.leases.resign();
                self.anew = true;
            }
            self.anew |= self.leases.deadline() == Time::NEVER;
            self.led = epoch;
            for acquiring in self.drain_waiters() {
                let denied = desk.not_leading();
                desk.deny(acquiring.call, denied);
            }
        }
        if std::mem::take(&mut self.anew) && epoch.is_some() {
            let forgets = mutant::is_on(Mutant::DocTtlForgotten);
            let leases = desk.versions.committed().leases();
            self.leases.lead(desk.now.mono, leases.filter(|(name, _)| name.ages() || !forgets));
        }
    }

    /// A committed record has left these leases in this state.
    pub fn count_leases(&mut self, desk: &Desk, leases: Vec<(LeaseName, Option<Lease>)>) {
        if self.leads() {
            for (name, lease) in leases {
                self.leases.changed(desk.now.mono, name, lease);
            }
        }
    }

    /// Records have entered the log. The waiters for the roles that these records free are next.
    pub fn move_waiters(&mut self, desk: &mut Desk) {
        desk.freed.drain(..).rev().for_each(|role| self.falls_free(role));
    }

    /// Takes back a grant or a promise whose answer did not reach its caller.
    pub fn take_back(&mut self, desk: &Desk, unheard: &Unheard) {
        let Unheard { name, token, granted } = unheard;
        match granted {
            true => self.leases.give_up(desk.now.mono, name, *token),
            false => self.leases.take_back(desk.now.mono, name, *token),
        }
    }

    /// The caller no longer waits for its answer.
    pub fn on_caller_gone(&mut self, desk: &mut Desk, call: CallId) {
        let Some(caller) = self.callers.get_mut(&call) else { return };
        caller.gone = true;
        if mutant::is_on(Mutant::GrantToTheGone) {
            return;
        }
        let left = self.waiters.leave(&caller.role, &caller.instance, |waiter| waiter.call == call);
        if left.is_some() {
            // No caller receives this answer. The driver needs it to drop the route to the caller.
            desk.deny(call, Denied::Unknown);
        }
    }
}

impl Roles {
    /// Handles the next turn, and no more than one, because a turn may add others. Returns whether there was one.
    pub fn take_turn(&mut self, desk: &mut Desk) -> bool {
        let Some(turn) = self.turns.pop_front() else {
            return false;
        };
        match turn {
            Turn::Acquire(acquiring) => self.take_acquire(desk, acquiring),
            Turn::Renew(renewing) => self.take_renewal(desk, renewing),
            Turn::Freed(role) => self.take_freed(desk, &role),
        }
        true
    }
}

// Granting roles.
impl Roles {
    pub fn on_acquire(&mut self, call: CallId, wanted: Acquire) {
        self.called(call, wanted.role.clone(), wanted.claim.instance.clone());
        let (waited, again, replayed) = (false, false, false);
        let acquiring = Acquiring { call, wanted, was_free: None, waited, again, replayed };
        self.add_turn(Turn::Acquire(acquiring.into()));
    }

    fn take_acquire(&mut self, desk: &mut Desk, mut acquiring: Box<Acquiring>) {
        if !desk.node().is_open() {
            let denied = desk.not_leading();
            return desk.deny(acquiring.call, denied);
        }
        if !desk.look_ahead() {
            return desk.deny(acquiring.call, Denied::Stopping);
        }
        // The token is judged here, after the wait, and not only when the call came (P56, mutant `GrantToTheRevoked`).
        if !is_let_in(desk, &acquiring) {
            return desk.deny(acquiring.call, Denied::TokenEnded);
        }
        let free = desk.committed().role(&acquiring.wanted.role).is_none();
        acquiring.was_free.get_or_insert(free);
        let command = acquiring.command();
        match desk.judge(&command, acquiring.wanted.key) {
            Judged::Accept => {
                // A command that is accepted although the instance holds the role changes its description.
                let held = desk.versions.newest().role(&acquiring.wanted.role);
                acquiring.again = held.is_some_and(|held| acquiring.is_by(held));
                desk.propose(&command, acquiring.wanted.key, Waiting::Acquire(acquiring));
            }
            Judged::Rejected(rejection) => match rejection.reason {
                Reason::RoleHeld { .. } if self.may_wait(desk, &acquiring) => {
                    self.stand_in_line(desk, acquiring)
                }
                Reason::RoleHeld { .. } | Reason::Unchanged | Reason::WrongSecret => {
                    confirm_acquire(desk, acquiring)
                }
                _ => desk.deny(acquiring.call, Denied::Rejected(rejection)),
            },
            // The caller gets the present state, not the state at the time of the first call (C16).
            Judged::Replay { .. } => {
                acquiring.replayed = true;
                confirm_acquire(desk, acquiring);
            }
            Judged::TooManyKeys => desk.deny(acquiring.call, Denied::TOO_MANY_KEYS),
        }
    }

    /// An operator's order that names the holder never waits. A caller that has gone does not wait, either: no answer would
    /// reach it.
    fn may_wait(&self, desk: &Desk, acquiring: &Acquiring) -> bool {
        let wanted = &acquiring.wanted;
        !wanted.elect && desk.now.mono < wanted.until && !self.is_gone(acquiring.call)
    }

    fn stand_in_line(&mut self, desk: &mut Desk, mut ticket: Box<Acquiring>) {
        ticket.waited = true;
        let (role, instance) = (ticket.wanted.role.clone(), ticket.wanted.claim.instance.clone());
        let (priority, until) = (ticket.wanted.priority, ticket.wanted.until);
        match self.waiters.join(Waiter { role, instance, priority, until, ticket }) {
            Ok(None) => {}
            // The instance has asked again, for example because it lost its connection. Its earlier call needs an
            // answer, too.
            Ok(Some(before)) => {
                let bound = "one wait of an instance for a role";
                desk.deny(before.ticket.call, Denied::TooMany { bound });
            }
            Err(refused) => {
                let bound = "calls that wait for roles";
                desk.deny(refused.waiter.ticket.call, Denied::TooMany { bound });
            }
        }
    }

    /// The first waiter gets its turn, if the role is free by the records in the log.
    fn take_freed(&mut self, desk: &mut Desk, role: &Text) {
        if self.waiters.count(role) == 0 || !desk.node().is_open() || !desk.look_ahead() {
            return;
        }
        if desk.versions.newest().role(role).is_some() {
            return;
        }
        // A caller that has gone has left the queue already.
        let next = self.waiters.next(desk.now.mono, role, |_| true);
        // Waiters whose time is over get a turn, too. They cannot wait any longer, so that turn gives them their answer.
        for late in next.dropped {
            self.add_turn(Turn::Acquire(late.ticket));
        }
        if let Some(best) = next.best {
            self.take_acquire(desk, best.ticket);
            // If this waiter did not get the role, the next one gets its turn.
            self.falls_free(role.clone());
        }
    }

    pub fn acquire_verdict(&mut self, desk: &mut Desk, acquiring: Box<Acquiring>, verdict: Verdict) {
        match verdict {
            Verdict::Written { position, acks } => self.acquired(desk, acquiring, position, Some(acks)),
            Verdict::Readable { .. } => self.look_at_role(desk, acquiring),
            Verdict::Refused(_) => {
                self.falls_free(acquiring.wanted.role.clone());
                let denied = desk.denied(&verdict);
                desk.deny(acquiring.call, denied);
            }
            Verdict::Done | Verdict::Unknown => desk.deny(acquiring.call, Denied::Unknown),
        }
    }

    /// The record of the call has been applied. Later records may have been applied, too.
    fn acquired(
        &mut self,
        desk: &mut Desk,
        acquiring: Box<Acquiring>,
        position: Position,
        acks: Option<usize>,
    ) {
        let name = acquiring.name();
        let held = desk.committed().role(&acquiring.wanted.role).cloned();
        let Some(what) = held.filter(|held| acquiring.is_by(held)) else {
            return self.answer_holder(desk, &acquiring);
        };
        if self.leases.renewal(&name, what.token) == Standing::Ending {
            // The holder's record came too late: another record under way ends the lease, and then the role is free.
            return self.add_turn(Turn::Acquire(acquiring));
        }
        let Acquiring { call, waited, again, .. } = *acquiring;
        // A record of an instance that holds the role already cannot be taken back: its promise may not have been counted.
        // `what.at == position`: no later record has touched the lease since this grant.
        let granted = waited && !again && what.at == position && !mutant::is_on(Mutant::GrantToTheGone);
        let if_unheard = granted.then(|| Unheard { name: name.clone(), token: what.token, granted });
        let expires_in = self.left(desk, &name, what.claim.ttl);
        let granted = Granted { what, new: !again, waited, expires_in, position, acks, if_unheard };
        desk.answer(call, Ok(Answer::Role(granted.into())));
    }

    /// Decides by a confirmed state: the caller has the role already, another instance has it, or the role is free.
    fn look_at_role(&mut self, desk: &mut Desk, acquiring: Box<Acquiring>) {
        if self.is_gone(acquiring.call) {
            // A disconnected caller's lease is not renewed.
            return desk.deny(acquiring.call, Denied::Unknown);
        }
        let position = desk.committed().applied();
        let Some(held) = desk.committed().role(&acquiring.wanted.role).cloned() else {
            if !acquiring.replayed {
                return self.add_turn(Turn::Acquire(acquiring));
            }
            // The grant of the first call has ended since, and a late copy of that call must not bring it back.
            let free = self.held_by(desk, &acquiring.wanted.role, false);
            return desk.deny(acquiring.call, Denied::LeaseLost(free));
        };
        if !acquiring.is_by(&held) {
            return match acquiring.is_named_by(&held) {
                true => desk.deny(acquiring.call, Denied::Rejected(Reason::WrongSecret.into())),
                false => self.answer_holder(desk, &acquiring),
            };
        }
        let (name, ttl) = (acquiring.name(), Some(acquiring.wanted.claim.ttl));
        match self.leases.renewal(&name, held.token) {
            Standing::Renewable => {
                let renewed = self.leases.renew(desk.now.mono, &name, held.token, ttl);
                // The caller may be another process under the same name, so the connection of the process before it must not end the
                // lease.
                self.leases.forget_tie(&name, held.token);
                let expires_in = renewed.map(|renewed| renewed.expires_in).unwrap_or_default();
                let stands = mutant::is_on(Mutant::UnheardPromiseStands);
                let if_unheard = (!stands).then_some(Unheard { name, token: held.token, granted: false });
                let (new, waited, acks) = (false, false, None);
                let granted = Granted { what: held, new, waited, expires_in, position, acks, if_unheard };
                desk.answer(acquiring.call, Ok(Answer::Role(granted.into())));
            }
            // A record under way ends this lease, and then the role is free.
            Standing::Ending => self.add_turn(Turn::Acquire(acquiring)),
            Standing::Lost => {
                let denied = desk.not_leading();
                desk.deny(acquiring.call, denied);
            }
        }
    }

    fn answer_holder(&self, desk: &mut Desk, acquiring: &Acquiring) {
        let conflict = acquiring.was_free.unwrap_or(false);
        let held = self.held_by(desk, &acquiring.wanted.role, conflict);
        desk.deny(acquiring.call, Denied::RoleHeld(held));
    }

    /// The holder by the committed state.
    fn held_by(&self, desk: &Desk, role: &Text, conflict: bool) -> Box<HeldBy> {
        let (by, name) = (desk.committed().role(role).cloned(), LeaseName::Role(role.clone()));
        let expires_in = self.leases.left(&name, desk.now.mono);
        HeldBy { role: role.clone(), by, expires_in, conflict }.into()
    }

    /// The time left of a lease that has just been granted for this ttl.
    fn left(&self, desk: &Desk, name: &LeaseName, ttl: Span) -> Span {
        self.leases.left(name, desk.now.mono).unwrap_or_default().min(ttl)
    }
}

/// Checks the token by the records in the log, committed or not: the record that frees the role may stand right behind the record that
/// revokes the token.
fn is_let_in(desk: &Desk, acquiring: &Acquiring) -> bool {
    let is_good = |id| desk.versions.newest().token(id).is_some_and(|token| !token.has_ended(desk.now.wall));
    acquiring.wanted.by.is_none_or(is_good) || mutant::is_on(Mutant::GrantToTheRevoked)
}

/// The judgement may rest on records that are not committed yet, or come from a leader that was deposed. The role is looked at again once
/// those records are committed and the leadership is confirmed (P14).
fn confirm_acquire(desk: &mut Desk, acquiring: Box<Acquiring>) {
    let at_least = desk.last_index();
    desk.confirm(Waiting::Acquire(acquiring), at_least);
}

// Renewals and registrations. A renewal is answered after a round that started after the call arrived, and makes no record (P39).
impl Roles {
    pub fn on_renew(&mut self, call: CallId, renewal: Renewal) {
        self.add_turn(Turn::Renew(Renewing { call, what: What::Held(renewal) }));
    }

    pub fn on_register(&mut self, call: CallId, registration: Registration) {
        let what = What::Register { registration, new: false, replayed: false };
        self.add_turn(Turn::Renew(Renewing { call, what }));
    }

    fn take_renewal(&mut self, desk: &mut Desk, renewing: Renewing) {
        if !desk.node().is_open() {
            let denied = desk.not_leading();
            return desk.deny(renewing.call, denied);
        }
        match renewing.what {
            What::Register { registration, .. } => self.take_registration(desk, renewing.call, registration),
            _ => self.confirm_renewal(desk, renewing),
        }
    }

    fn take_registration(&mut self, desk: &mut Desk, call: CallId, registration: Registration) {
        if !desk.look_ahead() {
            return desk.deny(call, Denied::Stopping);
        }
        let (id, process, key) = (registration.id.clone(), registration.process.clone(), registration.key);
        let command = Command::Single(Operation::Lease(LeaseOperation::Register { id, process }.into()));
        let renewing = |registration, new, replayed| Renewing {
            call,
            what: What::Register { registration, new, replayed },
        };
        match desk.judge(&command, key) {
            Judged::Accept => {
                let new = desk.versions.newest().process(&registration.id).is_none();
                let renewing = renewing(registration, new, false);
                desk.propose(&command, key, Waiting::Renew(renewing));
            }
            Judged::Rejected(rejection)
                if !matches!(rejection.reason, Reason::Unchanged | Reason::WrongSecret) =>
            {
                desk.deny(call, Denied::Rejected(rejection));
            }
            Judged::Rejected(_) => self.confirm_renewal(desk, renewing(registration, false, false)),
            Judged::Replay { .. } => self.confirm_renewal(desk, renewing(registration, false, true)),
            Judged::TooManyKeys => desk.deny(call, Denied::TOO_MANY_KEYS),
        }
    }

    /// A renewal of a lease that a record is about to end waits for that record.
    fn confirm_renewal(&self, desk: &mut Desk, renewing: Renewing) {
        let name = renewing.name();
        let lease = desk.committed().lease(&name);
        let standing = lease.map(|lease| self.leases.renewal(&name, lease.token));
        // A registration was judged by the newest version, so its answer waits for those records (P14). Any
        // other renewal is judged by the committed state after the round, and waits for no other record.
        let in_doubt = standing == Some(Standing::Ending) || renewing.registers();
        let at_least = if in_doubt { desk.last_index() } else { 0 };
        desk.confirm(Waiting::Renew(renewing), at_least);
    }

    pub fn renew_verdict(&mut self, desk: &mut Desk, renewing: Renewing, verdict: Verdict) {
        match verdict {
            Verdict::Written { position, acks } => self.registered(desk, renewing, position, acks),
            Verdict::Readable { .. } => self.renew(desk, renewing),
            Verdict::Refused(_) | Verdict::Done | Verdict::Unknown => {
                let denied = desk.denied(&verdict);
                desk.deny(renewing.call, denied);
            }
        }
    }

    fn registered(&mut self, desk: &mut Desk, renewing: Renewing, position: Position, acks: usize) {
        let What::Register { registration, new, .. } = &renewing.what else { return };
        let Some(what) = desk.committed().process(&registration.id).cloned() else {
            return deny_missing(desk, &renewing);
        };
        let name = renewing.name();
        if self.leases.renewal(&name, what.token) == Standing::Ending {
            // A record under way ends this registration, so this call registers the process again.
            return self.add_turn(Turn::Renew(renewing));
        }
        let expires_in = self.left(desk, &name, what.new.ttl);
        let (new, waited, acks, if_unheard) = (*new, false, Some(acks), None);
        let granted = Granted { what, new, waited, expires_in, position, acks, if_unheard };
        desk.answer(renewing.call, Ok(Answer::Process(granted.into())));
    }

    /// Renews by a confirmed state.
    fn renew(&mut self, desk: &mut Desk, renewing: Renewing) {
        let name = renewing.name();
        let Some(lease) = lease_of(desk, &renewing, &name) else {
            return self.answer_lost(desk, renewing);
        };
        if !is_shown_its_secret(desk, &renewing) {
            return desk.deny(renewing.call, Denied::Rejected(Reason::WrongSecret.into()));
        }
        match self.leases.renewal(&name, lease.token) {
            Standing::Renewable => self.renewed(desk, &renewing, &name, lease.token),
            Standing::Ending => self.add_turn(Turn::Renew(renewing)),
            // The state has the lease, but this node no longer counts it: the leadership is gone.
            Standing::Lost => {
                let denied = desk.not_leading();
                desk.deny(renewing.call, denied);
            }
        }
    }

    fn renewed(&mut self, desk: &mut Desk, renewing: &Renewing, name: &LeaseName, token: u64) {
        let renewed = self.leases.renew(desk.now.mono, name, token, renewing.asked());
        let expires_in = renewed.map(|renewed| renewed.expires_in).unwrap_or_default();
        // After `renew`, because a renewal without a tie protects the end that it has just set from older connections
        // (P45).
        self.leases.name_tie(name, token, renewing.tie());
        let store = desk.committed();
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
        desk.answer(renewing.call, answer.ok_or(Denied::Unknown));
    }

    /// An untie needs no round: if the leader was deposed nothing ends, because the end is a record.
    pub fn on_untie(&mut self, desk: &mut Desk, call: CallId, untie: Untie) {
        if !desk.node().is_open() {
            let denied = desk.not_leading();
            return desk.deny(call, denied);
        }
        let Untie { role, tenure, tie } = untie;
        let name = LeaseName::Role(role.clone());
        let held = desk.committed().role(&role).filter(|held| holds(&tenure, held));
        if held.is_some_and(|held| !admits(&tenure, held)) {
            return desk.deny(call, Denied::Rejected(Reason::WrongSecret.into()));
        }
        if held.is_some() && self.leases.untie(desk.now.mono, &name, tenure.token, tie) {
            desk.answer(call, Ok(Answer::Done));
        } else {
            let held = self.held_by(desk, &role, false);
            desk.deny(call, Denied::LeaseLost(held));
        }
    }

    fn answer_lost(&mut self, desk: &mut Desk, renewing: Renewing) {
        match &renewing.what {
            What::Held(Renewal::Role { role, .. }) => {
                let held = self.held_by(desk, role, false);
                desk.deny(renewing.call, Denied::LeaseLost(held));
            }
            What::Held(Renewal::Doc { key, condition }) => {
                let refused = desk.committed().check_renewal(key, condition).err();
                let missing = Reason::NotFound { thing: Thing::Document, name: key.clone() };
                desk.deny(renewing.call, Denied::Rejected(refused.unwrap_or(missing).into()));
            }
            // The registration of the first call has ended since, and a late copy of that call must not bring it back.
            What::Register { replayed: true, .. } | What::Held(Renewal::Process { .. }) => {
                deny_missing(desk, &renewing)
            }
            // The process has gone since the call was judged, so it is registered again.
            What::Register { .. } => self.add_turn(Turn::Renew(renewing)),
        }
    }
}

/// The lease, if it still belongs to the caller.
fn lease_of(desk: &Desk, renewing: &Renewing, name: &LeaseName) -> Option<Lease> {
    let store = desk.committed();
    match &renewing.what {
        What::Held(Renewal::Role { role, tenure }) => {
            store.role(role).filter(|held| holds(tenure, held))?;
        }
        What::Held(Renewal::Doc { key, condition }) => store.check_renewal(key, condition).ok()?,
        What::Held(Renewal::Process { .. }) | What::Register { .. } => {}
    }
    store.lease(name)
}

/// Whether the caller showed the secret of what it renews (P53).
fn is_shown_its_secret(desk: &Desk, renewing: &Renewing) -> bool {
    let store = desk.committed();
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

fn deny_missing(desk: &mut Desk, renewing: &Renewing) {
    let name = renewing.name().text().clone();
    let rejection = Reason::NotFound { thing: Thing::Process, name }.into();
    desk.deny(renewing.call, Denied::Rejected(rejection));
}

/// Whether this instance and token hold the role.
fn holds(tenure: &Tenure, held: &Role) -> bool {
    held.claim.instance == tenure.instance && held.token == tenure.token
}

fn admits(tenure: &Tenure, held: &Role) -> bool {
    SecretHash::admits(held.claim.secret, tenure.secret)
}

// Deadlines: leases that are not renewed end by a record, and waits end by an answer.
impl Roles {
    pub fn tick_leases(&mut self, desk: &mut Desk) {
        let now = desk.now.mono;
        for over in self.waiters.expired(now) {
            self.add_turn(Turn::Acquire(over.ticket));
        }
        if now >= self.leases.deadline() {
            let state = desk.versions.newest();
            // Documents that end with these leases end in the same record, so they count towards its size (P54).
            let due = self.leases.due_within(now, |name| state.ends_with(name));
            self.propose_due(desk, due);
        }
    }

    fn propose_due(&mut self, desk: &mut Desk, due: Due) {
        if due.is_empty() {
            return;
        }
        let Due { end, age, refresh } = due;
        let operation =
            if end.is_empty() { LeaseOperation::age(age, refresh) } else { LeaseOperation::end(end) };
        let command = Command::Single(Operation::Lease(operation.into()));
        let open = desk.node().is_open() && desk.look_ahead();
        if open && desk.judge(&command, None) == Judged::Accept {
            self.record += 1;
            desk.propose(&command, None, Waiting::Leases(self.record));
        } else {
            // Another record about these leases is in the log already.
            self.leases.settled(desk.now.mono, Outcome::Refused);
        }
    }

    /// A verdict on a record of an earlier epoch says nothing about the record that is under way in this one.
    pub fn leases_verdict(&mut self, desk: &Desk, record: u64, verdict: &Verdict) {
        if record != self.record {
            return;
        }
        let outcome = match verdict {
            Verdict::Written { .. } => Outcome::Applied,
            Verdict::Refused(_) => Outcome::Refused,
            Verdict::Readable { .. } | Verdict::Done | Verdict::Unknown => Outcome::Unknown,
        };
        self.leases.settled(desk.now.mono, outcome);
    }
}
