//! Clients: each makes one call at a time, retries where that is safe, and records what it saw.

use eldest::types::NodeId;

use crate::checks::Check;
use crate::commands::{Ask, CHOICES_COUNT, Command, Tag};
use crate::linear;
use crate::rng::Rng;
use crate::world::{Event, World};

/// One attempt at a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    pub client: usize,
    pub tag: Tag,
    pub ask: Ask,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Done,
    Mismatch,
    /// A vote is not allowed as things stand, which says nothing about the user's vote.
    NotAllowed,
    /// There was nothing to delete.
    Missing,
    Value(Option<u64>),
    /// The call is not applied; the answer may name the leader.
    Refused(Option<NodeId>),
    Unknown,
}

/// The call that one client waits for.
#[derive(Clone, Copy, Debug)]
struct Open {
    call: Call,
    invoked: u64,
    /// An attempt got no answer: it may still be applied.
    doubtful: bool,
}

#[derive(Debug, Default)]
struct Client {
    open: Option<Open>,
    target: usize,
}

#[derive(Debug)]
pub struct Clients {
    clients: Vec<Client>,
    rng: Rng,
    next_op: u64,
    next_value: u64,
    keys: u64,
    /// Values that registers held, with their revisions; the newest comes last.
    known: Vec<(u32, u64, u64)>,
    pub history: Vec<linear::Op>,
    /// The times at which each acknowledged write was begun and acknowledged.
    pub writes: Vec<(u64, u64)>,
    pub think: (u64, u64),
    pub patience: u64,
    pub stopped: bool,
    /// Answers are never lost: for figures.
    pub reliable: bool,
    /// Clients only write, and to one key: for figures.
    pub writes_only: bool,
    /// Some clients are users, and vote.
    pub votes: bool,
    /// Some clients ask a node for the state that it has, however old.
    pub looks: bool,
    /// Some clients replace all data. That deletes idempotency keys, so a call that may have taken effect is
    /// not retried.
    pub restores: bool,
}

/// Pairs share the key space of the history with the registers.
const PAIRS: u32 = 1000;
/// So do users, votes, and the election.
const USERS: u32 = 2000;
const VOTES: u32 = 3000;
const ELECTION: u32 = 4000;

impl Clients {
    pub fn new(count: usize, keys: u64, rng: Rng) -> Clients {
        Clients {
            clients: (0..count).map(|_| Client::default()).collect(),
            rng,
            next_op: 0,
            next_value: 0,
            keys,
            known: Vec::new(),
            history: Vec::new(),
            writes: Vec::new(),
            think: (5_000, 60_000),
            patience: 400_000,
            stopped: false,
            reliable: false,
            writes_only: false,
            votes: false,
            looks: false,
            restores: false,
        }
    }

    pub fn count(&self) -> usize {
        self.clients.len()
    }

    fn choose(&mut self) -> Ask {
        let key = self.rng.below(self.keys) as u32;
        self.next_value += 1;
        let value = self.next_value;
        if self.writes_only {
            return Ask::Command(Command::Write { key, value });
        }
        if self.restores && self.rng.chance(25) {
            return Ask::Command(self.restore(value));
        }
        if self.votes && self.rng.chance(400) {
            return self.civic(key, value);
        }
        if self.looks && self.rng.chance(200) {
            return Ask::Look { leader: self.rng.chance(600) };
        }
        match self.rng.below(100) {
            0..30 => Ask::Read { key },
            30..38 => Ask::ReadPair { key },
            38..45 => Ask::Command(Command::Pair { key, value }),
            45..70 => Ask::Command(Command::Write { key, value }),
            70..82 => Ask::Command(self.guess(key, value)),
            82..90 => Ask::Command(Command::Create { key, value }),
            90..95 => Ask::Command(Command::Delete { key }),
            _ => Ask::Command(Command::NewFormat),
        }
    }

    /// A call about users and their votes.
    fn civic(&mut self, key: u32, value: u64) -> Ask {
        match self.rng.below(100) {
            0..20 => Ask::ReadUser { key },
            20..40 => Ask::ReadVote { key },
            40..65 => Ask::Command(Command::AddUser { key, value }),
            65..75 => Ask::Command(Command::RemoveUser { key }),
            75..85 => Ask::Command(Command::AddElection),
            _ => Ask::Command(Command::Vote { key, choice: self.rng.below(CHOICES_COUNT) }),
        }
    }

