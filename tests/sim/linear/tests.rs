//! Histories made by hand.

use super::Call::{Cas, Create, Delete, Read, Write};
use super::Outcome::{Done, Mismatch, Refused, Unknown, Value};
use super::reference::linearizable;
use super::{Call, Op, Outcome, Verdict, check, check_within};

/// An operation on key 0 that got an answer.
pub fn op(invoked: u64, returned: u64, call: Call, outcome: Outcome) -> Op {
    Op { client: 0, key: 0, invoked, returned: Some(returned), call, outcome }
}

pub fn lost(invoked: u64, call: Call) -> Op {
    Op { returned: None, ..op(invoked, 0, call, Unknown) }
}

pub fn read(invoked: u64, returned: u64, value: Option<u64>) -> Op {
    op(invoked, returned, Read, Value(value))
}

fn cas(expect: u64, new: u64) -> Call {
    Cas { expect: Some(expect), new }
}

/// Asserts what the search says, and that the reference agrees.
#[track_caller]
pub fn judge(expected: bool, history: &[Op]) {
    assert_eq!(linearizable(history), expected, "the reference, on {history:#?}");
    match check(history) {
        Ok(()) => assert!(expected, "passed {history:#?}"),
        Err(Verdict::Violation(found)) => assert!(!expected, "{}", found.explain),
        Err(other) => panic!("{other}: {history:#?}"),
    }
}

#[test]
fn one_after_another() {
    judge(true, &[]);
    let steps = [
        read(0, 1, None),
        op(2, 3, Create(1), Done),
        op(4, 5, Create(2), Mismatch),
        op(6, 7, cas(1, 3), Done),
        op(8, 9, cas(1, 4), Mismatch),
        read(10, 11, Some(3)),
        op(12, 13, Delete, Done),
        op(14, 15, Cas { expect: None, new: 5 }, Done),
        op(16, 17, Write(6), Done),
        read(18, 19, Some(6)),
    ];
    judge(true, &steps);
    for missing in [1, 3, 6, 8] {
        let mut steps = steps.to_vec();
        steps.remove(missing);
        judge(false, &steps);
    }
}

#[test]
fn stale_and_torn_reads() {
    let writes = [op(0, 1, Write(1), Done), op(2, 9, Write(2), Done)];
    let with = |reads: &[Op]| [&writes, reads].concat();
    judge(true, &with(&[read(3, 4, Some(1)), read(5, 6, Some(2)), read(7, 8, Some(2))]));
    judge(false, &with(&[read(3, 4, Some(2)), read(5, 6, Some(1))]));
    judge(true, &with(&[read(3, 5, Some(2)), read(4, 6, Some(1))]));
    judge(false, &with(&[read(10, 11, Some(1))]));
    judge(false, &with(&[read(3, 4, None)]));
}

#[test]
fn equal_times_are_concurrent() {
    judge(true, &[op(0, 5, Write(1), Done), read(5, 6, None)]);
    judge(false, &[op(0, 5, Write(1), Done), read(6, 6, None)]);
    judge(true, &[read(5, 5, Some(1)), op(5, 5, Write(1), Done), read(5, 5, None)]);
}

#[test]
fn unknown_outcomes() {
    let write = lost(2, Write(2));
    let with = |reads: &[Op]| [&[op(0, 1, Write(1), Done), write], reads].concat();
    judge(true, &with(&[read(3, 4, Some(1)), read(100, 101, Some(1))]));
    judge(true, &with(&[read(3, 4, Some(1)), read(100, 101, Some(2))]));
    judge(false, &with(&[read(3, 4, Some(2)), read(100, 101, Some(1))]));
    judge(false, &[read(0, 1, Some(2)), write]);
    judge(true, &[lost(0, Read)]);
    // No read sees it, and still it is the only explanation.
    judge(true, &[lost(0, Write(9)), op(1, 2, Create(1), Mismatch)]);
    judge(false, &[lost(0, Write(9)), op(1, 2, Create(1), Mismatch), read(3, 4, None)]);
    // A chain of them.
    judge(true, &[lost(0, cas(2, 3)), lost(0, cas(1, 2)), lost(0, Create(1)), read(5, 6, Some(3))]);
    judge(false, &[lost(0, cas(2, 3)), lost(0, Create(1)), read(5, 6, Some(3))]);
}

