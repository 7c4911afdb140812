//! Clients of available mode: each writes, through any node that takes it, a value that no other client
//! writes.

use std::sync::Arc;

use eldest::replica::{self, Answer, Denied};
use eldest::store::{Command, DocCondition, Ending, NewElection, NewUser, Operation};
use eldest::types::{KeyedCall, NodeId, Position, Text};

use crate::calls::{Waiting, hint};
use crate::checks::{Check, ensure};
use crate::commands::Tag;
use crate::disk::Durable;
use crate::rng::Rng;
use crate::world::{Event as Happens, World};

#[derive(Debug)]
pub enum Event {
    Wakes { client: usize },
    Call { node: usize, asked: Asked },
    GivesUp { client: usize, op: u64 },
    Role(super::roles::Event),
}

/// One attempt at one command.
#[derive(Clone, Debug)]
pub struct Asked {
    /// `None` if a scenario asks; no client waits then.
    pub client: Option<usize>,
    pub op: u64,
    pub wish: Wish,
}

/// A client's wish. The command that it becomes may depend on the state of the node that is asked.
#[derive(Clone, Debug)]
pub enum Wish {
    Command(Arc<Command>),
    /// A document is replaced if it still is what this node has (C20).
    Replace {
        key: Text,
        value: Text,
    },
    /// The oldest entry of this node's journal is put back, or removed.
    Settle {
        back: bool,
    },
}

#[derive(Debug, Default)]
struct Client {
    op: Option<u64>,
    target: usize,
}

#[derive(Debug)]
pub struct Sides {
    clients: Vec<Client>,
    rng: Rng,
    next_op: u64,
    pub think: (u64, u64),
    pub stopped: bool,
    /// The time of each acknowledgement of a write, and the node that gave it.
    pub acknowledged: Vec<(u64, NodeId)>,
    /// The position of the last of them.
    pub newest: Position,
}

/// A client that gets no answer for this long turns to another node.
const PATIENCE: u64 = 400_000;
const KEYS: u64 = 5;
const VOTERS: u64 = 12;

impl Default for Sides {
    fn default() -> Sides {
        Sides::new(0, Rng::new(0))
    }
}

impl Sides {
    pub fn new(count: usize, rng: Rng) -> Sides {
        Sides {
            clients: (0..count).map(|_| Client::default()).collect(),
            rng,
            next_op: 0,
            think: (30_000, 300_000),
            stopped: false,
            acknowledged: Vec::new(),
            newest: Position::ZERO,
        }
    }

    pub fn count(&self) -> usize {
        self.clients.len()
    }

    fn wish(&mut self, op: u64) -> Wish {
        let key: Text = format!("k{}", self.rng.below(KEYS)).into();
        let value: Text = format!("{op}").into();
        match self.rng.below(100) {
            0..35 => one(put(key, value, DocCondition::None)),
            35..50 => Wish::Replace { key, value },
            50..55 => one(put(key, value, DocCondition::Absent)),
            55..70 => one(Operation::DeleteDoc { key, condition: DocCondition::None, holder: None }),
            70..76 => self.batch(&key, &value),
            76..82 => one(self.user(op)),
            82..84 => one(Operation::RemoveUser { name: self.voter() }),
            84..86 => one(election(self.rng.below(2))),
            86..97 => one(self.vote()),
            rest => Wish::Settle { back: rest == 97 },
        }
    }

    fn batch(&mut self, key: &Text, value: &Text) -> Wish {
        let other: Text = format!("k{}", self.rng.below(KEYS)).into();
        let operations = vec![
            put(key.clone(), value.clone(), DocCondition::None),
            put(other, value.clone(), DocCondition::None),
        ];
        Wish::Command(Arc::new(Command::Batch(operations)))
    }

    fn voter(&mut self) -> Text {
        format!("u{}", self.rng.below(VOTERS)).into()
    }

    fn user(&mut self, op: u64) -> Operation {
        user(&self.voter(), op)
    }

    fn vote(&mut self) -> Operation {
        let voter = self.voter();
        vote(self.rng.below(2), &voter, self.rng.below(2))
    }
}

pub fn one(operation: Operation) -> Wish {
    Wish::Command(Arc::new(Command::Single(operation)))
}

pub fn put(key: Text, value: Text, condition: DocCondition) -> Operation {
    Operation::PutDoc { key, value, condition, holder: None, ending: Ending::default() }
}

pub fn delete(key: &str) -> Operation {
    Operation::DeleteDoc { key: key.into(), condition: DocCondition::None, holder: None }
}

pub fn user(name: &str, mark: u64) -> Operation {
    let text = format!("{{\"name\":\"{name}\",\"mark\":{mark}}}").into();
    Operation::CreateUser(Arc::new(NewUser { name: name.into(), group: None, text }))
}

/// The same election on every side, so that no vote is for a choice that another side does not know.
pub fn election(number: u64) -> Operation {
    let name = format!("e{number}");
    let text = format!("{{\"name\":\"{name}\",\"choices\":[\"c0\",\"c1\"]}}").into();
    let choices = vec!["c0".into(), "c1".into()];
    Operation::CreateElection(Arc::new(NewElection {
        name: name.into(),
        choices,
        groups: None,
        ends: None,
        text,
    }))
}

