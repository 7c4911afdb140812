//! Documents that end by themselves (P54), together with the roles and processes that some of them end with;
//! in some seeds the state is soon full (P55). Clients write, renew and delete them at any node; no client
//! asks twice.

use eldest::replica::{self, Answer, Denied, Renewal};
use eldest::store::{
    Applied, Command, DocCondition, DocEnded, Ending, Holding, NewProcess, Operation, Reason, Store, Tether,
};
use eldest::types::{Entry, LeaseName, Record, Span, Text};

use super::Event;
use super::contenders::{Wants, certain};
use crate::calls::Waiting;
use crate::checks::{Check, ensure};
use crate::rng::Rng;
use crate::world::{Event as Happens, World};

/// The greatest number of documents.
const KEYS: u64 = 16;

const BOUND: &str = "P54 a bound document goes with its lease";
const ALONE: &str = "P54 nothing else ends a document";
const CONDITION: &str = "a condition is met";
const HOLDER: &str = "P59 a write in the name of a role is its holder's";
const SIZE: &str = "P55 the state stays within its limit";
const PASSES: &str = "P55 what makes nothing larger passes";

/// The room that the other rows of such a seed take and give back all the time.
const NEARLY: u64 = 1_024;

/// These are drawn separately, so that the other seeds stay what they are.
#[derive(Debug)]
pub struct Writers {
    rng: Rng,
    /// The limit of the state's size, in seeds in which it is soon reached.
    pub most: Option<u64>,
    /// No client writes any more. Where roles may find no room, the documents that are there are deleted, one
    /// after the other.
    pub stopped: bool,
}

#[derive(Clone, Debug)]
pub enum Wish {
    Put { number: u64, ending: Ending, length: usize, holder: Option<Holding>, condition: DocCondition },
    Renew { number: u64, condition: DocCondition },
    Delete { number: u64, holder: Option<Holding> },
}

#[derive(Clone, Debug)]
pub struct Asked {
    wish: Wish,
    sent: u64,
    passed_on: bool,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    WithTtl,
    WithLease,
    WithBoth,
    Plain,
    Renew,
    Delete,
}

const KINDS: [(Kind, u64); 6] = [
    (Kind::WithTtl, 30),
    (Kind::WithLease, 30),
    (Kind::WithBoth, 8),
    (Kind::Plain, 6),
    (Kind::Renew, 18),
    (Kind::Delete, 8),
];

impl Writers {
    pub fn new(mut rng: Rng) -> Writers {
        let most = rng.chance(400).then(|| rng.range(3_000, 8_000));
        Writers { rng, most, stopped: false }
    }
}

impl Wish {
    fn key(&self) -> Text {
        let (Wish::Put { number, .. } | Wish::Renew { number, .. } | Wish::Delete { number, .. }) = self;
        key(*number)
    }

    fn call(&self) -> replica::Call {
        let key = self.key();
        let write =
            |operation| replica::Call::Write { command: Command::Single(operation).into(), key: None };
        match self.clone() {
            Wish::Put { ending, length, holder, condition, .. } => {
                let value = format!("\"{}\"", "x".repeat(length)).into();
                write(Operation::PutDoc { key, value, condition, holder, ending })
            }
            Wish::Renew { condition, .. } => replica::Call::Renew(Renewal::Doc { key, condition }),
            Wish::Delete { holder, .. } => {
                write(Operation::DeleteDoc { key, condition: DocCondition::None, holder })
            }
        }
    }
}

fn key(number: u64) -> Text {
    format!("d/{number}").into()
}

/// The number by which the checkers of leases know one write of a document. Tokens of roles are moments in
/// time, and far above it.
fn token(number: u64, index: u64) -> u64 {
    index * KEYS + number
}

impl World {
    fn writers_mut(&mut self) -> Option<&mut Writers> {
        self.lessees.as_mut()?.writers.as_mut()
    }

