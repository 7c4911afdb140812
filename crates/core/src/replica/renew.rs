//! Who goes on holding what: answered after a round that started after the call arrived, and in no record (P39).

use super::answer::{Answer, Denied, Granted};
use super::io::{CallId, Registration, Renewal, Untie};
use super::state::{Renewing, Replica, Turn, Waiting, What};
use crate::leases::Judged as Standing;
use crate::protocol::Verdict;
use crate::store::{Command, Judged, LeaseOperation, Operation, Reason, Role, SecretHash, Tenure, Thing};
use crate::types::{Lease, LeaseName, Position, Text};

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