pub fn vote(election: u64, voter: &str, choice: u64) -> Operation {
    Operation::VoteElection {
        election: format!("e{election}").into(),
        voter: voter.into(),
        choice: format!("c{choice}").into(),
    }
}

impl World {
    pub fn side_event(&mut self, event: Event) -> Check {
        match event {
            Event::Wakes { client } => self.side_client_wakes(client),
            Event::Role(event) => return self.role_event(event),
            Event::Call { node, asked } => return self.side_call(node, asked),
            Event::GivesUp { client, op } => {
                if self.sides.clients[client].op == Some(op) {
                    self.next_of(client, None);
                }
            }
        }
        Ok(())
    }

    fn side_client_wakes(&mut self, client: usize) {
        if self.sides.stopped {
            return;
        }
        let op = self.next_op();
        let wish = self.sides.wish(op);
        if self.sides.rng.chance(150) {
            self.sides.clients[client].target = self.sides.rng.below(self.hosts.len() as u64) as usize;
        }
        self.sides.clients[client].op = Some(op);
        let (node, delay) = (self.sides.clients[client].target, self.net.delay(&mut self.rng));
        self.after(
            delay,
            Happens::Side(Event::Call { node, asked: Asked { client: Some(client), op, wish } }),
        );
        self.after(PATIENCE, Happens::Side(Event::GivesUp { client, op }));
    }

    fn next_op(&mut self) -> u64 {
        self.sides.next_op += 1;
        self.sides.next_op
    }

    /// Sends one command of a scenario to this node, once. Returns the number of the call.
    pub fn wish(&mut self, node: NodeId, wish: Wish) -> u64 {
        let op = self.next_op();
        let node = self.slot(node);
        self.after(1, Happens::Side(Event::Call { node, asked: Asked { client: None, op, wish } }));
        op
    }

    fn side_call(&mut self, node: usize, asked: Asked) -> Check {
        if !self.hosts[node].is_up() {
            if let Some(client) = asked.client {
                self.next_of(client, None);
            }
            return Ok(());
        }
        let Some(command) = self.command_of(node, &asked.wish) else {
            self.done(&asked, None);
            return Ok(());
        };
        let key = Some(KeyedCall { key: u128::from(asked.op), body: asked.op, who: 0 });
        let command = Box::new((*command).clone());
        self.arrives(node, Waiting::Side(asked), replica::Call::Write { command, key })
    }

    fn command_of(&self, node: usize, wish: &Wish) -> Option<Arc<Command>> {
        let store = &self.side(node).store;
        match wish {
            Wish::Command(command) => Some(command.clone()),
            Wish::Replace { key, value } => {
                let condition = DocCondition::Rev(store.doc(key)?.rev().into());
                Some(Arc::new(Command::Single(put(key.clone(), value.clone(), condition))))
            }
            Wish::Settle { back } => {
                let id = store.conflicts("", None, 1).items.into_iter().next()?.id;
                let operation = match back {
                    true => Operation::ApplyConflict { id },
                    false => Operation::DropConflict { id },
                };
                Some(Arc::new(Command::Single(operation)))
            }
        }
    }

    pub fn side_answered(&mut self, node: usize, asked: &Asked, answer: Result<Answer, Denied>) -> Check {
        let id = self.hosts[node].id;
        match answer {
            Ok(Answer::Written(written)) => {
                let position = written.position;
                let stored = self.stored(position);
                ensure(stored > 0, "I9 durable before sent", || format!("{id} acknowledges {position}"))?;
                self.checks.history.acknowledged(position)?;
                self.sides.acknowledged.push((self.now, id));
                self.sides.newest = position;
                self.note(|| format!("{id} has written {position}, call {}", asked.op));
                self.done(asked, Some(id));
            }
            Ok(_) | Err(Denied::Unknown) => self.done(asked, None),
            Err(Denied::Rejected(_)) => self.done(asked, Some(id)),
            Err(denied) => {
                self.checks.refused.refused(Tag { op: asked.op, attempt: 0 })?;
                let hint = match denied {
                    Denied::NotLeader { .. } | Denied::NoLeader => hint(&denied),
                    _ => Some(id),
                };
                self.done(asked, hint);
            }
        }
        Ok(())
    }

    /// The number of disks that have this record, in their log or in their state.
    pub fn stored(&self, at: Position) -> usize {
        let number = self.checks.history.number(at);
        let holds = |disk: &&Durable| {
            let applied = number.is_some_and(|number| disk.snapshot.state.known.holds(number));
            applied || disk.records.iter().any(|record| record.position == at)
        };
        self.hosts.iter().map(|host| &host.disk.durable).filter(holds).count()
    }

    fn done(&mut self, asked: &Asked, hint: Option<NodeId>) {
        if let Some(client) = asked.client.filter(|client| self.sides.clients[*client].op == Some(asked.op)) {
            self.next_of(client, hint);
        }
    }

    /// The client thinks, and then asks for something else, at this node or at any.
    fn next_of(&mut self, client: usize, hint: Option<NodeId>) {
        let target = match hint {
            Some(node) => self.slot(node),
            None => self.sides.rng.below(self.hosts.len() as u64) as usize,
        };
        let (low, high) = self.sides.think;
        let pause = self.sides.rng.range(low, high);
        self.sides.clients[client] = Client { op: None, target };
        self.after(pause, Happens::Side(Event::Wakes { client }));
    }
}