    /// A client wants something of a document, and another client does soon after.
    pub fn somebody_writes(&mut self) {
        let Some(writers) = self.writers_mut() else { return };
        let (mut rng, stopped, clears) = (writers.rng.fork(), writers.stopped, writers.most.is_some());
        let pause = writers.rng.range(20_000, 250_000);
        self.after(pause, Happens::Lease(Event::Writes));
        let wish = match stopped {
            false => Some(self.draw_wish(&mut rng)),
            true => self.next_to_clear().filter(|_| clears),
        };
        let Some(wish) = wish else { return };
        let node = rng.below(self.hosts.len() as u64) as usize;
        let asked = Asked { wish, sent: self.now, passed_on: false };
        let delay = self.net.delay(&mut self.rng);
        self.after(delay, Happens::Lease(Event::Document { node, asked }));
    }

    fn next_to_clear(&self) -> Option<Wish> {
        let number = (0..KEYS).find(|number| self.witness().store.doc(&key(*number)).is_some())?;
        Some(Wish::Delete { number, holder: None })
    }

    fn draw_wish(&self, rng: &mut Rng) -> Wish {
        let (number, kind) = (rng.below(KEYS), rng.weighted(&KINDS));
        let ttl = Some(Span::millis(*rng.pick(&[1_000, 1_500, 2_500])));
        let with = self.some_lease(rng);
        let ending = match kind {
            Kind::WithTtl => Ending { ttl, with: None },
            Kind::WithLease => Ending { ttl: None, with },
            Kind::WithBoth => Ending { ttl, with },
            Kind::Plain => Ending::default(),
            Kind::Renew => return Wish::Renew { number, condition: self.some_condition(rng, number) },
            Kind::Delete => return Wish::Delete { number, holder: self.some_holder(rng) },
        };
        let length = rng.skewed(1, 900) as usize;
        let condition = self.some_condition(rng, number);
        Wish::Put { number, ending, length, holder: self.some_holder(rng), condition }
    }

    /// A revision that a client has seen lately, or the condition that there is none.
    fn some_condition(&self, rng: &mut Rng, number: u64) -> DocCondition {
        match (rng.below(10), self.witness().store.doc(&key(number))) {
            (0..3, Some(doc)) => DocCondition::Rev(doc.rev().into()),
            (0..2, None) => DocCondition::Absent,
            _ => DocCondition::None,
        }
    }

    /// For some of the writes, a holder, or one that a client saw lately. Writes get no holder where the
    /// state is to become full: too many of them would fail.
    fn some_holder(&self, rng: &mut Rng) -> Option<Holding> {
        if self.lessees.as_ref()?.writers.as_ref()?.most.is_some() {
            return None;
        }
        let tether = rng.chance(250).then(|| self.some_lease(rng)).flatten()?;
        let (LeaseName::Role(role), Some(token)) = (tether.lease, tether.token) else { return None };
        Some(Holding { role, token })
    }

    /// A lease as a client saw it lately: it may be over by now.
    fn some_lease(&self, rng: &mut Rng) -> Option<Tether> {
        let contender = rng.pick(&self.lessees.as_ref()?.all);
        Some(match &contender.wants {
            Wants::Role(role) => {
                let token = self.witness().store.role(role).map(|role| role.token);
                let lease = LeaseName::Role(role.clone());
                let secret = self.secret_of(&lease);
                Tether { lease, token: Some(token.unwrap_or(1)), secret }
            }
            Wants::Process(NewProcess { .. }) => {
                let lease = LeaseName::Process(contender.instance.clone());
                let secret = self.secret_of(&lease);
                Tether { lease, token: None, secret }
            }
        })
    }

