//! Random histories: small ones, decided by the reference too, and large ones, for the cost.

use eldest_storage::files::Dice;

use super::Call::{Cas, Create, Delete, Read, Write};
use super::Outcome::{Done, Mismatch, Refused, Unknown, Value};
use super::reference::linearizable;
use super::tests::{judge, lost, op};
use super::{Call, Op, Outcome, Verdict, check, check_within};

struct Rng(Dice);

impl Rng {
    fn new(seed: u64) -> Rng {
        Rng(Dice::new(seed))
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        *self.0.pick(from)
    }

    /// Few values, so that they often repeat.
    fn content(&mut self) -> Option<u64> {
        self.pick(&[None, Some(1), Some(2), Some(3)])
    }

    fn call(&mut self) -> Call {
        let (expect, new) = (self.content(), 1 + self.below(3));
        let cas = Cas { expect, new };
        self.pick(&[Read, Read, Write(new), Write(new), Write(new), Delete, Create(new), cas, cas, cas])
    }
}

/// The answer of a register.
fn obey(held: &mut Option<u64>, call: Call) -> Outcome {
    match call {
        Read => return Value(*held),
        Delete => *held = None,
        Cas { expect, .. } if *held != expect => return Mismatch,
        Create(_) if held.is_some() => return Mismatch,
        Write(new) | Create(new) | Cas { new, .. } => *held = Some(new),
    }
    Done
}

/// A history of a register that is correct, but for this chance of a random outcome.
fn small(rng: &mut Rng, count: u64, percent_tampered: u64) -> Vec<Op> {
    let (mut held, spread) = (None, 1 + rng.below(8));
    let one = |at| {
        let (call, point) = (rng.call(), 10 + 2 * at);
        let (invoked, returned) = (point - rng.below(spread), point + rng.below(spread));
        match rng.below(10) {
            0 => op(invoked, returned, call, Refused),
            1 => lost(invoked, call),
            2 => {
                obey(&mut held, call);
                lost(invoked, call)
            }
            _ => {
                let truth = obey(&mut held, call);
                let lie = match call {
                    Read => Value(rng.content()),
                    Write(_) | Delete => rng.pick(&[Done, Refused]),
                    Cas { .. } | Create(_) => rng.pick(&[Done, Mismatch, Refused]),
                };
                let outcome = if rng.chance(percent_tampered) { lie } else { truth };
                op(invoked, returned, call, outcome)
            }
        }
    };
    (0..count).map(one).collect()
}

/// The history as it was known at some time, with what came to nothing left out.
fn known_at(time: u64, history: &[Op]) -> Vec<Op> {
    let know = |old: &Op| match old.outcome {
        _ if old.invoked > time => None,
        Done if old.returned > Some(time) => Some(lost(old.invoked, old.call)),
        _ if old.returned > Some(time) => None,
        _ => Some(*old),
    };
    history.iter().filter_map(know).collect()
}

/// The first time at which what was known could not be linearized.
fn first_broken(history: &[Op]) -> Option<u64> {
    (0..100).find(|&time| !linearizable(&known_at(time, history)))
}

#[test]
fn agrees_with_the_reference() {
    let (mut rng, mut passed, mut failed) = (Rng::new(1), 0, 0);
    while passed + failed < 40_000 {
        let (count, percent_tampered) = (1 + rng.below(7), rng.pick(&[0, 40, 80]));
        let history = small(&mut rng, count, percent_tampered);
        let expected = linearizable(&history);
        judge(expected, &history);
        *(if expected { &mut passed } else { &mut failed }) += 1;
        if let Err(Verdict::Violation(found)) = check(&history) {
            let end = first_broken(&history).expect("the whole history is");
            let marked = found.explain.lines().find(|line| line.starts_with('>'));
            let ends_there = marked.is_some_and(|line| line.contains(&format!(", {end}]")));
            assert!(ends_there, "should end at {end}: {}", found.explain);
        }
    }
    assert!(passed > 5_000 && failed > 5_000, "{passed} passed, {failed} failed");
}

/// Longer than the reference can do: values come and go, are forgotten and come back.
#[test]
fn correct_histories_of_few_values_pass() {
    let mut rng = Rng::new(2);
    for _ in 0..3_000 {
        let history = small(&mut rng, 60, 0);
        assert_eq!(check(&history), Ok(()), "{history:#?}");
    }
}

/// A correct history of four keys, in which no value is written twice, from clients that each wait for
/// an answer or give up.
fn large(rng: &mut Rng, count: u64, clients: u64, percent_unknown: u64) -> Vec<Op> {
    let mut points = Vec::new();
    let mut clocks = vec![0; clients as usize];
    for new in 1..=count {
        let client = (new % clients) as usize;
        let invoked = clocks[client] + 1 + rng.below(20);
        let mut point = invoked + rng.below(100);
        let returned = point + rng.below(100);
        clocks[client] = returned;
        // The value that a cas expects is filled in later.
        let cas = Cas { expect: None, new };
        let call = rng.pick(&[Read, Read, Write(new), Write(new), Create(new), Delete, cas, cas]);
        let mut op = op(invoked, returned, call, Done);
        (op.client, op.key) = (client as u32, rng.below(4) as u32);
        if rng.chance(percent_unknown) {
            (op.outcome, op.returned) = (Unknown, None);
            point = invoked + rng.below(2_000);
        }
        points.push((point, op));
    }
    points.sort_by_key(|&(point, _)| point);
    let mut ops: Vec<Op> = points.into_iter().map(|(_, op)| op).collect();
    answer(rng, &mut ops);
    ops
}

/// Lets registers answer the operations in this order. Half of the unknown ones never take effect, and
/// half of the comparisons are with a value that was replaced.
fn answer(rng: &mut Rng, ops: &mut [Op]) {
    let (mut held, mut replaced) = ([None; 4], [None; 4]);
    for op in ops {
        let (held, replaced) = (&mut held[op.key as usize], &mut replaced[op.key as usize]);
        if let Cas { expect, .. } = &mut op.call {
            *expect = rng.pick(&[*held, *replaced]);
        }
        let (mut now, unknown) = (*held, op.outcome == Unknown);
        let outcome = obey(&mut now, op.call);
        if now != *held && !(unknown && rng.chance(50)) {
            (*replaced, *held) = (*held, now);
        }
        op.outcome = if unknown { Unknown } else { outcome };
    }
}

#[test]
fn large_histories_are_cheap() {
    for seed in 0..20 {
        for (clients, percent_unknown) in [(5, 5), (10, 5), (10, 40), (20, 10)] {
            let mut history = large(&mut Rng::new(seed), 2_000, clients, percent_unknown);
            assert_eq!(check_within(&history, 200_000), Ok(()), "seed {seed}, {clients} clients");
            // Some read of the second half now saw a value that was never written.
            let is_read = |op: &&mut Op| matches!(op.outcome, Value(_));
            let late = history[1_000..].iter_mut().find(is_read);
            late.expect("there are many").outcome = Value(Some(99_999));
            let found = check_within(&history, 200_000);
            assert!(matches!(found, Err(Verdict::Violation(_))), "seed {seed}: {found:?}");
        }
    }
}
