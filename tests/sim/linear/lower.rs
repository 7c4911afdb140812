//! Turns one key's operations into what the search works on: small numbers for values, four kinds of
//! step for all calls and outcomes, and the events in time order.

use super::{Call, Op, Outcome, show};

/// A register's content by number: [`ABSENT`], [`OTHER`], or a value some operation can tell apart.
pub type Val = u32;
pub const ABSENT: Val = 0;
/// Any value that no operation reads, expects or is refused for. Nothing can tell two of them apart.
pub const OTHER: Val = 1;
const FIRST_NAMED: Val = 2;

/// What an operation needs of the register and does to it, given its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<V> {
    /// Whatever it held, it now holds this.
    Set(V),
    /// It held `from` and now holds `to`, which differs.
    Move { from: V, to: V },
    /// It holds this.
    Is(V),
    /// It holds something else.
    Not(V),
}

impl Step<Option<u64>> {
    /// `None` for an operation that constrains nothing and can do nothing.
    fn of(op: &Op) -> Option<Self> {
        let unknown = op.outcome == Outcome::Unknown;
        let refused_comparison = op.outcome == Outcome::Mismatch;
        match (op.call, op.outcome) {
            (_, Outcome::Refused) => None,
            (Call::Read, Outcome::Value(value)) => Some(Step::Is(value)),
            (Call::Read, _) => None,
            (Call::Write(value), _) => Some(Step::Set(Some(value))),
            (Call::Delete, _) => Some(Step::Set(None)),
            (Call::Cas { expect, .. }, _) if refused_comparison => Some(Step::Not(expect)),
            (Call::Create(_), _) if refused_comparison => Some(Step::Not(None)),
            (Call::Cas { expect, new }, _) if expect == Some(new) => {
                (!unknown).then_some(Step::Is(expect))
            }
            (Call::Cas { expect: from, new }, _) => Some(Step::Move {
                from,
                to: Some(new),
            }),
            (Call::Create(new), _) => Some(Step::Move {
                from: None,
                to: Some(new),
            }),
        }
    }

    /// The content that some register could be told apart by.
    fn named(self) -> Option<u64> {
        match self {
            Step::Set(_) => None,
            Step::Move { from: value, .. } | Step::Is(value) | Step::Not(value) => value,
        }
    }

    fn number(self, named: &[u64]) -> Step<Val> {
        let val = |content: Option<u64>| match content {
            None => ABSENT,
            Some(value) => named
                .binary_search(&value)
                .map_or(OTHER, |at| at as Val + FIRST_NAMED),
        };
        match self {
            Step::Set(to) => Step::Set(val(to)),
            Step::Move { from, to } => Step::Move {
                from: val(from),
                to: val(to),
            },
            Step::Is(value) => Step::Is(val(value)),
            Step::Not(value) => Step::Not(val(value)),
        }
    }
}

/// An operation that takes part in the search.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    /// Its place in the history.
    pub op: usize,
    pub step: Step<Val>,
    /// Its outcome is unknown: it may take effect or not.
    pub optional: bool,
    /// Its return, or the last return that could depend on it if it has none.
    pub until: u64,
    /// Its number among the operations open at the same time.
    pub slot: usize,
}

/// At equal times invocations come first, because equal times count as concurrent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Invoke,
    Return,
    /// Nothing can depend on this unknown operation any more.
    Forget,
}

#[derive(Debug)]
pub struct Plan {
    pub items: Vec<Item>,
    /// Time, kind and item.
    pub events: Vec<(u64, Kind, usize)>,
    /// How many slots the items use.
    pub slots: usize,
    named: Vec<u64>,
}

impl Plan {
    /// The plan for the operations of one key, given by their places in the history.
    pub fn new(history: &[Op], ops: &[usize]) -> Plan {
        let step = |&op: &usize| Step::of(&history[op]).map(|step| (op, step));
        let steps: Vec<_> = ops.iter().filter_map(step).collect();
        let mut named: Vec<u64> = steps.iter().filter_map(|(_, step)| step.named()).collect();
        named.sort_unstable();
        named.dedup();
        let number = |(op, step): (usize, Step<Option<u64>>)| Item {
            op,
            step: step.number(&named),
            optional: history[op].returned.is_none(),
            until: history[op].returned.unwrap_or(0),
            slot: 0,
        };
        let mut items: Vec<Item> = steps.into_iter().map(number).collect();
        limit_unknown(history, &mut items, named.len() + FIRST_NAMED as usize);
        let events = events(history, &items);
        let slots = assign_slots(&mut items, &events);
        Plan {
            items,
            events,
            slots,
            named,
        }
    }

    /// How many different contents there are.
    pub fn vals(&self) -> usize {
        self.named.len() + FIRST_NAMED as usize
    }

    /// Contents in words, for people.
    pub fn describe(&self, states: &[Val]) -> String {
        let word = |&state: &Val| match state {
            ABSENT => show(None),
            OTHER => "a value nobody read or expected".into(),
            named => show(Some(self.named[(named - FIRST_NAMED) as usize])),
        };
        states.iter().map(word).collect::<Vec<_>>().join(", ")
    }
}

/// Finds how long each unknown operation can matter, and removes those that never can. An unknown
/// operation is of use only to one that wants the content it leaves, or wants any change at all.
fn limit_unknown(history: &[Op], items: &mut Vec<Item>, vals: usize) {
    let mut wanted: Vec<Option<u64>> = vec![None; vals];
    let mut change: Option<u64> = None;
    for item in items.iter().filter(|item| !item.optional) {
        match item.step {
            Step::Is(from) | Step::Move { from, .. } => {
                wanted[from as usize] = wanted[from as usize].max(Some(item.until));
            }
            Step::Not(_) => change = change.max(Some(item.until)),
            Step::Set(_) => {}
        }
    }
    // An unknown move wants its `from` for as long as its `to` is wanted.
    let mut settled = false;
    while !settled {
        settled = true;
        for item in items.iter().filter(|item| item.optional) {
            if let Step::Move { from, to } = item.step {
                let until = wanted[to as usize].max(change);
                settled &= until <= wanted[from as usize];
                wanted[from as usize] = wanted[from as usize].max(until);
            }
        }
    }
    items.retain_mut(|item| {
        if let (true, Step::Set(to) | Step::Move { to, .. }) = (item.optional, item.step) {
            let until = wanted[to as usize].max(change);
            item.until = until.unwrap_or(0);
            return until >= Some(history[item.op].invoked);
        }
        true
    });
}

fn events(history: &[Op], items: &[Item]) -> Vec<(u64, Kind, usize)> {
    let mut events = Vec::with_capacity(2 * items.len());
    for (index, item) in items.iter().enumerate() {
        let end = if item.optional {
            Kind::Forget
        } else {
            Kind::Return
        };
        events.push((history[item.op].invoked, Kind::Invoke, index));
        events.push((item.until, end, index));
    }
    events.sort_unstable();
    events
}

/// Numbers the items so that those open at one time differ, reusing numbers. Returns how many it took.
fn assign_slots(items: &mut [Item], events: &[(u64, Kind, usize)]) -> usize {
    let (mut spare, mut slots) = (Vec::new(), 0);
    for &(_, kind, item) in events {
        if kind == Kind::Invoke {
            items[item].slot = spare.pop().unwrap_or(slots);
            slots = slots.max(items[item].slot + 1);
        } else {
            spare.push(items[item].slot);
        }
    }
    slots
}