    /// The call arrives at a node, or at the leader that the node knows.
    pub fn document_call(&mut self, node: usize, mut asked: Asked) -> Check {
        if !self.hosts[node].is_up() {
            return Ok(());
        }
        if self.is_open(node) || asked.passed_on {
            self.note(|| format!("a document at n{}: {:?}", node + 1, asked.wish));
            let call = asked.wish.call();
            return self.arrives(node, Waiting::Document(asked), call);
        }
        let id = self.hosts[node].id;
        let leader = self.hosts[node].core().and_then(|core| core.leader()).filter(|leader| *leader != id);
        if let Some(leader) = leader.filter(|leader| self.net.passes(id, *leader)) {
            asked.passed_on = true;
            let (node, delay) = (self.slot(leader), self.net.delay(&mut self.rng));
            self.after(delay, Happens::Lease(Event::Document { node, asked }));
        }
        Ok(())
    }

    /// A node answers, whether or not the caller hears it.
    pub fn document_answered(&mut self, asked: &Asked, answer: &Result<Answer, Denied>) -> Check {
        let sent = asked.sent;
        match (answer, &asked.wish) {
            (
                Ok(Answer::Written(written)),
                Wish::Put { number, ending: Ending { ttl: Some(ttl), .. }, .. },
            ) => {
                let token = token(*number, written.position.index);
                self.checks.early.promised(token, sent, sent + certain(*ttl).0)
            }
            (Ok(Answer::Doc(granted)), Wish::Renew { number, condition }) => {
                let rev = granted.what.rev();
                let meets = !matches!(condition, DocCondition::Rev(wanted) if **wanted != *rev);
                ensure(meets, CONDITION, || format!("{condition:?} is told that {rev} is renewed"))?;
                let index = granted.what.rev().split('-').next().and_then(|index| index.parse().ok());
                let index = index.expect("in safe mode a revision begins with an index");
                let token = token(*number, index);
                self.checks.late.renewed(token);
                self.checks.early.promised(token, sent, sent + certain(granted.expires_in).0)
            }
            (Err(Denied::Rejected(rejection)), wish) if is_full(&rejection.reason) => {
                self.lessees_mut().witness.full += 1;
                let grows = matches!(wish, Wish::Put { .. });
                ensure(grows, PASSES, || format!("{wish:?} is told: {}", rejection.reason))
            }
            _ => Ok(()),
        }
    }

    /// A record is committed, with this effect.
    pub fn witness_documents(&mut self, record: &Record, before: &Store, applied: &Applied) -> Check {
        let Some(most) = self.lessees.as_ref().and_then(|lessees| Some(lessees.writers.as_ref()?.most))
        else {
            return Ok(());
        };
        self.witness_holders(record, before, applied)?;
        self.witness_condition(record, before, applied)?;
        for number in 0..KEYS {
            self.witness_document(number, record, before, applied)?;
        }
        let (was, is) = (before.bytes(), self.witness().store.bytes());
        let fits = applied.restored || most.is_none_or(|most| is <= most.max(was));
        ensure(fits, SIZE, || format!("{record} makes {is} of {was}, and {most:?} are the most"))
    }

    fn witness_condition(&mut self, record: &Record, before: &Store, applied: &Applied) -> Check {
        let Some(Command::Single(Operation::PutDoc { key, condition, .. })) = command_of(record) else {
            return Ok(());
        };
        let there = before.doc(&key);
        let meets = match &condition {
            DocCondition::None => return Ok(()),
            DocCondition::Absent => there.is_none(),
            DocCondition::Rev(rev) => there.is_some_and(|doc| doc.rev() == &**rev),
            DocCondition::Present => there.is_some(),
        };
        self.lessees_mut().witness.conditions += 1;
        ensure(meets || applied.outcome.is_err(), CONDITION, || {
            format!("{record} is written, and {condition:?} did not hold")
        })
    }

