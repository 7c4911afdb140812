//! Calls to a node: how they arrive, how they form one round with the calls that wait there, and how they are
//! answered.

use eldest::protocol::Ack;
use eldest::replica::{Answer as Answered, Call as Asked, CallId, Denied, ReadProof};
use eldest::store::{Reason, Rule, Store};
use eldest::types::{Entry, NodeId, Record};

use crate::checks::{Check, Violation, ensure};
use crate::client::{Answer, Call};
use crate::commands::{self, Ask, Command};
use crate::host::Host;
use crate::world::{Event, World};
use crate::{leases, restores, sides};

/// The party that waits for a node's answer.
#[derive(Clone, Debug)]
pub enum Waiting {
    Nobody,
    Client(Call),
    Side(sides::Asked),
    Holder(sides::RoleAsked),
    Lease(leases::Asked),
    Document(leases::DocumentAsked),
    /// An operator that restores all data; the number is that of the restore.
    Operator(u64),
}

/// The longest time for which calls gather before a node takes them all as one round.
const GATHER: u64 = 800;

impl World {
    /// A client's call arrives.
    pub fn call(&mut self, node: usize, call: Call) -> Check {
        if let Ask::Command(command) = call.ask
            && self.clients.restores
            && command.is_restore()
        {
            if self.takes_in_a_document(node) {
                let hint = self.hosts[node].id;
                self.checks.refused.refused(call.tag)?;
                self.reply(call, Answer::Refused(Some(hint)));
                return Ok(());
            }
            if command != Command::NewFormat {
                self.restore_is_asked(commands::restore_number(call.tag), &command.document(call.tag));
            }
        }
        if let Ask::Look { leader: false } = call.ask {
            return self.looks_at_once(node, call);
        }
        let asked = match call.ask {
            Ask::Command(command) => command.call(call.tag, self.hosts[node].settings.format),
            Ask::Look { leader: true } => Asked::Read(ReadProof::Lease),
            _ => Asked::Read(ReadProof::Round),
        };
        self.arrives(node, Waiting::Client(call), asked)
    }

    /// A local read is answered between two inputs, without a call to the replica.
    fn looks_at_once(&mut self, node: usize, call: Call) -> Check {
        let host = &self.hosts[node];
        let now = host.clock.now(self.now).mono;
        let Some(view) = host.replica.as_ref().map(|replica| replica.view(now)) else { return Ok(()) };
        let answer = self.client_looks(node, &view.store, false)?;
        self.reply(call, answer);
        Ok(())
    }

    /// Some calls wait until others have arrived.
    pub fn arrives(&mut self, node: usize, waiting: Waiting, call: Asked) -> Check {
        if !self.hosts[node].is_up() {
            return Ok(());
        }
        if !self.gathers {
            return self.calls(node, vec![(waiting, call)]);
        }
        let life = self.hosts[node].life;
        let inbox = &mut self.hosts[node].inbox;
        inbox.push((waiting, call));
        if inbox.len() == 1 {
            let delay = self.rng.below(GATHER);
            self.after(delay, Event::Round { node, life });
        }
        Ok(())
    }

    pub fn round(&mut self, node: usize) -> Check {
        let calls = std::mem::take(&mut self.hosts[node].inbox);
        self.calls(node, calls)
    }

    /// A node answers. Returns whether the caller was still there to hear it.
    pub fn answered(
        &mut self,
        node: usize,
        id: CallId,
        answer: Result<Answered, Denied>,
    ) -> Result<bool, Violation> {
        let waiting = self.hosts[node].calls.remove(&id);
        let host = self.hosts[node].id;
        self.all_have(node, &answer)?;
        match waiting {
            None => {
                ensure(false, "P15 each call is answered once", || {
                    format!("{host} answers {id:?}: {answer:?}")
                })?;
            }
            Some(Waiting::Nobody) => {}
            Some(Waiting::Client(call)) => self.client_answered(node, call, answer)?,
            Some(Waiting::Holder(asked)) => self.holder_answered(node, asked, &answer),
            Some(Waiting::Side(asked)) => self.side_answered(node, &asked, answer)?,
            Some(Waiting::Operator(number)) => self.operator_answered(number, &answer)?,
            Some(Waiting::Document(asked)) => self.document_answered(&asked, &answer)?,
            Some(Waiting::Lease(asked)) => return self.lease_answered(node, &asked, answer),
        }
        Ok(true)
    }

