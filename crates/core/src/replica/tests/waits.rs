//! Calls that wait for a role, and callers that have gone.

use super::*;

const TTL: Span = Span::millis(10_000);

fn token(answer: Option<Result<Answer, Denied>>) -> u64 {
    match answer {
        Some(Ok(Answer::Role(granted))) => granted.what.token,
        other => panic!("no grant: {other:?}"),
    }
}

fn if_unheard(answer: Option<Result<Answer, Denied>>) -> Option<Unheard> {
    match answer {
        Some(Ok(Answer::Role(granted))) => granted.if_unheard,
        other => panic!("no grant: {other:?}"),
    }
}

/// `a` has the role, and these instances wait for it.
fn queue(waiting: &[&str]) -> (Solo, u64, Vec<CallId>) {
    let mut solo = Solo::open();
    let first = solo.call(acquire("a", TTL, Time(0)));
    solo.sync();
    let token = token(solo.answer(first));
    let until = Time(u64::MAX / 2);
    let calls = waiting.iter().map(|by| solo.call(acquire(by, TTL, until))).collect();
    (solo, token, calls)
}

#[test]
fn the_first_waiter_is_next_in_the_same_batch() {
    let (mut solo, held, calls) = queue(&["b", "c"]);
    solo.writes.clear();
    solo.call(release("a", held));
    let records: Vec<usize> = solo
        .writes
        .iter()
        .map(|write| match write {
            DiskWrite::Append(records) => records.len(),
            _ => 0,
        })
        .collect();
    assert_eq!(records, [2], "the release, and the grant behind it");
    solo.sync();
    assert!(token(solo.answer(calls[0])) > held);
    assert!(solo.answer(calls[1]).is_none());
}

/// A call that comes later never takes the freed role before a waiter, in whichever order the calls of one round come.
#[test]
fn the_first_waiter_is_next_before_calls_of_the_same_round() {
    let late = || acquire("d", TTL, Time(u64::MAX / 2));
    for release_comes_first in [true, false] {
        let (mut solo, held, calls) = queue(&["b"]);
        let round = match release_comes_first {
            true => vec![release("a", held), late()],
            false => vec![late(), release("a", held)],
        };
        solo.round(round);
        solo.sync();
        assert_eq!(solo.has("r").as_deref(), Some("b"), "release first: {release_comes_first}");
        assert!(token(solo.answer(calls[0])) > held);
    }
}

#[test]
fn whoever_has_gone_leaves_the_queue() {
    let (mut solo, held, calls) = queue(&["b", "c"]);
    solo.feed(In::Gone(calls[0]));
    solo.call(release("a", held));
    solo.sync();
    assert_eq!(solo.has("r").as_deref(), Some("c"));
    assert!(matches!(solo.answer(calls[0]), Some(Err(Denied::Unknown))));
    assert!(token(solo.answer(calls[1])) > held);
}

#[test]
fn what_nobody_heard_of_is_given_back() {
    let (mut solo, held, calls) = queue(&["b", "c"]);
    solo.call(release("a", held));
    solo.sync();
    assert_eq!(solo.has("r").as_deref(), Some("b"));
    let unheard = if_unheard(solo.answer(calls[0])).expect("a grant after a wait");
    solo.feed(In::Unheard(unheard));
    solo.pass(Span::millis(1));
    assert_eq!(solo.has("r").as_deref(), Some("c"), "long before b's ttl");
}

/// The node pauses, and in one step the holder's lease and the wait are over. The waiter gets the role, and its grant can be taken back
/// like any other that came after a wait.
#[test]
fn a_grant_at_the_end_of_a_wait_is_given_back_unheard() {
    let mut solo = Solo::open();
    solo.call(acquire("a", TTL, Time(0)));
    solo.sync();
    let call = solo.call(acquire("b", TTL, Time(solo.now + TTL.0 - 1)));
    solo.now += TTL.0;
    solo.feed(In::Tick);
    solo.sync();
    assert_eq!(solo.has("r").as_deref(), Some("b"));
    let unheard = if_unheard(solo.answer(call)).expect("a grant after a wait");
    solo.feed(In::Unheard(unheard));
    solo.pass(Span::millis(1));
    assert_eq!(solo.has("r"), None, "long before b's ttl");
}

#[test]
fn a_holder_that_did_not_wait_keeps_its_role_until_its_ttl() {
    let mut solo = Solo::open();
    let call = solo.call(acquire("a", TTL, Time(0)));
    solo.sync();
    assert_eq!(if_unheard(solo.answer(call)), None);
    solo.feed(In::Gone(call));
    solo.pass(Span(TTL.0 - 1));
    assert!(solo.has("r").is_some());
    solo.pass(Span::millis(1));
    assert!(solo.has("r").is_none());
}

#[test]
fn those_who_wait_are_told_when_the_node_ends() {
    let (mut solo, _, calls) = queue(&["b"]);
    solo.call(Call::Stop);
    assert!(matches!(solo.answer(calls[0]), Some(Err(Denied::Stopping))));
    assert!(matches!(solo.outs.last(), Some(Out::End(super::super::End::Asked))));
}