    fn restore(&mut self, value: u64) -> Command {
        let (registers, pairs) =
            (self.rng.below(1 << self.keys) as u32, self.rng.below(1 << self.keys) as u32);
        Command::Restore { value, registers, pairs }
    }

    /// A register has held this value under this revision.
    pub fn learn(&mut self, key: u32, value: u64, rev: u64) {
        if !self.known.contains(&(key, value, rev)) {
            self.known.push((key, value, rev));
        }
        if self.known.len() > 24 {
            self.known.remove(0);
        }
    }

    /// Replaces a value that the register may hold: one that was seen lately.
    fn guess(&mut self, key: u32, new: u64) -> Command {
        let seen: Vec<_> = self.known.iter().rev().filter(|(known, ..)| *known == key).take(4).collect();
        if seen.is_empty() {
            return Command::Write { key, value: new };
        }
        let (_, expect, rev) = **self.rng.pick(&seen);
        Command::Cas { key, expect, rev, new }
    }

    fn record(&mut self, client: usize, open: Open, now: u64, outcome: linear::Outcome) {
        let (key, call) = match open.call.ask {
            Ask::Read { key } => (key, linear::Call::Read),
            Ask::ReadPair { key } => (PAIRS + key, linear::Call::Read),
            Ask::ReadUser { key } => (USERS + key, linear::Call::Read),
            Ask::ReadVote { key } => (VOTES + key, linear::Call::Read),
            Ask::Look { .. } => return,
            Ask::Command(command) => match command {
                Command::Write { key, value } => (key, linear::Call::Write(value)),
                // The delete found nothing, and did nothing.
                Command::Delete { key } if outcome == linear::Outcome::Value(None) => {
                    (key, linear::Call::Read)
                }
                Command::Delete { key } => (key, linear::Call::Delete),
                Command::Cas { key, expect, new, .. } => {
                    (key, linear::Call::Cas { expect: Some(expect), new })
                }
                Command::Create { key, value } => (key, linear::Call::Create(value)),
                Command::Pair { key, value } => (PAIRS + key, linear::Call::Write(value)),
                Command::AddUser { key, value } => (USERS + key, linear::Call::Create(value)),
                Command::RemoveUser { key } if outcome == linear::Outcome::Value(None) => {
                    (USERS + key, linear::Call::Read)
                }
                Command::RemoveUser { key } => (USERS + key, linear::Call::Delete),
                Command::AddElection => (ELECTION, linear::Call::Create(1)),
                Command::Vote { key, choice } => (VOTES + key, linear::Call::Create(choice)),
                Command::NewFormat => return,
                Command::Restore { value, registers, pairs } => {
                    self.record_restore(open, now, outcome, |key| {
                        let (bits, key) = match key {
                            USERS.. => return linear::Call::Delete,
                            PAIRS.. => (pairs, key - PAIRS),
                            _ => (registers, key),
                        };
                        if bits >> key & 1 == 1 { linear::Call::Write(value) } else { linear::Call::Delete }
                    });
                    return;
                }
            },
        };
        let returned = (outcome != linear::Outcome::Unknown).then_some(now);
        let invoked = open.invoked;
        self.history.push(linear::Op { client: client as u32, key, invoked, returned, call, outcome });
    }
}

impl Clients {
    /// A restore is a write or a delete of every key, at one instant. Another checker makes sure that the
    /// instant is the same for all keys.
    fn record_restore(
        &mut self,
        open: Open,
        now: u64,
        outcome: linear::Outcome,
        leaves: impl Fn(u32) -> linear::Call,
    ) {
        let returned = (outcome != linear::Outcome::Unknown).then_some(now);
        let (client, invoked) = (open.call.client as u32, open.invoked);
        let kinds: &[u32] = if self.votes { &[0, PAIRS, USERS, VOTES] } else { &[0, PAIRS] };
        let election = self.votes.then_some(ELECTION);
        let keys = (0..self.keys as u32).flat_map(|key| kinds.iter().map(move |kind| kind + key));
        for key in keys.chain(election) {
            self.history.push(linear::Op { client, key, invoked, returned, call: leaves(key), outcome });
        }
    }
}

impl World {
    pub fn client_wakes(&mut self, client: usize) {
        if self.clients.stopped || self.clients.clients[client].open.is_some() {
            return;
        }
        let ask = self.clients.choose();
        self.clients.next_op += 1;
        let tag = Tag { op: self.clients.next_op, attempt: 0 };
        let call = Call { client, tag, ask };
        let open = Open { call, invoked: self.now, doubtful: false };
        self.clients.clients[client].open = Some(open);
        self.send_call(call);
    }