    /// Checks under `ack = all` that all have the record. An answer that is repeated says nothing of the
    /// other nodes, and a node that does not lead knows nothing of them.
    fn all_have(&self, node: usize, answer: &Result<Answered, Denied>) -> Check {
        let at = match answer {
            Ok(Answered::Written(written)) if written.acks.is_some() => written.position,
            _ => return Ok(()),
        };
        let host = &self.hosts[node];
        let Some(epoch) = host.core().and_then(|core| core.leads()).or(host.led) else {
            return ensure(host.settings.ack != Ack::All, "P15 all have it", || {
                format!("{} acknowledges {at} and does not lead", host.id)
            });
        };
        let now = host.clock.now(self.now).mono;
        self.checks.answered.acknowledges(host, epoch, at.index, now, &self.hosts)
    }

    fn client_answered(&mut self, node: usize, call: Call, answer: Result<Answered, Denied>) -> Check {
        let answer = match (answer, call.ask) {
            (Ok(Answered::Written(written)), Ask::Command(command)) => {
                if let Command::Restore { .. } = command {
                    let number = commands::restore_number(call.tag);
                    self.checks.restored.acknowledged(number, written.position.index)?;
                }
                if let Some((key, value)) = command.leaves() {
                    self.clients.learn(key, value, written.position.index);
                }
                Answer::Done
            }
            (Ok(Answered::View(view)), Ask::Look { leader }) => {
                self.client_looks(node, &view.store, leader)?
            }
            (Ok(Answered::View(view)), ask) => self.client_reads(&view.store, ask)?,
            (Err(Denied::Rejected(_)), Ask::Command(Command::Delete { .. } | Command::RemoveUser { .. })) => {
                Answer::Missing
            }
            (Err(Denied::Rejected(rejection)), Ask::Command(Command::Vote { .. }))
                if rejection.reason != Reason::RuleViolated(Rule::AlreadyVoted) =>
            {
                Answer::NotAllowed
            }
            (Err(Denied::Rejected(_)), _) => Answer::Mismatch,
            (Err(Denied::Unknown) | Ok(_), _) => Answer::Unknown,
            // The attempt is refused; the outcome of the call is unknown.
            (Err(denied), Ask::Command(_)) if self.may_have_been(node, call, &denied)? => Answer::Unknown,
            (Err(denied), ask) => {
                if matches!(ask, Ask::Command(_)) {
                    self.checks.refused.refused(call.tag)?;
                }
                Answer::Refused(hint(&denied))
            }
        };
        self.reply(call, answer);
        Ok(())
    }

    /// Whether the node must say of a refused call that it may still take effect (P15). A redirect is not a
    /// refusal.
    fn may_have_been(&self, node: usize, call: Call, denied: &Denied) -> Result<bool, Violation> {
        let (host, key) = (&self.hosts[node], commands::key(call.tag));
        let has_one = match call.ask {
            Ask::Command(command) => !command.is_restore() && hint(denied).is_none(),
            _ => false,
        };
        let Some(replica) = host.replica.as_ref().filter(|_| has_one) else { return Ok(false) };
        let is_its = |record: &Record| commands::tag_of(record).is_some_and(|tag| tag.op == call.tag.op);
        let stands_there = replica.core().log().records().any(is_its);
        let told = replica.may_have_been(key);
        ensure(told || !stands_there, "P15 a retry is not refused", || {
            format!("{} refuses {:?}, an attempt of which is in its log", host.id, call.tag)
        })?;
        Ok(told)
    }

