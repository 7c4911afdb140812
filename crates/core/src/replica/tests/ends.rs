//! Bounds, and the answers when a replica ends.

use super::*;
use crate::replica::End;

#[test]
fn a_bound_counts_what_is_in_the_same_round() {
    let mut solo = Solo::open_with(|settings| settings.limits.uncommitted = 2);
    let calls = solo.round((0..4).map(|key| put(&format!("k{key}"), "1", DocCondition::None)).collect());
    let too_many = |answer: Option<_>| matches!(answer, Some(Err(Denied::TooMany { .. })));
    assert_eq!(calls[2..].iter().filter(|call| too_many(solo.answer(**call))).count(), 2);
    solo.sync();
    let written = |answer: Option<_>| matches!(answer, Some(Ok(Answer::Written(_))));
    assert_eq!(calls[..2].iter().filter(|call| written(solo.answer(**call))).count(), 2);
}

#[test]
fn whoever_calls_behind_a_stop_has_an_answer_before_the_end() {
    let mut solo = Solo::open();
    let write = || put("k", "1", DocCondition::None);
    let read = Call::Read(ReadProof::Round);
    let acquire = acquire("a", Span::millis(1_000), Time(0));
    let calls = solo.round(vec![write(), acquire, Call::Stop, write(), read]);
    assert!(matches!(solo.answer(calls[0]), Some(Err(Denied::Unknown))), "it has reached the round");
    for call in [calls[1], calls[3], calls[4]] {
        assert!(matches!(solo.answer(call), Some(Err(Denied::Stopping))), "nothing of it ever happens");
    }
    assert!(matches!(solo.outs[..], [Out::End(End::Asked)]));
}