    fn witness_holders(&mut self, record: &Record, before: &Store, applied: &Applied) -> Check {
        let Some(Command::Single(operation)) = command_of(record) else { return Ok(()) };
        let (Operation::PutDoc { holder: Some(holder), .. }
        | Operation::DeleteDoc { holder: Some(holder), .. }) = operation
        else {
            return Ok(());
        };
        let holds = before.role(&holder.role).is_some_and(|held| held.token == holder.token);
        self.lessees_mut().witness.in_the_name_of_a_role += 1;
        ensure(holds || applied.outcome.is_err(), HOLDER, || {
            format!("{record} is written, and {holder:?} was over")
        })
    }

    fn witness_document(&mut self, number: u64, record: &Record, before: &Store, applied: &Applied) -> Check {
        let (now, key) = (self.now, key(number));
        let name = LeaseName::Doc(key.clone());
        let after = &self.witness().store;
        let (doc, was, is) = (after.doc(&key), before.lease(&name), after.lease(&name));
        let bond = doc.as_ref().and_then(|doc| doc.lifetime.as_ref()?.with.clone());
        if let Some(bond) = bond {
            let stands = after.lease(&bond.lease).is_some_and(|lease| lease.token == bond.token);
            ensure(stands, BOUND, || format!("{key} stands after {record}, and {bond:?} does not"))?;
        }
        let gone = before.doc(&key).filter(|_| doc.is_none());
        let why = applied.ended.iter().find(|(ended, _)| *ended == key).map(|(_, why)| *why);
        if let Some(gone) = gone.filter(|_| !applied.restored) {
            let lifetime = gone.lifetime.as_deref().cloned();
            let rightly = match why {
                None => deletes(record, &key),
                Some(DocEnded::Expired) => was.is_some(),
                Some(DocEnded::WithLease) => {
                    lifetime.and_then(|lifetime| lifetime.with).is_some_and(|bond| {
                        after.lease(&bond.lease).is_none_or(|lease| lease.token != bond.token)
                    })
                }
            };
            ensure(rightly, ALONE, || format!("{key} goes with {record}: {why:?}"))?;
            let witness = &mut self.lessees_mut().witness;
            witness.docs_expired += usize::from(why == Some(DocEnded::Expired));
            witness.docs_went += usize::from(why == Some(DocEnded::WithLease));
        }
        let written = |lease: Option<eldest::types::Lease>| lease.map(|lease| lease.token);
        if written(was) == written(is) {
            return Ok(());
        }
        if let Some(was) = was {
            let token = token(number, was.token);
            self.checks.late.ended(token);
            if why == Some(DocEnded::Expired) {
                self.checks.early.expired(now, token)?;
            }
        }
        if let Some(is) = is {
            self.checks.late.sign(&name, token(number, is.token), is.ttl.0);
        }
        Ok(())
    }

    /// Whether a role may find no room.
    pub fn is_nearly_full(&self) -> bool {
        let most = self.lessees.as_ref().and_then(|lessees| lessees.writers.as_ref()?.most);
        most.is_some_and(|most| self.witness().store.bytes() + NEARLY > most)
    }

    /// A call that gives something back is not refused for lack of room.
    pub fn gives_room(&self, wish: &super::Wish, denied: &Denied) -> Check {
        let full = matches!(denied, Denied::Rejected(rejection) if is_full(&rejection.reason));
        let grows = matches!(wish, super::Wish::Acquire { .. } | super::Wish::Register { .. });
        ensure(grows || !full, PASSES, || format!("{wish:?} is told that the state is full"))
    }
}

fn is_full(reason: &Reason) -> bool {
    matches!(reason, Reason::StateFull { .. })
}

fn command_of(record: &Record) -> Option<Command> {
    let Entry::Client(payload) = &record.entry else { return None };
    Command::from_payload(payload).ok()
}

fn deletes(record: &Record, wanted: &Text) -> bool {
    let Some(command) = command_of(record) else { return false };
    let names =
        |operation: &Operation| matches!(operation, Operation::DeleteDoc { key, .. } if key == wanted);
    command.operations().iter().any(names)
}