    /// Shows what this node has applied. A node that answers as a leader by its lease must be the only one
    /// that does (I4).
    fn client_looks(&self, node: usize, store: &Store, leader: bool) -> Result<Answer, Violation> {
        let host = &self.hosts[node];
        let has = &host.state.store;
        let same = host.is_flipped() || (store.applied() == has.applied() && store.digest() == has.digest());
        ensure(same, "a look shows what the node has", || format!("{} shows {}", host.id, store.applied()))?;
        let leads = |host: &Host| {
            let now = host.clock.now(self.now).mono;
            host.replica.as_ref().is_some_and(|replica| replica.is_leader(now))
        };
        let others = self.hosts.iter().filter(|other| other.paused_until <= self.now && other.id != host.id);
        let other = others.clone().find(|other| leads(other));
        ensure(!leader || other.is_none() || self.checks.lease.void, "I4 one believer answers", || {
            format!("{} answers as a leader, and {:?} leads", host.id, other.map(|other| other.id))
        })?;
        Ok(Answer::Value(None))
    }

    fn client_reads(&mut self, store: &Store, ask: Ask) -> Result<Answer, Violation> {
        match ask {
            Ask::Read { key } => {
                let found = commands::read(store, key);
                if let Some((value, rev)) = found {
                    self.clients.learn(key, value, rev);
                }
                Ok(Answer::Value(found.map(|(value, _)| value)))
            }
            Ask::ReadPair { key } => {
                let [first, second] = commands::read_pair(store, key);
                ensure(first == second, "P12 a batch is whole", || {
                    format!("pair {key} reads {first:?} and {second:?}")
                })?;
                Ok(Answer::Value(first))
            }
            Ask::ReadUser { key } => Ok(Answer::Value(commands::read_user(store, key))),
            Ask::ReadVote { key } => Ok(Answer::Value(commands::read_vote(store, key))),
            Ask::Command(_) | Ask::Look { .. } => Ok(Answer::Unknown),
        }
    }

    fn reply(&mut self, call: Call, answer: Answer) {
        if self.rng.chance(995) || self.clients.reliable {
            let delay = self.net.delay(&mut self.rng);
            self.after(delay, Event::Answer { call, answer });
        }
    }

    /// A node has applied a record.
    pub fn apply(&mut self, node: usize, record: &Record) -> Check {
        if self.is_available() {
            return self.apply_to_side(node, record);
        }
        let index = record.index();
        if index == self.checks.survival.len() + 1 {
            self.checks.time.committed(record)?;
        }
        let (id, promise) = (self.hosts[node].id, self.promise_of(node));
        self.checks.survival.committed(id, promise, record)?;
        let before = restores::is_step(record).then(|| self.hosts[node].state.store.clone());
        let applied = self.hosts[node].apply(record)?;
        if let Some(before) = before {
            let after = &self.hosts[node].state.store;
            self.checks.restored.step(id, record, &before, after, &applied)?;
        }
        let (digest, flipped) = (self.hosts[node].state.store.digest(), self.hosts[node].is_flipped());
        if !flipped {
            self.checks.applied.state(id, index, digest)?;
        }
        if self.lessees.is_some() {
            return self.witness_commit(record);
        }
        if let Some(tag) = commands::tag_of(record) {
            self.checks.refused.applied(tag)?;
        }
        if let Entry::Client(payload) = &record.entry
            && let Some(key) = payload.call
            && applied.outcome.is_ok()
            && applied.changes.iter().any(|key| key.is_data())
        {
            self.checks.applied.effect(key.key, index)?;
        }
        Ok(())
    }
}

impl Host {
    /// Applies one record to the state.
    pub fn apply(&mut self, record: &Record) -> Result<eldest::store::Applied, Violation> {
        let id = self.id;
        self.state.store.apply(record).map_err(|error| Violation {
            checker: "validation",
            what: format!("{id} cannot read {record}: {error:?}"),
        })
    }
}

/// The leader that the answer names.
pub fn hint(denied: &Denied) -> Option<NodeId> {
    match denied {
        Denied::NotLeader { leader } => Some(*leader),
        _ => None,
    }
}
