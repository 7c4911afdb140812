//! A document replaces all data, or surely does not (P46).

use super::*;
use crate::protocol::ServiceChange;
use crate::store::{Guard, Reason, Rule, Steps, merge_steps, restore_steps};
use crate::types::{Entry, Format, Owner, Payload, Record};

const DOCUMENT: &str = r#"{"users":[{"name":"u"}],"docs":[{"key":"k","value":1}]}"#;

fn steps() -> Vec<Payload> {
    restore_steps(DOCUMENT, 7).expect("a good document").steps
}

fn restore(steps: Vec<Payload>) -> Call {
    Call::Restore(steps.into())
}

impl Solo {
    /// The stamp of a record that would be written now.
    fn clock(&self) -> u64 {
        self.replica.core().stamp(at(self.now)).expect("it leads").wall.0
    }

    /// Whether the document is in place.
    fn is_restored(&self) -> bool {
        self.replica.committed().doc("k").is_some()
    }

    /// Runs until the disk has nothing more to do.
    fn rest(&mut self) {
        let mut before = Seq(0);
        while before < self.given {
            before = self.given;
            self.sync();
        }
    }
}

#[test]
fn a_document_is_put_in_place_by_its_last_step() {
    let mut solo = Solo::open();
    let call = solo.call(restore(steps()));
    assert!(solo.answer(call).is_none() && !solo.is_restored());
    solo.rest();
    assert!(matches!(solo.answer(call), Some(Ok(Answer::Written(_)))));
    assert!(solo.is_restored());
}

#[test]
fn one_document_at_a_time() {
    let mut solo = Solo::open();
    let calls = solo.round(vec![restore(steps()), restore(steps())]);
    assert!(matches!(solo.answer(calls[1]), Some(Err(Denied::TooMany { .. }))));
    solo.rest();
    assert!(matches!(solo.answer(calls[0]), Some(Ok(Answer::Written(_)))));
}

/// The answer is the outcome of the last record, and not just that it was written.
#[test]
fn an_end_without_all_parts_puts_nothing_in_place() {
    for all in [steps(), merge_steps(DOCUMENT, 7).expect("a good document").steps] {
        let mut solo = Solo::open();
        let call = solo.call(restore(all[1..].to_vec()));
        solo.rest();
        let answer = solo.answer(call);
        let nothing =
            |denied: &Denied| matches!(denied, Denied::Rejected(why) if why.reason == Reason::NotStaged);
        assert!(matches!(&answer, Some(Err(denied)) if nothing(denied)), "{answer:?}");
        assert!(!solo.is_restored() && !solo.replica.committed().is_restoring());
    }
}

#[test]
fn a_hold_breaks_it_off_and_nothing_is_left() {
    let mut solo = Solo::open();
    let down = ServiceChange::Down { owner: Owner::Operator, ttl: Span::millis(600_000), reason: "".into() };
    let calls = solo.round(vec![restore(steps()), Call::Service(down)]);
    solo.rest();
    assert!(matches!(solo.answer(calls[0]), Some(Err(Denied::ServiceDown { .. }))));
    assert!(solo.replica.core().service_is_down());
    assert!(
        !solo.is_restored() && !solo.replica.committed().is_restoring(),
        "giving up is no client's write"
    );
}

#[test]
fn a_bound_that_is_reached_breaks_it_off_and_nothing_is_left() {
    let mut solo = Solo::open_with(|settings| settings.limits.uncommitted = 2);
    let write = |key: &str| put(key, "1", DocCondition::None);
    let call = solo.call(restore(steps()));
    // When the part is committed, two more writes are under way.
    let others = [solo.call(write("a")), solo.call(write("b"))];
    solo.rest();
    let answer = solo.answer(call);
    let done = matches!(answer, Some(Ok(Answer::Written(_))));
    let refused = matches!(answer, Some(Err(Denied::TooMany { .. })));
    assert!(done == solo.is_restored() && (done || refused), "{answer:?}");
    assert!(others.into_iter().any(|other| solo.answer(other).is_some()));
    assert!(!solo.replica.committed().is_restoring());
}

#[test]
fn an_attempt_has_an_end() {
    let mut solo = Solo::open();
    let call = solo.call(restore(steps()));
    solo.now += Span::millis(10 * 60 * 1_000).0;
    // The disk has been slow: the part is written, and it is too late for the rest.
    solo.rest();
    let answer = solo.answer(call);
    assert!(
        matches!(answer, Some(Err(Denied::GivenUp { .. } | Denied::NoLeader | Denied::NoQuorum))),
        "{answer:?}"
    );
    assert!(!solo.is_restored());
}

