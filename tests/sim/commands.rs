//! The requests of the simulated clients of safe mode, as calls to the product: registers and pairs are its
//! documents.

use eldest::replica;
use eldest::store::{Command as Order, DocCondition, Ending, Key as Name, Operation, Store};
use eldest::types::{Entry, Format, KeyedCall as Key, Payload, Record, Text};

use serde_json::value::RawValue;

use crate::restores;

/// A request of a client to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    Command(Command),
    Read {
        key: u32,
    },
    ReadPair {
        key: u32,
    },
    ReadUser {
        key: u32,
    },
    ReadVote {
        key: u32,
    },
    /// The state that the node has, however old: it answers as a leader by its lease, or as any node.
    Look {
        leader: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    Write {
        key: u32,
        value: u64,
    },
    Delete {
        key: u32,
    },
    /// `rev` is the revision under which `expect` was written.
    Cas {
        key: u32,
        expect: u64,
        rev: u64,
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
    /// A record in the newest format that the asked node can write (P23).
    NewFormat,
    /// All data is replaced: these registers and pairs then hold the value, and the others hold nothing.
    Restore {
        value: u64,
        registers: u32,
        pairs: u32,
    },
    AddUser {
        key: u32,
        value: u64,
    },
    RemoveUser {
        key: u32,
    },
    /// There is one election, in which users vote.
    AddElection,
    /// The user of this key votes. A user votes only once.
    Vote {
        key: u32,
        choice: u64,
    },
}

/// Identifies a client's call, and the attempt at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tag {
    pub op: u64,
    pub attempt: u32,
}

/// The kinds of a restore's steps. The end of a restore that was never begun changes nothing, and may be of
/// any format.
pub const PART_OF_RESTORE: u16 = 113;
pub const END_OF_RESTORE: u16 = 114;
/// The numbers of restores start here.
const RESTORES: u64 = 1 << 40;
/// More than a call has attempts.
const ATTEMPTS: u64 = 64;

impl Command {
    /// The call that the node gets. Every attempt has the same idempotency key.
    pub fn call(self, tag: Tag, format: Format) -> replica::Call {
        if self == Command::NewFormat {
            let step = |number: u64| Payload {
                kind: END_OF_RESTORE,
                format,
                call: None,
                text: format!("{{\"restore\":{number},\"parts\":0}}").into(),
            };
            let number = tag.op * ATTEMPTS + u64::from(tag.attempt);
            return replica::Call::Restore(vec![step(number)].into());
        }
        if let Command::Restore { .. } = self {
            return restores::call(&self.document(tag), restore_number(tag));
        }
        let command = Box::new(self.order(tag));
        replica::Call::Write { command, key: Some(key(tag)) }
    }

    fn order(self, tag: Tag) -> Order {
        let put = |key: Text, value: u64, condition| {
            let value = format!("[{value},{},{}]", tag.op, tag.attempt).into();
            Operation::PutDoc { key, value, condition, holder: None, ending: Ending::default() }
        };
        match self {
            Command::Write { key, value } => Order::Single(put(register(key), value, DocCondition::None)),
            Command::Create { key, value } => Order::Single(put(register(key), value, DocCondition::Absent)),
            Command::Cas { key, rev, new, .. } => {
                let condition = DocCondition::Rev(rev.to_string().into());
                Order::Single(put(register(key), new, condition))
            }
            Command::Delete { key } => {
                let condition = DocCondition::None;
                Order::Single(Operation::DeleteDoc { key: register(key), condition, holder: None })
            }
            Command::Pair { key, value } => {
                let [first, second] = halves(key);
                let none = DocCondition::None;
                Order::Batch(vec![put(first, value, none.clone()), put(second, value, none)])
            }
            Command::AddUser { key, value } => {
                parsed("CreateUser", format!("{{\"name\":\"{}\",\"value\":[{value}]}}", user(key)))
            }
            Command::RemoveUser { key } => parsed("RemoveUser", format!("{{\"name\":\"{}\"}}", user(key))),
            Command::AddElection => {
                parsed("CreateElection", format!("{{\"name\":\"{ELECTION}\",\"choices\":{CHOICES}}}"))
            }
            Command::Vote { key, choice } => {
                let voter = user(key);
                let vote = format!(
                    "{{\"election_name\":\"{ELECTION}\",\"voter_name\":\"{voter}\",\"choice\":\"{choice}\"}}"
                );
                parsed("VoteElection", vote)
            }
            Command::NewFormat | Command::Restore { .. } => unreachable!("it is no command of the store"),
        }
    }

