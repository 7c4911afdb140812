//! The state that the simulated clients see: registers, pairs that change together, tokens, and the
//! idempotency keys. Small, but with every rule that a checker needs.

use std::collections::{BTreeMap, VecDeque};

use eldest::protocol::mutant::{self, Mutant};
use eldest::protocol::next_token;
use eldest::types::{Entry, Format, Index, Payload, Record, Stamp};

use crate::sides::Side;

/// How many idempotency keys are kept: more than clients ever retry.
const KEYS: usize = 400;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    Write {
        key: u32,
        value: u64,
    },
    Delete {
        key: u32,
    },
    Cas {
        key: u32,
        expect: Option<u64>,
        new: u64,
    },
    Create {
        key: u32,
        value: u64,
    },
    /// Both halves of a pair, in one record (P12).
    Pair {
        key: u32,
        value: u64,
    },
    Half {
        key: u32,
        second: bool,
        value: u64,
    },
    Grant {
        role: u32,
    },
}

/// Which call of which client a command is, and which attempt at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tag {
    pub op: u64,
    pub attempt: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Done,
    Mismatch,
    Token(u64),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Store {
    pub applied: Index,
    pub digest: u64,
    pub stamp: Stamp,
    registers: BTreeMap<u32, u64>,
    pairs: BTreeMap<u32, (u64, u64)>,
    pub tokens: BTreeMap<u32, u64>,
    results: BTreeMap<u64, Effect>,
    order: VecDeque<u64>,
    /// Available mode: the product's own state. Of the above only index, digest and stamp are in use then.
    pub side: Option<Box<Side>>,
    /// Leases: the product's own state, in the same way.
    pub product: Option<Box<eldest::store::Store>>,
}

impl Store {
    /// What a node in available mode begins with.
    pub fn with_sides() -> Store {
        Store { side: Some(Box::default()), ..Store::default() }
    }

    /// The state of a node in available mode from now on.
    pub fn of(side: Side, stamp: Stamp) -> Store {
        let (at, digest) = (side.store.applied(), side.store.digest());
        Store { applied: at.index, digest, stamp, side: Some(Box::new(side)), ..Store::default() }
    }

    /// What a node begins with that keeps the product's own state.
    pub fn with_product() -> Store {
        Store { product: Some(Box::default()), ..Store::default() }
    }

    pub fn of_product(product: eldest::store::Store, stamp: Stamp) -> Store {
        let (applied, digest) = (product.applied().index, product.digest());
        Store { applied, digest, stamp, product: Some(Box::new(product)), ..Store::default() }
    }

    pub fn product(&self) -> &eldest::store::Store {
        self.product.as_deref().expect("a node with the product's own state")
    }

    /// What a node of the same kind begins with.
    pub fn blank(&self) -> Store {
        match () {
            () if self.side.is_some() => Store::with_sides(),
            () if self.product.is_some() => Store::with_product(),
            () => Store::default(),
        }
    }

    pub fn register(&self, key: u32) -> Option<u64> {
        self.registers.get(&key).copied()
    }

    pub fn pair(&self, key: u32) -> Option<(u64, u64)> {
        self.pairs.get(&key).copied()
    }

    pub fn result(&self, op: u64) -> Option<Effect> {
        self.results.get(&op).copied()
    }

    /// Applies a committed record. Says what it did, if it was a client's and was not a repetition.
    pub fn apply(&mut self, record: &Record) -> Option<(Tag, Command, Effect)> {
        assert_eq!(record.index(), self.applied + 1, "applied with a gap (I7)");
        self.applied = record.index();
        self.stamp = record.stamp;
        self.mix(record.epoch().counter);
        let Entry::Client(payload) = &record.entry else {
            return None;
        };
        let (tag, command) = decode(payload);
        if self.results.contains_key(&tag.op) {
            return None;
        }
        let effect = self.change(command, record.stamp);
        self.mix(tag.op);
        if !matches!(command, Command::Half { second: false, .. }) {
            self.remember(tag.op, effect);
        }
        Some((tag, command, effect))
    }

