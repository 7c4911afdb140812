//! Calls: how they travel to any node, on to the leader, and back. Any answer may be late or lost; callers
//! hang up.

use std::sync::Arc;

use eldest::replica::{
    self, Acquire, Answer, CallId, Denied, DiskWrite, Granted, In, Registration, Renewal, Unheard, Untie,
};
use eldest::store::{
    Command, LeaseOperation, NewProcess, Operation, Reason, RoleClaim, SecretHash, Tenure, TokenId,
};
use eldest::types::{Entry, KeyedCall, NodeId, Span, Text, Time};

use super::documents;
use super::ties::Line;
use crate::calls::{Waiting, hint};
use crate::checks::{Check, Violation};
use crate::world::{Event as Happens, World};

/// A node learns at most this much later than its answer that it was not heard.
const UNHEARD_LATE: u64 = 100_000;

#[derive(Clone, Debug)]
pub enum Wish {
    Acquire {
        role: Text,
        claim: Arc<RoleClaim>,
        wait: Span,
        priority: i64,
        elect: bool,
        by: Option<TokenId>,
        call: Option<KeyedCall>,
    },
    Renew {
        role: Text,
        instance: Text,
        token: u64,
        ttl: Option<Span>,
        tie: Option<u64>,
    },
    /// Sent by the node that served the connection of this number.
    Untie {
        role: Text,
        instance: Text,
        token: u64,
        tie: u64,
    },
    Release {
        role: Text,
        instance: Text,
        token: u64,
    },
    Register {
        id: Text,
        process: Arc<NewProcess>,
        call: Option<KeyedCall>,
    },
    Heartbeat {
        id: Text,
    },
    Remove {
        id: Text,
    },
}

/// One attempt at a call.
#[derive(Clone, Debug)]
pub struct Asked {
    pub id: u64,
    pub who: usize,
    /// In true time.
    pub sent: u64,
    pub wish: Wish,
    /// The secret that it shows (P53).
    pub secret: Option<SecretHash>,
    /// The node that passed it on, and the number of its process.
    pub via: Option<(usize, u64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// 200: the caller holds this, for at most so long.
    Yours {
        token: u64,
        expires_in: Span,
        ttl: Span,
    },
    /// 200 of a release or a removal.
    Done,
    /// 409: another instance has it.
    Held,
    /// 410 and 404.
    Lost,
    /// The call is not applied; the answer may name the leader.
    Refused(Option<NodeId>),
    Unknown,
}

#[derive(Debug)]
pub enum Event {
    Call {
        node: usize,
        asked: Asked,
    },
    Answer {
        asked: Asked,
        told: Told,
    },
    /// The node learns that the caller has hung up.
    Gone {
        id: u64,
    },
    /// The node learns that this answer was not heard.
    Unheard {
        node: usize,
        life: u64,
        unheard: Unheard,
    },
    GivesUp {
        who: usize,
        id: u64,
    },
    Wakes {
        who: usize,
        turn: u64,
    },
    /// A holder writes to the resource that its role guards.
    Uses {
        who: usize,
        role: Text,
        token: u64,
    },
    /// The connection that this call opened breaks, as its holder sees it.
    TieBreaks {
        who: usize,
        id: u64,
    },
    /// The same break, as seen by the node that serves the connection.
    LineCloses {
        id: u64,
    },
    Unties {
        line: Box<Line>,
    },
    /// A client wants something of a document.
    Writes,
    Document {
        node: usize,
        asked: documents::Asked,
    },
    Audit,
}

impl Wish {
    /// The instance in whose name it is asked.
    pub fn instance(&self) -> &Text {
        match self {
            Wish::Acquire { claim, .. } => &claim.instance,
            Wish::Renew { instance, .. } | Wish::Release { instance, .. } => instance,
            Wish::Untie { instance, .. } => instance,
            Wish::Register { id, .. } | Wish::Heartbeat { id } | Wish::Remove { id } => id,
        }
    }

    /// The ttl that is asked for, if it is not all that was granted.
    pub fn ttl(&self) -> Option<Span> {
        match self {
            Wish::Acquire { claim, .. } => Some(claim.ttl),
            Wish::Register { process, .. } => Some(process.ttl),
            Wish::Renew { ttl, .. } => *ttl,
            Wish::Untie { .. } | Wish::Release { .. } | Wish::Heartbeat { .. } | Wish::Remove { .. } => None,
        }
    }

