//! The definition of linearizability, tried out in every order. Exponential, and for tests only: it
//! shares neither code nor ideas with the real search, so that they do not share mistakes. It does
//! not even treat keys apart.

use std::collections::BTreeMap;

use super::{Call, Op, Outcome};

type Registers = BTreeMap<u32, u64>;

/// Whether some order of the operations respects real time and explains every outcome.
pub fn linearizable(history: &[Op]) -> bool {
    place(history, &mut vec![false; history.len()], &Registers::new())
}

/// Tries each operation that may come next, and every continuation after it.
fn place(history: &[Op], placed: &mut [bool], registers: &Registers) -> bool {
    let finished = |index: usize| placed[index] || !must_happen(&history[index]);
    if (0..history.len()).all(finished) {
        return true;
    }
    for next in 0..history.len() {
        if placed[next] || !may_come_next(history, placed, next) {
            continue;
        }
        if let Some(after) = obey(registers, &history[next]) {
            placed[next] = true;
            let found = place(history, placed, &after);
            placed[next] = false;
            if found {
                return true;
            }
        }
    }
    false
}

fn must_happen(op: &Op) -> bool {
    !matches!(op.outcome, Outcome::Unknown | Outcome::Refused)
}

/// Whether no operation that is still to be placed returned before this one was invoked.
fn may_come_next(history: &[Op], placed: &[bool], next: usize) -> bool {
    let precedes = |op: &Op| op.returned.is_some_and(|returned| returned < history[next].invoked);
    let waits = |(index, op): (usize, &Op)| !placed[index] && must_happen(op) && precedes(op);
    !history.iter().enumerate().any(waits)
}

/// The registers after an operation with this outcome, if this outcome is possible now.
fn obey(registers: &Registers, op: &Op) -> Option<Registers> {
    if op.outcome == Outcome::Refused {
        return None;
    }
    let held = registers.get(&op.key).copied();
    let (after, answer) = match op.call {
        Call::Write(value) => (Some(value), Outcome::Done),
        Call::Delete => (None, Outcome::Done),
        Call::Read => (held, Outcome::Value(held)),
        Call::Cas { expect, new } if held == expect => (Some(new), Outcome::Done),
        Call::Create(value) if held.is_none() => (Some(value), Outcome::Done),
        Call::Cas { .. } | Call::Create(_) => (held, Outcome::Mismatch),
    };
    if op.outcome != Outcome::Unknown && op.outcome != answer {
        return None;
    }
    let mut next = registers.clone();
    match after {
        Some(value) => next.insert(op.key, value),
        None => next.remove(&op.key),
    };
    Some(next)
}
