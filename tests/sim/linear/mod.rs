//! A linearizability checker for registers, one per key.
//!
//! A history says what clients asked, when they asked, when the answer came and what it was. It is
//! linearizable when every operation can be given one instant between its invocation and its return,
//! all instants distinct, so that a single register obeying the operations in that order would have
//! given the same answers. Keys do not interact, so a history is linearizable exactly when each key's
//! part of it is, and each part is searched by itself. The search is costly when much is concurrent on one
//! key; the length of the history hardly matters.
//!
//! # The search
//!
//! This is Wing and Gong's search in Lowe's just-in-time form. The events of a key are walked in time
//! order while a set of *configurations* is kept: which of the open operations have taken effect, and
//! what the register then holds. Two orders leading to the same configuration are one configuration;
//! that is the memoisation which keeps the search small. No operation is placed at an invocation. When an
//! operation returns, each configuration in which it has not yet taken effect is extended with open
//! operations in every order that ends with it; a configuration where that cannot be done is dropped.
//! When none is left, the history up to that return is the shortest prefix with no linearization.
//!
//! A register allows much stronger pruning than an arbitrary object. Call an operation a *look* when
//! it changes nothing (a read, a comparison that failed), a *set* when it changes the register no matter
//! what it held (a write, a delete) and a *move* when it does so from one value only (a comparison that
//! succeeded, a create).
//!
//! * A look is placed as soon as the register satisfies it. Placing it costs no later operation
//!   anything, so the configuration without it can never do better.
//! * A set that was open when another set took effect may be placed just before the other, where no
//!   operation can see it. From then on it is *free*: it may still be placed later, or be taken as already
//!   done. An operation of unknown outcome is free from its invocation, and never has to be done at all.
//! * A set, or a free move, is placed only where it is needed: right before an operation that wants the
//!   value it leaves, or, for a set, at its own return. Where that value is there already, a detour
//!   that comes back to it is tried only if it makes a set free. Among operations that do the same
//!   thing, the one that returns soonest goes first: the others can do later what it could have done.
//! * A configuration is dropped when another with the same register is at least as able: more looks
//!   done, more operations free, otherwise equal. Without this each unknown write could double the
//!   number of configurations. With it, not having spent one is always at least as good.
//! * Contents that no operation still to return reads or expects are one and the same to the search.
//!   An unknown operation is forgotten when every configuration has spent it, or when nothing to come
//!   could need it.
//! * At first only a few configurations are followed, the most promising ones. One that reaches the end
//!   is a linearization, no matter what was left aside. If none does, more are followed, in the end all.
//!
//! # Caveats
//!
//! * The search knows every outcome in advance, also for an operation still open at the end of a
//!   prefix. A reported prefix may therefore rely on an answer that arrived later: a refused write
//!   never explains a read, not even one that returned before the refusal.
//! * `A` precedes `B` only when `A.returned < B.invoked`. With coarse clocks many operations are then
//!   concurrent, and the check is weaker than the system deserves. Give every event its own time.
//! * Two operations of one client are ordered by their times alone, not by being of one client.
//! * Deciding is exponential in the worst case (many clients, few distinct values). The work for a key
//!   is bounded, and hitting the bound is a separate error: nothing passes unproved.
//! * Values need not be unique, but a check on values that repeat proves less: a stale read of a value
//!   that was also written later is no evidence of a fault.

mod front;
mod lower;
#[cfg(test)]
mod random;
#[cfg(test)]
mod reference;
mod table;
#[cfg(test)]
mod tests;
mod wgl;

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use lower::Plan;
use wgl::Halt;

/// A client's request to a register that holds a value or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Write(u64),
    Delete,
    Read,
    /// Replace the content if it is `expect`.
    Cas {
        expect: Option<u64>,
        new: u64,
    },
    /// Write if there is nothing.
    Create(u64),
}

/// The result, as far as the client knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A write, delete, cas or create took effect.
    Done,
    /// A read saw this.
    Value(Option<u64>),
    /// A cas found something other than `expect`, or a create found a value.
    Mismatch,
    /// It may take effect at any time after the invocation, or never.
    Unknown,
    /// It has not taken effect and never will.
    Refused,
}

/// One operation of a history. `returned` is `None` exactly when the outcome is `Unknown`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    pub client: u32,
    pub key: u32,
    pub invoked: u64,
    pub returned: Option<u64>,
    pub call: Call,
    pub outcome: Outcome,
}