    /// The call that the node gets.
    fn call(&self, now: Time, secret: Option<SecretHash>) -> replica::Call {
        let write = |operation: LeaseOperation| {
            let command = Box::new(Command::Single(Operation::Lease(operation.into())));
            replica::Call::Write { command, key: None }
        };
        match self.clone() {
            Wish::Acquire { role, mut claim, wait, priority, elect, by, call: key } => {
                let until = now + wait;
                if secret.is_some() {
                    Arc::make_mut(&mut claim).secret = secret;
                }
                replica::Call::Acquire(Acquire { role, claim, elect, priority, until, by, key }.into())
            }
            Wish::Renew { role, instance, token, ttl, tie } => {
                let tenure = Tenure { instance, token, ttl, tie, secret };
                replica::Call::Renew(Renewal::Role { role, tenure })
            }
            Wish::Untie { role, instance, token, tie } => {
                let tenure = Tenure { instance, token, ttl: None, tie: Some(tie), secret };
                replica::Call::Untie(Untie { role, tenure, tie })
            }
            Wish::Heartbeat { id } => replica::Call::Renew(Renewal::Process { id, secret }),
            Wish::Register { id, mut process, call: key } => {
                Arc::make_mut(&mut process).secret = secret;
                replica::Call::Register(Registration { id, process, key })
            }
            Wish::Release { role, instance, token } => {
                write(LeaseOperation::Release { role, instance, token, secret })
            }
            Wish::Remove { id } => write(LeaseOperation::Remove { id, secret }),
        }
    }

    /// Whether this is a wait of this instance for this role.
    fn waits_for(&self, wanted: &Text, by: &Text) -> bool {
        self.waits()
            && matches!(self, Wish::Acquire { role, claim, .. } if role == wanted && claim.instance == *by)
    }

    /// The leader forgets the tie that was named before it.
    pub fn unties(&self) -> bool {
        matches!(self, Wish::Acquire { .. } | Wish::Renew { tie: None, .. })
    }

    /// A holder that waited renews before it believes.
    pub fn waits(&self) -> bool {
        matches!(self, Wish::Acquire { wait, .. } if *wait > Span::ZERO)
    }
}

impl Asked {
    /// The caller holds this, at most for as long as it asked for.
    fn yours<T>(&self, token: u64, granted: &Granted<T>, ttl: Span) -> Told {
        Told::Yours { token, expires_in: granted.expires_in, ttl: self.wish.ttl().unwrap_or(ttl) }
    }
}

impl World {
    pub fn lease_event(&mut self, event: Event) -> Check {
        match event {
            Event::Call { node, asked } => self.lease_call(node, asked),
            Event::Gone { id } => {
                self.lessees_mut().gone.insert(id);
                self.gone_at(id)
            }
            Event::Unheard { node, life, unheard } => self.learns_unheard(node, life, unheard),
            Event::Audit => self.audit(),
            Event::Writes => {
                self.somebody_writes();
                Ok(())
            }
            Event::Document { node, asked } => self.document_call(node, asked),
            Event::TieBreaks { who, id } => {
                self.tie_breaks(who, id);
                Ok(())
            }
            Event::LineCloses { id } => {
                self.line_closes(id);
                Ok(())
            }
            Event::Unties { line } => self.unties(*line),
            Event::Uses { who, role, token } => self.uses(who, &role, token),
            Event::Answer { .. } | Event::GivesUp { .. } | Event::Wakes { .. } => self.contender_event(event),
        }
    }

    fn lease_call(&mut self, node: usize, asked: Asked) -> Check {
        if !self.hosts[node].is_up() {
            return self.lease_reply_from(None, &asked, Told::Refused(None));
        }
        self.line_arrives(node, &asked);
        if !self.is_open(node) && asked.via.is_none() {
            return self.pass_on(node, asked);
        }
        self.note(|| format!("call {} of {} at n{}: {:?}", asked.id, asked.who, node + 1, asked.wish));
        let call = asked.wish.call(self.hosts[node].clock.now(self.now).mono, asked.secret);
        self.arrives(node, Waiting::Lease(asked), call)
    }

    /// The node where a call waits learns that its caller has hung up.
    fn gone_at(&mut self, id: u64) -> Check {
        let waits = |waiting: &Waiting| matches!(waiting, Waiting::Lease(asked) if asked.id == id);
        let calls = self.hosts.iter().enumerate().filter_map(|(node, host)| {
            let call = host.calls.iter().find(|(_, waiting)| waits(waiting));
            call.map(|(call, _)| (node, *call))
        });
        let calls: Vec<(usize, CallId)> = calls.collect();
        calls.into_iter().try_for_each(|(node, call)| self.hang_up_at(node, call))
    }

    /// A leader writes records: some callers hang up between the write and the commit.
    pub fn witness_appended(&mut self, node: usize, write: &DiskWrite) {
        let leads = self.lessees.is_some() && self.is_open(node);
        let DiskWrite::Append(records) = write else { return };
        for record in records.iter().filter(|_| leads) {
            let Entry::Client(payload) = &record.entry else { continue };
            let Ok(Command::Single(Operation::Lease(operation))) = Command::from_payload(payload) else {
                continue;
            };
            if let LeaseOperation::Acquire { role, claim, .. } = &*operation {
                let asked = self.hosts[node].calls.values().find_map(|waiting| match waiting {
                    Waiting::Lease(asked) if asked.wish.waits_for(role, &claim.instance) => {
                        Some(asked.clone())
                    }
                    _ => None,
                });
                asked.into_iter().for_each(|asked| self.connection_may_break(&asked));
            }
        }
    }