    /// Makes one call of a scenario, to this node, once.
    pub fn ask(&mut self, node: NodeId, ask: Ask) {
        self.clients.next_op += 1;
        let tag = Tag { op: self.clients.next_op, attempt: 0 };
        let idle = self.clients.clients.iter().position(|client| client.open.is_none());
        let client = idle.expect("more calls at a time than clients");
        let call = Call { client, tag, ask };
        let open = Open { call, invoked: self.now, doubtful: false };
        let target = self.slot(node);
        self.clients.clients[client] = Client { open: Some(open), target };
        self.send_call(call);
    }

    fn send_call(&mut self, call: Call) {
        let node = self.clients.clients[call.client].target;
        let delay = self.net.delay(&mut self.rng);
        self.after(delay, Event::Call { node, call });
        let patience = self.clients.patience;
        self.after(patience, Event::ClientGivesUp { call });
    }

    /// The open call, if this is about its present attempt.
    fn open(&self, call: Call) -> Option<Open> {
        let open = self.clients.clients[call.client].open?;
        (open.call.tag == call.tag).then_some(open)
    }

    pub fn answer(&mut self, call: Call, answer: Answer) -> Check {
        let Some(mut open) = self.open(call) else {
            return Ok(());
        };
        let outcome = match answer {
            Answer::Done => {
                self.clients.writes.push((open.invoked, self.now));
                linear::Outcome::Done
            }
            // An attempt that was lost may still be applied, no matter how this one was answered.
            Answer::Missing if open.doubtful => linear::Outcome::Unknown,
            Answer::Missing => linear::Outcome::Value(None),
            Answer::Mismatch | Answer::NotAllowed if open.doubtful => linear::Outcome::Unknown,
            Answer::NotAllowed => linear::Outcome::Refused,
            Answer::Mismatch => linear::Outcome::Mismatch,
            Answer::Value(value) => linear::Outcome::Value(value),
            Answer::Refused(leader) => {
                self.aim(call.client, leader);
                return self.try_again_or(open, linear::Outcome::Refused);
            }
            Answer::Unknown => {
                open.doubtful = true;
                return self.try_again_or(open, linear::Outcome::Unknown);
            }
        };
        self.close(open, outcome);
        Ok(())
    }

    fn aim(&mut self, client: usize, leader: Option<NodeId>) {
        let target = match leader {
            Some(leader) => self.slot(leader),
            None => self.rng.below(self.hosts.len() as u64) as usize,
        };
        self.clients.clients[client].target = target;
    }

    pub fn client_gives_up(&mut self, call: Call) {
        if let Some(mut open) = self.open(call) {
            open.doubtful = true;
            self.aim(call.client, None);
            let _ = self.try_again_or(open, linear::Outcome::Unknown);
        }
    }

    /// Tries once more with the same idempotency key, or settles for what is known.
    fn try_again_or(&mut self, mut open: Open, outcome: linear::Outcome) -> Check {
        let tired = open.call.tag.attempt >= 30 || self.clients.rng.chance(60);
        // A restore has no idempotency key, so one that may have been done is not retried.
        let restore = matches!(open.call.ask, Ask::Command(command) if command.is_restore());
        if tired || (restore && open.doubtful) || self.clients.stopped {
            let outcome = if open.doubtful { linear::Outcome::Unknown } else { outcome };
            self.close(open, outcome);
            return Ok(());
        }
        open.call.tag.attempt += 1;
        self.clients.clients[open.call.client].open = Some(open);
        let pause = self.clients.rng.range(1_000, 10_000);
        let call = open.call;
        let node = self.clients.clients[call.client].target;
        self.after(pause, Event::Call { node, call });
        let patience = pause + self.clients.patience;
        self.after(patience, Event::ClientGivesUp { call });
        Ok(())
    }

    fn close(&mut self, open: Open, outcome: linear::Outcome) {
        let client = open.call.client;
        self.clients.clients[client].open = None;
        self.clients.record(client, open, self.now, outcome);
        let think = self.clients.think;
        let pause = self.clients.rng.range(think.0, think.1);
        self.after(pause, Event::ClientWakes { client });
    }

    /// A call that is still open at the end may or may not have happened.
    pub fn close_all(&mut self) {
        for client in 0..self.clients.clients.len() {
            if let Some(open) = self.clients.clients[client].open.take() {
                let now = self.now;
                self.clients.record(client, open, now, linear::Outcome::Unknown);
            }
        }
    }
}