#[test]
fn refused_operations_leave_no_trace() {
    let refused = |call| op(0, 1, call, Refused);
    judge(true, &[refused(Write(1)), refused(Delete), refused(Read), read(2, 3, None)]);
    judge(false, &[refused(Write(1)), read(2, 3, Some(1))]);
    judge(false, &[refused(Create(1)), op(2, 3, Create(2), Mismatch)]);
}

#[test]
fn a_lock_is_granted_once() {
    judge(false, &[op(0, 9, Create(1), Done), op(0, 9, Create(2), Done)]);
    judge(true, &[op(0, 9, Create(1), Done), op(0, 9, Create(2), Done), op(5, 6, Delete, Done)]);
    judge(false, &[op(0, 3, Create(1), Done), op(0, 3, Create(2), Done), op(5, 6, Delete, Done)]);
    let start = op(0, 1, Write(1), Done);
    judge(false, &[start, op(2, 9, cas(1, 2), Done), op(2, 9, cas(1, 3), Done)]);
    judge(true, &[start, op(2, 9, cas(1, 2), Done), op(2, 9, cas(1, 3), Mismatch)]);
    judge(false, &[start, op(2, 9, cas(1, 2), Mismatch), op(2, 9, cas(1, 3), Mismatch)]);
}

/// A write that has to be placed where it seems not to be needed, because only there it does no harm.
#[test]
fn writes_undone_by_others() {
    let open = [op(0, 1, Write(3), Done), op(2, 20, Write(5), Done)];
    let rest = [op(4, 5, cas(3, 7), Done), read(21, 22, Some(7))];
    judge(false, &[open, rest].concat());
    judge(true, &[&open, &[lost(2, cas(5, 3))][..], &rest].concat());
    judge(true, &[&open, &[lost(2, Write(3))][..], &rest].concat());
    judge(true, &[&open, &[op(2, 30, Write(3), Done)][..], &rest].concat());
    // A write of the value that is there already, unnoticed before the value changes.
    let same = [op(0, 1, Write(5), Done), op(2, 20, Write(5), Done)];
    judge(true, &[same, [op(4, 5, cas(5, 7), Done), read(21, 22, Some(7))]].concat());
}

#[test]
fn a_violation_explains_itself() {
    let key = |key, op| Op { key, ..op };
    let history = [
        key(7, op(0, 1, Write(1), Done)),
        key(3, op(0, 1, Write(1), Done)),
        key(7, op(2, 9, Write(2), Done)),
        key(7, lost(3, Write(4))),
        key(7, op(3, 4, Write(5), Refused)),
        key(7, Op { client: 2, ..read(5, 6, Some(5)) }),
        key(7, read(7, 8, Some(3))),
    ];
    let Err(Verdict::Violation(found)) = check(&history) else { panic!("passed") };
    let text = "key 7: 5 operations have no order explaining the marked one
  client 0 [0, 1] Write(1) -> Done
  client 0 [2, 9] Write(2) -> Done
  client 0 [3, ..] Write(4) -> Unknown
  client 0 [3, 4] Write(5) -> Refused
> client 2 [5, 6] Read -> Value(Some(5))
reachable before it returned: 1, 2, 4";
    assert_eq!((found.key, found.explain.as_str()), (7, text));
}

#[test]
fn senseless_operations_are_errors() {
    let wrong = [
        op(0, 1, Read, Done),
        op(0, 1, Write(1), Value(None)),
        op(0, 1, Delete, Mismatch),
        op(0, 1, Write(1), Unknown),
        op(2, 1, Write(1), Done),
        Op { returned: None, ..op(0, 1, Write(1), Done) },
    ];
    for op in wrong {
        let found = check(&[read(0, 1, None), op]);
        assert!(matches!(found, Err(Verdict::Malformed { op: 1, .. })), "{op:?}: {found:?}");
    }
}

/// Pairs of a write and a read of it that all overlap: which pairs come before each return is open.
fn tangle(pairs: u64) -> Vec<Op> {
    let pair = |at| [op(0, 100 + at, Write(at), Done), read(0, 200 + at, Some(at))];
    (0..pairs).flat_map(pair).collect()
}

#[test]
fn giving_up_is_not_passing() {
    let mut history = tangle(12);
    assert_eq!(check(&history), Ok(()));
    assert_eq!(check_within(&history, 500), Err(Verdict::Undecided { key: 0, steps: 500 }));
    // A certain violation of one key counts for more than doubt about another.
    history.push(Op { key: 1, ..read(0, 1, Some(1)) });
    assert!(matches!(check_within(&history, 500), Err(Verdict::Violation(found)) if found.key == 1));
}
