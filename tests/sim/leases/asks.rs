//! Calls on their way: to any node, on to the leader, and back. Any answer may be late or lost; callers hang up.

use std::sync::Arc;

use eldest::protocol::{Refusal, Verdict};
use eldest::store::{Claim, Judged, LeaseOperation, NewProcess};
use eldest::types::{Call, LeaseName, NodeId, Span, Text};

use super::acquire::Acquiring;
use super::driver::{Pending, Turn, command};
use super::renew::Renewing;
use crate::checks::{Check, Violation};
use crate::world::{Event as Happens, World};

#[derive(Clone, Debug)]
pub enum Wish {
    Acquire { role: Text, claim: Arc<Claim>, wait: Span, priority: i64, elect: bool, call: Option<Call> },
    Renew { role: Text, instance: Text, token: u64, ttl: Option<Span> },
    Release { role: Text, instance: Text, token: u64 },
    Register { id: Text, process: Arc<NewProcess>, call: Option<Call> },
    Heartbeat { id: Text },
    Remove { id: Text },
}

/// One attempt at a call.
#[derive(Clone, Debug)]
pub struct Asked {
    pub id: u64,
    pub who: usize,
    /// In true time.
    pub sent: u64,
    pub wish: Wish,
    /// The node that passed it on, and which of its processes.
    pub via: Option<(usize, u64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// 200: it holds this, for at most so long.
    Yours {
        token: u64,
        expires_in: Span,
        ttl: Span,
    },
    /// 200 of a release or a removal.
    Done,
    /// 409: somebody else has it.
    Held,
    /// 410 and 404.
    Lost,
    /// Surely not applied, and perhaps who leads.
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
    GivesUp {
        who: usize,
        id: u64,
    },
    Wakes {
        who: usize,
        turn: u64,
    },
    /// A holder writes to what its role guards.
    Uses {
        who: usize,
        role: Text,
        token: u64,
    },
    Audit,
}

impl Wish {
    pub fn name(&self) -> LeaseName {
        match self {
            Wish::Acquire { role, .. } | Wish::Renew { role, .. } | Wish::Release { role, .. } => {
                LeaseName::Role(role.clone())
            }
            Wish::Register { id, .. } | Wish::Heartbeat { id } | Wish::Remove { id } => {
                LeaseName::Process(id.clone())
            }
        }
    }

    /// In whose name it is asked.
    pub fn instance(&self) -> &Text {
        match self {
            Wish::Acquire { claim, .. } => &claim.instance,
            Wish::Renew { instance, .. } | Wish::Release { instance, .. } => instance,
            Wish::Register { id, .. } | Wish::Heartbeat { id } | Wish::Remove { id } => id,
        }
    }

    /// How much is asked for, if not for all that was granted.
    pub fn ttl(&self) -> Option<Span> {
        match self {
            Wish::Acquire { claim, .. } => Some(claim.ttl),
            Wish::Register { process, .. } => Some(process.ttl),
            Wish::Renew { ttl, .. } => *ttl,
            Wish::Release { .. } | Wish::Heartbeat { .. } | Wish::Remove { .. } => None,
        }
    }

    /// Whoever waited renews before it believes.
    pub fn waits(&self) -> bool {
        matches!(self, Wish::Acquire { wait, .. } if *wait > Span::ZERO)
    }
}

impl World {
    pub fn lease_event(&mut self, event: Event) -> Check {
        match event {
            Event::Call { node, asked } => self.lease_call(node, asked),
            Event::Gone { id } => {
                self.lessees_mut().gone.insert(id);
                Ok(())
            }
            Event::Audit => self.audit(),
            Event::Uses { who, role, token } => self.uses(who, &role, token),
            Event::Answer { .. } | Event::GivesUp { .. } | Event::Wakes { .. } => self.contender_event(event),
        }
    }