    pub fn is_open(&self, node: usize) -> bool {
        self.hosts[node].core().is_some_and(|core| core.is_open())
    }

    fn pass_on(&mut self, node: usize, mut asked: Asked) -> Check {
        let id = self.hosts[node].id;
        let Some(leader) =
            self.hosts[node].core().and_then(|core| core.leader()).filter(|leader| *leader != id)
        else {
            return self.lease_reply_from(None, &asked, Told::Refused(None));
        };
        asked.via = Some((node, self.hosts[node].life));
        if self.net.passes(id, leader) {
            let (node, delay) = (self.slot(leader), self.net.delay(&mut self.rng));
            self.after(delay, Happens::Lease(Event::Call { node, asked }));
        }
        Ok(())
    }

    /// Returns whether the caller was there to hear the answer.
    pub fn lease_answered(
        &mut self,
        node: usize,
        asked: &Asked,
        answer: Result<Answer, Denied>,
    ) -> Result<bool, Violation> {
        answer.as_ref().err().map_or(Ok(()), |denied| self.gives_room(&asked.wish, denied))?;
        let told = match &answer {
            Ok(Answer::Role(granted)) => asked.yours(granted.what.token, granted, granted.what.claim.ttl),
            Ok(Answer::Process(granted)) => asked.yours(granted.what.token, granted, granted.what.new.ttl),
            Ok(_) => Told::Done,
            Err(Denied::RoleHeld(_)) => Told::Held,
            // The holder's lease is unchanged, no matter which caller asked in its name.
            Err(Denied::Rejected(rejection)) if rejection.reason == Reason::WrongSecret => {
                Told::Refused(None)
            }
            Err(Denied::Rejected(_)) if matches!(asked.wish, Wish::Acquire { .. }) => Told::Held,
            Err(Denied::LeaseLost(_) | Denied::Rejected(_)) => Told::Lost,
            Err(Denied::Unknown) => Told::Unknown,
            Err(denied) => Told::Refused(hint(denied)),
        };
        let heard = self.lease_reply(node, asked, told)?;
        if let Ok(Answer::Role(granted)) = &answer
            && granted.waited
            && !heard
        {
            self.witness_gone(node, granted.position, granted.what.token);
        }
        Ok(heard)
    }

    /// Returns false if this node knows that the caller has hung up.
    pub fn lease_reply(&mut self, node: usize, asked: &Asked, told: Told) -> Result<bool, Violation> {
        self.note(|| format!("n{} answers call {}: {told:?}", node + 1, asked.id));
        if let Told::Yours { token, .. } = told {
            // The answer counts, whether or not the caller hears it.
            self.checks.late.renewed(token);
            self.line_is_answered(asked);
        }
        if self.is_gone(asked) {
            return Ok(false);
        }
        self.witness_answer(node, asked, told)?;
        self.lease_reply_from(Some(node), asked, told)?;
        Ok(true)
    }

    fn lease_reply_from(&mut self, node: Option<usize>, asked: &Asked, told: Told) -> Check {
        let arrives = match (node, asked.via) {
            (Some(node), Some((via, life))) => {
                let (from, to) = (self.hosts[node].id, self.hosts[via].id);
                self.hosts[via].life == life && self.net.passes(from, to)
            }
            _ => true,
        };
        // The node that unties repeats it, no matter how it is answered.
        let arrives = arrives && !matches!(asked.wish, Wish::Untie { .. });
        let lost = self.lessees_mut().loses_answers;
        if arrives && !self.rng.chance(lost) {
            let delay = self.net.delay(&mut self.rng);
            self.after(delay, Happens::Lease(Event::Answer { asked: asked.clone(), told }));
        }
        Ok(())
    }

    /// The node may learn of it at once, or after it has done more.
    pub fn nobody_heard(&mut self, node: usize, unheard: Unheard) {
        let delay = if self.rng.chance(500) { 0 } else { self.rng.below(UNHEARD_LATE) };
        let life = self.hosts[node].life;
        self.after(delay, Happens::Lease(Event::Unheard { node, life, unheard }));
    }

    pub fn learns_unheard(&mut self, node: usize, life: u64, unheard: Unheard) -> Check {
        match self.hosts[node].life == life {
            true => self.feed(node, In::Unheard(unheard)),
            false => Ok(()),
        }
    }

    pub fn is_gone(&self, asked: &Asked) -> bool {
        self.lessees.as_ref().is_some_and(|lessees| lessees.gone.contains(&asked.id))
    }
}