#[test]
fn who_ends_in_the_middle_says_what_is_sure() {
    let mut solo = Solo::open();
    let calls = solo.round(vec![restore(steps()), Call::Stop]);
    assert!(matches!(solo.answer(calls[0]), Some(Err(Denied::Stopping))), "its end is in no log");
}

/// A restore with the guard of a backup.
fn guarded(guard: Guard) -> Call {
    Call::Restore(Steps { guard, ..restore_steps(DOCUMENT, 7).expect("a good document") })
}

fn broken(answer: Option<Result<Answer, Denied>>) -> Option<Rule> {
    match answer {
        Some(Err(Denied::Rejected(why))) => match why.reason {
            Reason::RuleViolated(rule) => Some(rule),
            _ => None,
        },
        _ => None,
    }
}

/// P57, I6: otherwise a service that checks tokens would let an older holder in.
#[test]
fn a_clock_behind_the_backup_is_refused_unless_the_tokens_are_known() {
    const MINUTE: u64 = 60_000_000;
    let clock = Solo::open().clock();
    let guard = |token: u64, time: u64| Guard { token, time: WallTime(time), ..Guard::default() };
    let floor = |floor: u64, guard: Guard| Guard { floor: Some(floor), ..guard };
    let own = |guard: Guard| Guard { is_own: true, ..guard };
    // Each case has the guard, and the last token after the restore. `None`: the restore is refused.
    let cases = [
        (guard(0, 0), Some(0)),
        (guard(clock - 1, clock - 1), Some(clock - 1)),
        (guard(clock - MINUTE, clock + MINUTE), None),
        (guard(clock + MINUTE, clock - MINUTE), None),
        (guard(0, clock + MINUTE), None),
        (floor(clock + 2 * MINUTE, guard(clock + MINUTE, clock + MINUTE)), Some(clock + 2 * MINUTE)),
        (floor(7, guard(5, clock + MINUTE)), Some(7)),
        (own(guard(0, clock + MINUTE)), Some(0)),
        (own(guard(clock + MINUTE, clock - MINUTE)), None),
    ];
    for (guard, left) in cases {
        let mut solo = Solo::open();
        let call = solo.call(guarded(guard));
        solo.rest();
        let rule = broken(solo.answer(call));
        assert_eq!(matches!(rule, Some(Rule::TokenAhead { .. })), left.is_none(), "{guard:?}: {rule:?}");
        assert_eq!(solo.is_restored(), left.is_some(), "{guard:?}");
        assert_eq!(solo.replica.committed().last_token(), left.unwrap_or_default(), "{guard:?}");
        assert!(!solo.replica.committed().is_restoring());
    }
}

/// P23: a last step that raises the last token has its own format, and ordinary last steps do not.
#[test]
fn an_end_raises_tokens_only_where_it_has_to() {
    let ends = |solo: &Solo| {
        let records = solo.replica.core().log().records();
        let end = |record: &Record| match &record.entry {
            Entry::Client(payload) if payload.text.contains("parts") => {
                Some((payload.format, payload.text.to_string()))
            }
            _ => None,
        };
        records.filter_map(end).collect::<Vec<_>>()
    };
    let mut solo = Solo::open();
    let clock = solo.clock();
    for floor in [None, Some(clock + 1), Some(clock + 1), Some(3)] {
        let call = solo.call(guarded(Guard { floor, ..Guard::default() }));
        solo.rest();
        assert!(matches!(solo.answer(call), Some(Ok(Answer::Written(_)))));
    }
    let plain = || (Format(1), r#"{"restore":7,"parts":2}"#.to_string());
    let raising = (Format(4), format!("{{\"restore\":7,\"parts\":2,\"token\":{}}}", clock + 1));
    assert_eq!(ends(&solo), [plain(), raising, plain(), plain()]);
}

/// P57: data that is written while the parts are under way counts.
#[test]
fn a_backup_from_elsewhere_replaces_nothing() {
    let elsewhere = Guard { only_if_empty: true, ..Guard::default() };
    let mut solo = Solo::open();
    let calls = solo.round(vec![guarded(elsewhere), put("a", "1", DocCondition::None)]);
    solo.rest();
    assert_eq!(broken(solo.answer(calls[0])), Some(Rule::OtherCluster));
    assert!(!solo.is_restored() && !solo.replica.committed().is_restoring());
    let mut solo = Solo::open();
    let call = solo.call(guarded(elsewhere));
    solo.rest();
    assert!(matches!(solo.answer(call), Some(Ok(Answer::Written(_)))) && solo.is_restored());
}