/// Proof that a key's history has no linearization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub key: u32,
    /// The shortest prefix (by time) of the key's history that cannot be linearized, an operation a
    /// line, and what the register could have held just before the last return in it.
    pub explain: String,
}

/// Why a history did not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Violation(Violation),
    /// The search was cut off, or thousands of operations were open at once. Nothing is known about
    /// this key.
    Undecided {
        key: u32,
        steps: u64,
    },
    /// Operation number `op` makes no sense on its own. The recorder is at fault, not the system.
    Malformed {
        op: usize,
        why: &'static str,
    },
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Violation(violation) => f.write_str(&violation.explain),
            Verdict::Undecided { key, steps } => {
                write!(f, "key {key}: undecided within {steps} steps")
            }
            Verdict::Malformed { op, why } => write!(f, "operation {op} is malformed: {why}"),
        }
    }
}

impl std::error::Error for Verdict {}

/// Search steps allowed for one key: some tenths of a second. An ordinary history needs a few per
/// operation.
const STEPS_PER_KEY: u64 = 10_000_000;

/// Checks that every key's part of the history is linearizable, starting from an absent value.
pub fn check(history: &[Op]) -> Result<(), Verdict> {
    check_within(history, STEPS_PER_KEY)
}

/// As [`check`], with a chosen bound on the search steps for each key.
pub fn check_within(history: &[Op], steps: u64) -> Result<(), Verdict> {
    for (op, record) in history.iter().enumerate() {
        if let Some(why) = fault(record) {
            return Err(Verdict::Malformed { op, why });
        }
    }
    let mut undecided = None;
    for (key, ops) in by_key(history) {
        let plan = Plan::new(history, &ops);
        match wgl::search(&plan, steps) {
            Ok(()) => {}
            Err(Halt::Stuck { op, states }) => {
                let explain = explain(history, &ops, op, &plan.describe(&states));
                return Err(Verdict::Violation(Violation { key, explain }));
            }
            // A violation of another key says more, so keep looking for one.
            Err(Halt::Exhausted | Halt::Crowded) => undecided = undecided.or(Some(key)),
        }
    }
    undecided.map_or(Ok(()), |key| Err(Verdict::Undecided { key, steps }))
}

fn by_key(history: &[Op]) -> BTreeMap<u32, Vec<usize>> {
    let mut keys: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (index, op) in history.iter().enumerate() {
        keys.entry(op.key).or_default().push(index);
    }
    keys
}

/// The fault of an operation, taken alone. Guessing a meaning could hide a violation.
fn fault(op: &Op) -> Option<&'static str> {
    let unknown = op.outcome == Outcome::Unknown;
    let fits = match op.outcome {
        Outcome::Done => op.call != Call::Read,
        Outcome::Value(_) => op.call == Call::Read,
        Outcome::Mismatch => matches!(op.call, Call::Cas { .. } | Call::Create(_)),
        Outcome::Unknown | Outcome::Refused => true,
    };
    if !fits {
        Some("the outcome does not fit the call")
    } else if unknown != op.returned.is_none() {
        Some("the return time must be missing if and only if the outcome is unknown")
    } else if op.returned.is_some_and(|returned| returned < op.invoked) {
        Some("it returned before it was invoked")
    } else {
        None
    }
}

/// Lists the operations of a key invoked by the time that operation `last` returned.
fn explain(history: &[Op], ops: &[usize], last: usize, states: &str) -> String {
    let end = history[last].returned.unwrap_or(u64::MAX);
    let mut prefix: Vec<usize> = ops.to_vec();
    prefix.retain(|&index| history[index].invoked <= end);
    prefix.sort_by_key(|&index| (history[index].invoked, index));
    let (key, count) = (history[last].key, prefix.len());
    let mut text = format!("key {key}: {count} operations have no order explaining the marked one\n");
    for index in prefix {
        let op = &history[index];
        let mark = if index == last { '>' } else { ' ' };
        let returned = op.returned.map_or("..".into(), |time| time.to_string());
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{mark} client {} [{}, {returned}] {:?} -> {:?}",
            op.client, op.invoked, op.call, op.outcome
        );
    }
    text + "reachable before it returned: " + states
}

/// Spells out a register's content.
fn show(value: Option<u64>) -> String {
    value.map_or("absent".into(), |value| value.to_string())
}
