//! Who goes on holding what: answered after a round that started after the call arrived, and in no record (P39).

use std::sync::Arc;

use super::super::api::{Denied, Reply};
use super::super::clock;
use super::super::engine::Engine;
use super::super::pending;
use super::{Granted, Turn};
use crate::leases::Judged as Standing;
use crate::protocol::{Input, Verdict};
use crate::store::{Command, Judged, LeaseOperation, NewProcess, Operation, Process, Reason, Role, Thing};
use crate::types::{Call, Lease, LeaseName, Position, Span, Text};

#[derive(Debug)]
pub enum Renewing {
    Role {
        role: Text,
        instance: Text,
        token: u64,
        ttl: Option<Span>,
        reply: Reply<Granted<Role>>,
    },
    Process {
        id: Text,
        reply: Reply<Granted<Process>>,
    },
    /// One that says the same of itself again is a renewal; else it is a record.
    Register(Registering),
}

#[derive(Debug)]
pub struct Registering {
    pub id: Text,
    pub process: Arc<NewProcess>,
    pub call: Option<Call>,
    pub reply: Reply<Granted<Process>>,
    /// It was not there when its record was proposed.
    pub new: bool,
    /// Its key is that of an earlier call, which was carried out.
    pub replayed: bool,
}

impl Renewing {
    pub fn deny(self, denied: Denied) {
        match self {
            Renewing::Role { reply, .. } => drop(reply.send(Err(denied))),
            Renewing::Process { reply, .. } => drop(reply.send(Err(denied))),
            Renewing::Register(Registering { reply, .. }) => drop(reply.send(Err(denied))),
        }
    }

    fn name(&self) -> LeaseName {
        match self {
            Renewing::Role { role, .. } => LeaseName::Role(role.clone()),
            Renewing::Process { id, .. } => LeaseName::Process(id.clone()),
            Renewing::Register(Registering { id, .. }) => LeaseName::Process(id.clone()),
        }
    }

    /// How much the holder asks for, if not for all that it was granted.
    fn asked(&self) -> Option<Span> {
        match self {
            Renewing::Role { ttl, .. } => *ttl,
            Renewing::Process { .. } => None,
            Renewing::Register(registering) => Some(registering.process.ttl),
        }
    }
}

impl Engine {
    pub(super) fn take_renewal(&mut self, renewing: Renewing) {
        if !self.core.is_open() {
            return renewing.deny(self.not_leading());
        }
        match renewing {
            Renewing::Register(registering) => self.take_registration(registering),
            renewing => self.confirm_renewal(renewing),
        }
    }

    fn take_registration(&mut self, mut registering: Registering) {
        if !self.look_ahead() {
            return Renewing::Register(registering).deny(Denied::Stopping);
        }
        let (id, process) = (registering.id.clone(), registering.process.clone());
        let command = Command::Single(Operation::Lease(LeaseOperation::Register { id, process }.into()));
        let stamp = self.core.stamp(clock::now()).unwrap_or_default();
        match self.states.newest().judge(&command, registering.call, stamp) {
            Judged::Accept => {
                registering.new = self.states.newest().process(&registering.id).is_none();
                let payload = command.to_payload(registering.call);
                self.propose(payload, pending::Call::Renew(Renewing::Register(registering)));
            }
            Judged::Rejected(rejection) if rejection.reason != Reason::Unchanged => {
                Renewing::Register(registering).deny(Denied::Rejected(rejection));
            }
            Judged::Rejected(_) => self.confirm_renewal(Renewing::Register(registering)),
            Judged::Replay { .. } => {
                registering.replayed = true;
                self.confirm_renewal(Renewing::Register(registering));
            }
            Judged::TooManyKeys => {
                let bound = "idempotency keys that are remembered";
                Renewing::Register(registering).deny(Denied::TooMany { bound });
            }
        }
    }

    /// A renewal of what a record is about to end waits for that record.
    fn confirm_renewal(&mut self, renewing: Renewing) {
        let name = renewing.name();
        let lease = self.states.committed().lease(&name);
        let standing = lease.map(|lease| self.leasing.leases.renewal(&name, lease.token));
        let in_doubt = standing == Some(Standing::Ending) || matches!(renewing, Renewing::Register(_));
        let at_least = if in_doubt { self.core.last().index } else { 0 };
        let call = pending::Call::Renew(renewing);
        self.request(call, |request| Input::Read { request, at_least });
    }