    fn lease_call(&mut self, node: usize, asked: Asked) -> Check {
        if !self.hosts[node].is_up() {
            return self.lease_reply_from(None, &asked, Told::Refused(None));
        }
        if !self.is_open(node) && asked.via.is_none() {
            return self.pass_on(node, asked);
        }
        self.note(|| format!("call {} of {} at n{}: {:?}", asked.id, asked.who, node + 1, asked.wish));
        match &asked.wish {
            Wish::Acquire { .. } => {
                let acquiring = self.acquiring(node, asked);
                self.hosts[node].leasing.turns.extend(acquiring.map(Turn::Acquire));
            }
            Wish::Renew { .. } | Wish::Heartbeat { .. } | Wish::Register { .. } => {
                let turn = Turn::Renew(Renewing { asked, replayed: false });
                self.hosts[node].leasing.turns.push_back(turn);
            }
            Wish::Release { .. } | Wish::Remove { .. } => self.write_lease(node, asked)?,
        }
        self.settle_leases(node)?;
        self.schedule_tick(node);
        Ok(())
    }

    fn acquiring(&self, node: usize, asked: Asked) -> Option<Box<Acquiring>> {
        let Wish::Acquire { role, claim, wait, priority, elect, call } = asked.wish.clone() else {
            return None;
        };
        let until = self.clock_of(node).mono + wait;
        let (waited, again, replayed) = (false, false, false);
        Some(Acquiring { asked, role, claim, elect, priority, until, call, waited, again, replayed }.into())
    }

    /// A plain write: judged by the newest state, refused only by what is committed.
    fn write_lease(&mut self, node: usize, asked: Asked) -> Check {
        if !self.is_open(node) {
            return self.deny_leaderless(node, &asked);
        }
        let operation = match asked.wish.clone() {
            Wish::Release { role, instance, token } => LeaseOperation::Release { role, instance, token },
            Wish::Remove { id } => LeaseOperation::Remove { id },
            _ => return Ok(()),
        };
        self.look_ahead(node);
        let now = self.clock_of(node);
        let stamp = self.hosts[node].core.as_ref().and_then(|core| core.stamp(now)).unwrap_or_default();
        let command = command(operation);
        match self.newest(node).judge(&command, None, stamp) {
            Judged::Accept => self.propose_lease(node, command.to_payload(None), Pending::Write(asked, None)),
            _ => {
                let at_least = self.last_index(node);
                self.confirm(node, Pending::Write(asked, Some(Told::Lost)), at_least)
            }
        }
    }

    fn pass_on(&mut self, node: usize, mut asked: Asked) -> Check {
        let id = self.hosts[node].id;
        let Some(leader) = self.leader_known_to(node).filter(|leader| *leader != id) else {
            return self.lease_reply_from(None, &asked, Told::Refused(None));
        };
        asked.via = Some((node, self.hosts[node].life));
        if self.net.passes(id, leader) {
            let (node, delay) = (self.slot(leader), self.net.delay(&mut self.rng));
            self.after(delay, Happens::Lease(Event::Call { node, asked }));
        }
        Ok(())
    }

    pub fn deny(&mut self, node: usize, asked: &Asked, verdict: &Verdict) -> Check {
        let told = match verdict {
            Verdict::Refused(Refusal::NotLeader { leader }) => Told::Refused(*leader),
            Verdict::Refused(_) => Told::Refused(None),
            _ => Told::Unknown,
        };
        self.lease_reply(node, asked, told).map(|_| ())
    }

    pub fn deny_leaderless(&mut self, node: usize, asked: &Asked) -> Check {
        let leader = self.leader_known_to(node);
        self.lease_reply(node, asked, Told::Refused(leader)).map(|_| ())
    }

    /// False if this node knows that the caller has hung up.
    pub fn lease_reply(&mut self, node: usize, asked: &Asked, told: Told) -> Result<bool, Violation> {
        self.note(|| format!("n{} answers call {}: {told:?}", node + 1, asked.id));
        if let Told::Yours { token, .. } = told {
            // Counted, whether or not anybody is there to hear it.
            self.checks.late.renewed(token);
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
        let lost = self.lessees_mut().loses_answers;
        if arrives && !self.rng.chance(lost) {
            let delay = self.net.delay(&mut self.rng);
            self.after(delay, Happens::Lease(Event::Answer { asked: asked.clone(), told }));
        }
        Ok(())
    }

    pub fn is_gone(&self, asked: &Asked) -> bool {
        self.lessees.as_ref().is_some_and(|lessees| lessees.gone.contains(&asked.id))
    }
}