    /// The whole data that a restore leaves behind.
    pub fn document(self, tag: Tag) -> String {
        let Command::Restore { value, registers, pairs } = self else {
            unreachable!("only a restore has a document");
        };
        let keys = |bits: u32| (0..u32::BITS).filter(move |key| bits >> key & 1 == 1);
        let docs = keys(registers).map(register).chain(keys(pairs).flat_map(halves));
        let value =
            |key: Text| format!("{{\"key\":\"{key}\",\"value\":[{value},{},{}]}}", tag.op, tag.attempt);
        restores::document(tag.op, &docs.map(value).collect::<Vec<_>>())
    }

    /// Whether it takes the one place that a node has for a document.
    pub fn is_restore(self) -> bool {
        matches!(self, Command::Restore { .. } | Command::NewFormat)
    }

    /// The register and the value that it leaves behind, if any.
    pub fn leaves(self) -> Option<(u32, u64)> {
        match self {
            Command::Write { key, value } | Command::Create { key, value } => Some((key, value)),
            Command::Cas { key, new, .. } => Some((key, new)),
            _ => None,
        }
    }
}

const ELECTION: &str = "election";
const CHOICES: &str = "[\"0\",\"1\",\"2\",\"3\"]";
/// The number of choices.
pub const CHOICES_COUNT: u64 = 4;

fn parsed(kind: &str, payload: String) -> Order {
    let payload = RawValue::from_string(payload).expect("JSON");
    Order::parse(kind, &payload).expect("a good command")
}

fn user(key: u32) -> String {
    format!("user{key}")
}

/// The value with which the user of this key was created.
pub fn read_user(store: &Store, key: u32) -> Option<u64> {
    let user = store.value(&Name::User(user(key).into()))?;
    let (_, value) = user.split_once('[')?;
    value.split_once(']')?.0.parse().ok()
}

/// The choice for which the user of this key has voted.
pub fn read_vote(store: &Store, key: u32) -> Option<u64> {
    let vote = store.value(&Name::Vote(format!("[\"{ELECTION}\",\"{}\"]", user(key)).into()))?;
    vote.chars().find_map(|letter| letter.to_digit(10)).map(u64::from)
}

fn register(key: u32) -> Text {
    format!("k{key}").into()
}

fn halves(key: u32) -> [Text; 2] {
    [format!("p{key}/a").into(), format!("p{key}/b").into()]
}

/// A register's value, and the revision that it was written under.
pub fn read(store: &Store, key: u32) -> Option<(u64, u64)> {
    let doc = store.doc(&register(key))?;
    Some((numbers(&doc.value)[0], doc.rev().parse().expect("in safe mode a revision is an index")))
}

/// Both halves of a pair.
pub fn read_pair(store: &Store, key: u32) -> [Option<u64>; 2] {
    halves(key).map(|half| store.doc(&half).map(|doc| numbers(&doc.value)[0]))
}

fn numbers(value: &str) -> Vec<u64> {
    serde_json::from_str(value).expect("a value of these clients")
}

/// The idempotency key of all attempts at an operation.
pub fn key(tag: Tag) -> Key {
    Key { key: u128::from(tag.op), body: tag.op, who: 0 }
}

/// The attempt that wrote this record, if the record says so.
pub fn tag_of(record: &Record) -> Option<Tag> {
    let Entry::Client(payload) = &record.entry else { return None };
    match payload.kind {
        PART_OF_RESTORE => return None,
        END_OF_RESTORE => return tag_of_end(&payload.text),
        _ => {}
    }
    let order = Order::from_payload(payload).expect("a record of these clients");
    let Some(Operation::PutDoc { value, .. }) = order.operations().first() else { return None };
    let numbers = numbers(value);
    Some(Tag { op: numbers[1], attempt: numbers[2] as u32 })
}

pub fn restore_number(tag: Tag) -> u64 {
    RESTORES + tag.op * ATTEMPTS + u64::from(tag.attempt)
}

/// The attempt that ended a restore; `None` if the record only takes back what was staged.
fn tag_of_end(text: &str) -> Option<Tag> {
    let number = restores::number_of(text)?;
    let (number, counts) = match number.checked_sub(RESTORES) {
        Some(number) => (number, !text.ends_with(":0}")),
        None => (number, number > 0),
    };
    counts.then_some(Tag { op: number / ATTEMPTS, attempt: (number % ATTEMPTS) as u32 })
}