    pub fn renew_verdict(&mut self, renewing: Renewing, verdict: Verdict) {
        match verdict {
            Verdict::Written { position, acks } => self.registered(renewing, position, acks),
            Verdict::Readable { .. } => self.renew(renewing),
            Verdict::Refused(refusal) => renewing.deny(self.denied(refusal)),
            Verdict::Done | Verdict::Unknown => renewing.deny(Denied::Unknown),
        }
    }

    fn registered(&mut self, renewing: Renewing, position: Position, acks: usize) {
        let Renewing::Register(registering) = renewing else { return };
        let Some(what) = self.states.committed().process(&registering.id).cloned() else {
            return Renewing::Register(registering).deny_missing();
        };
        let name = LeaseName::Process(registering.id.clone());
        if self.leasing.leases.renewal(&name, what.token) == Standing::Ending {
            // By the state to come it is gone, and comes anew.
            return self.leasing.turns.push_back(Turn::Renew(Renewing::Register(registering)));
        }
        let expires_in = self.left(&name, what.new.ttl);
        let (new, acks) = (registering.new, Some(acks));
        let _ = registering.reply.send(Ok(Granted { what, new, expires_in, position, acks }));
    }

    /// What is left of something that has just been granted for so long.
    pub(super) fn left(&self, name: &LeaseName, ttl: Span) -> Span {
        self.leasing.leases.left(name, clock::now().mono).unwrap_or_default().min(ttl)
    }

    /// By a state that is confirmed.
    fn renew(&mut self, renewing: Renewing) {
        let name = renewing.name();
        let Some(lease) = self.lease_of(&renewing, &name) else {
            return self.tell_lost(renewing);
        };
        match self.leasing.leases.renewal(&name, lease.token) {
            Standing::Renewable => self.renewed(renewing, &name, lease.token),
            Standing::Ending => self.leasing.turns.push_back(Turn::Renew(renewing)),
            // The state has it and the count has not: the leadership is gone.
            Standing::Lost => renewing.deny(self.not_leading()),
        }
    }

    /// The lease, if it is still that of the one who asks.
    fn lease_of(&self, renewing: &Renewing, name: &LeaseName) -> Option<Lease> {
        let store = self.states.committed();
        if let Renewing::Role { role, instance, token, .. } = renewing {
            store.role(role).filter(|held| held.claim.instance == *instance && held.token == *token)?;
        }
        store.lease(name)
    }

    fn renewed(&mut self, renewing: Renewing, name: &LeaseName, token: u64) {
        let asked = renewing.asked();
        let renewed = self.leasing.leases.renew(clock::now().mono, name, token, asked);
        let expires_in = renewed.map(|renewed| renewed.expires_in).unwrap_or_default();
        let store = self.states.committed();
        let (position, new, acks) = (store.applied(), false, None);
        match renewing {
            Renewing::Role { role, reply, .. } => {
                let Some(what) = store.role(&role).cloned() else { return };
                let _ = reply.send(Ok(Granted { what, new, expires_in, position, acks }));
            }
            Renewing::Process { id, reply } | Renewing::Register(Registering { id, reply, .. }) => {
                let Some(what) = store.process(&id).cloned() else { return };
                let _ = reply.send(Ok(Granted { what, new, expires_in, position, acks }));
            }
        }
    }

    fn tell_lost(&mut self, renewing: Renewing) {
        match renewing {
            Renewing::Role { role, reply, .. } => {
                let _ = reply.send(Err(Denied::LeaseLost(self.held_by(&role, false))));
            }
            // What that call brought about has ended since, and a late copy of it must not bring it back.
            Renewing::Register(Registering { replayed: true, .. }) => renewing.deny_missing(),
            // It has gone since it was looked at: it comes anew.
            Renewing::Register(_) => self.leasing.turns.push_back(Turn::Renew(renewing)),
            Renewing::Process { .. } => renewing.deny_missing(),
        }
    }
}

impl Renewing {
    fn deny_missing(self) {
        let name = self.name().text().clone();
        self.deny(Denied::Rejected(Reason::NotFound { thing: Thing::Process, name }.into()));
    }
}
