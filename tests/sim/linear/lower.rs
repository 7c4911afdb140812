//! Turns one key's operations into what the search works on: small numbers for values, four kinds of
//! step for all calls and outcomes, and the events in time order.

use super::{Call, Op, Outcome, show};

/// A register's content by number.
pub type Val = u32;
pub const ABSENT: Val = 0;
/// Any content that no operation still to return reads or expects. Nothing can tell two of them apart
/// any more.
pub const OTHER: Val = 1;
const FIRST_VALUE: Val = 2;

/// An operation's demand on the register and its effect on it, given its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<V> {
    /// It now holds this, no matter what it held.
    Set(V),
    /// It held `from` and now holds `to`, which differs.
    Move { from: V, to: V },
    /// It holds this.
    Is(V),
    /// It holds something else.
    Not(V),
}

impl<V: Copy> Step<V> {
    /// The content it can be told apart by.
    pub fn named(self) -> Option<V> {
        match self {
            Step::Set(_) => None,
            Step::Move { from: val, .. } | Step::Is(val) | Step::Not(val) => Some(val),
        }
    }

    /// The content it leaves, if it changes that.
    pub fn left(self) -> Option<V> {
        match self {
            Step::Set(to) | Step::Move { to, .. } => Some(to),
            Step::Is(_) | Step::Not(_) => None,
        }
    }

    /// The same, but leaving another content.
    pub fn leaving(self, change: impl Fn(V) -> V) -> Self {
        match self {
            Step::Set(to) => Step::Set(change(to)),
            Step::Move { from, to } => Step::Move { from, to: change(to) },
            look => look,
        }
    }

    fn map<U>(self, val: impl Fn(V) -> U) -> Step<U> {
        match self {
            Step::Set(to) => Step::Set(val(to)),
            Step::Move { from, to } => Step::Move { from: val(from), to: val(to) },
            Step::Is(is) => Step::Is(val(is)),
            Step::Not(not) => Step::Not(val(not)),
        }
    }
}

/// The step of an operation. `None` if it constrains nothing and can do nothing.
fn step(op: &Op) -> Option<Step<Option<u64>>> {
    let unknown = op.outcome == Outcome::Unknown;
    let mismatch = op.outcome == Outcome::Mismatch;
    match (op.call, op.outcome) {
        (_, Outcome::Refused) => None,
        (Call::Read, Outcome::Value(value)) => Some(Step::Is(value)),
        (Call::Read, _) => None,
        (Call::Write(value), _) => Some(Step::Set(Some(value))),
        (Call::Delete, _) => Some(Step::Set(None)),
        (Call::Cas { expect, .. }, _) if mismatch => Some(Step::Not(expect)),
        (Call::Create(_), _) if mismatch => Some(Step::Not(None)),
        // Replacing a value by itself changes nothing.
        (Call::Cas { expect, new }, _) if expect == Some(new) => (!unknown).then_some(Step::Is(expect)),
        (Call::Cas { expect: from, new }, _) => Some(Step::Move { from, to: Some(new) }),
        (Call::Create(new), _) => Some(Step::Move { from: None, to: Some(new) }),
    }
}

/// An operation that takes part in the search.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    /// Its place in the history.
    pub op: usize,
    pub step: Step<Val>,
    /// When it returned. `None` if its outcome is unknown: it may take effect or not.
    pub returned: Option<u64>,
}

/// At equal times invocations come first, because equal times count as concurrent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Invoke,
    Return,
}

#[derive(Debug)]
pub struct Plan {
    pub items: Vec<Item>,
    /// Time, kind and item.
    pub events: Vec<(u64, Kind, usize)>,
    values: Vec<u64>,
}

impl Plan {
    /// The plan for the operations of one key, given by their places in the history.
    pub fn new(history: &[Op], ops: &[usize]) -> Plan {
        let of = |&op: &usize| step(&history[op]).map(|step| (op, step));
        let steps: Vec<_> = ops.iter().filter_map(of).collect();
        let contents = |(_, step): &(usize, Step<_>)| [step.named().flatten(), step.left().flatten()];
        let mut values: Vec<u64> = steps.iter().flat_map(contents).flatten().collect();
        values.sort_unstable();
        values.dedup();
        let number = |content: Option<u64>| match content {
            None => ABSENT,
            Some(value) => values.partition_point(|&other| other < value) as Val + FIRST_VALUE,
        };
        let item = |(op, step): (usize, Step<_>)| Item {
            op,
            step: step.map(number),
            returned: history[op].returned,
        };
        let items: Vec<Item> = steps.into_iter().map(item).collect();
        let events = events(history, &items);
        Plan { items, events, values }
    }

    /// The number of different contents.
    pub fn vals(&self) -> usize {
        self.values.len() + FIRST_VALUE as usize
    }

    /// Contents in words, for people.
    pub fn describe(&self, states: &[Val]) -> String {
        let word = |&state: &Val| match state {
            ABSENT => show(None),
            OTHER => "some other value".into(),
            val => show(Some(self.values[(val - FIRST_VALUE) as usize])),
        };
        let words: Vec<String> = states.iter().map(word).collect();
        words.join(", ")
    }
}

fn events(history: &[Op], items: &[Item]) -> Vec<(u64, Kind, usize)> {
    let mut events = Vec::with_capacity(2 * items.len());
    for (index, item) in items.iter().enumerate() {
        events.push((history[item.op].invoked, Kind::Invoke, index));
        events.extend(item.returned.map(|time| (time, Kind::Return, index)));
    }
    events.sort_unstable();
    events
}