    /// Whether a command would change anything: judged before it is written (P14).
    pub fn would_change(&self, command: Command) -> bool {
        match command {
            Command::Cas { key, expect, .. } => self.register(key) == expect,
            Command::Create { key, .. } => self.register(key).is_none(),
            _ => true,
        }
    }

    fn change(&mut self, command: Command, stamp: Stamp) -> Effect {
        if !self.would_change(command) {
            return Effect::Mismatch;
        }
        match command {
            Command::Write { key, value }
            | Command::Create { key, value }
            | Command::Cas { key, new: value, .. } => {
                self.registers.insert(key, value);
                self.mix(value);
            }
            Command::Delete { key } => {
                self.registers.remove(&key);
            }
            Command::Pair { key, value } => {
                self.pairs.insert(key, (value, value));
            }
            Command::Half { key, second, value } => {
                let pair = self.pairs.entry(key).or_default();
                *(if second { &mut pair.1 } else { &mut pair.0 }) = value;
            }
            Command::Grant { role } => {
                let last = self.tokens.get(&role).copied().unwrap_or(0);
                let token = next_token(last, stamp.wall);
                self.tokens.insert(role, token);
                self.mix(token);
                return Effect::Token(token);
            }
        }
        Effect::Done
    }

    fn remember(&mut self, op: u64, effect: Effect) {
        self.results.insert(op, effect);
        self.order.push_back(op);
        if self.order.len() > KEYS
            && let Some(oldest) = self.order.pop_front()
        {
            self.results.remove(&oldest);
        }
    }

    fn mix(&mut self, word: u64) {
        self.digest = (self.digest ^ word).wrapping_mul(0x0000_0100_0000_01B3).rotate_left(17);
    }

    /// What a snapshot keeps of this state.
    pub fn frozen(&self) -> Store {
        let mut frozen = self.clone();
        if mutant::is_on(Mutant::KeysForgotten) {
            frozen.results.clear();
            frozen.order.clear();
        }
        frozen
    }

    /// A bit flips in memory.
    pub fn flip(&mut self) {
        self.digest ^= 1 << 40;
    }
}

pub fn encode(tag: Tag, command: Command, format: Format) -> Payload {
    let text = match command {
        Command::Write { key, value } => format!("w {key} {value}"),
        Command::Delete { key } => format!("d {key}"),
        Command::Cas { key, expect: Some(expect), new } => format!("c {key} {new} {expect}"),
        Command::Cas { key, expect: None, new } => format!("n {key} {new}"),
        Command::Create { key, value } => format!("n {key} {value}"),
        Command::Pair { key, value } => format!("p {key} {value}"),
        Command::Half { key, second, value } => format!("h {key} {value} {}", u8::from(second)),
        Command::Grant { role } => format!("g {role}"),
    };
    let text = format!("{} {} {text}", tag.op, tag.attempt);
    Payload { kind: 100, format, call: None, text: text.into() }
}

pub fn decode(payload: &Payload) -> (Tag, Command) {
    let mut words = payload.text.split(' ');
    let number = |words: &mut std::str::Split<'_, char>| -> u64 {
        words.next().and_then(|word| word.parse().ok()).expect("a number")
    };
    let tag = Tag { op: number(&mut words), attempt: number(&mut words) as u32 };
    let verb = words.next().expect("a verb");
    let key = number(&mut words) as u32;
    let command = match verb {
        "w" => Command::Write { key, value: number(&mut words) },
        "d" => Command::Delete { key },
        "c" => {
            let new = number(&mut words);
            Command::Cas { key, new, expect: Some(number(&mut words)) }
        }
        "n" => Command::Create { key, value: number(&mut words) },
        "p" => Command::Pair { key, value: number(&mut words) },
        "h" => {
            let value = number(&mut words);
            Command::Half { key, value, second: number(&mut words) == 1 }
        }
        _ => Command::Grant { role: key },
    };
    (tag, command)
}
