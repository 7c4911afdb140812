//! One record at a time, and its content.

use super::super::{Leases, Outcome, RenewalVerdict};
use super::{TTL, aged, ages, at, carry_out, ends, fresh, leader_of, role};
use crate::types::{Lease, LeaseName, Span, Time};

fn many(count: u64, lease: impl Fn(u64) -> Lease) -> Leases {
    let mut leases = Leases::default();
    leases.lead(at(0), (0..count).map(|number| (role(&format!("{number:06}")), lease(number))));
    leases
}

#[test]
fn one_record_is_under_way_at_a_time() {
    let state = [(role("a"), aged(1)), (role("b"), fresh(2))];
    let mut leases = Leases::default();
    leases.lead(at(0), state.into_iter());
    assert_eq!(leases.due(at(15_000)), ends(&[("a", 1)]), "ends go first, and alone");
    assert_eq!(leases.deadline(), Time::NEVER);
    assert!(leases.due(at(40_000)).is_empty());
    leases.changed(at(40_000), role("a"), None);
    leases.settled(at(40_000), Outcome::Applied);
    assert_eq!(leases.due(at(40_000)), ends(&[("b", 2)]), "too late to be aged");
}

#[test]
fn a_refused_record_is_due_again_after_a_pause() {
    let mut leases = leader_of(aged(1));
    assert_eq!(leases.due(at(15_000)), ends(&[("a", 1)]));
    leases.settled(at(15_010), Outcome::Refused);
    assert_eq!(leases.deadline(), at(15_060));
    assert!(leases.due(at(15_059)).is_empty());
    assert_eq!(leases.due(at(15_060)), ends(&[("a", 1)]));
}

#[test]
fn a_record_of_unknown_outcome_stays_under_way() {
    let mut leases = leader_of(aged(1));
    leases.due(at(15_000));
    leases.settled(at(15_010), Outcome::Unknown);
    assert_eq!(leases.renewal(&role("a"), 1), RenewalVerdict::Ending);
    assert_eq!(leases.deadline(), Time::NEVER);
}

#[test]
fn what_an_applied_record_left_undone_is_due_again_after_a_pause() {
    let mut leases = leader_of(fresh(1));
    assert_eq!(leases.due(at(15_000)), ages(&[("a", 1)]));
    leases.settled(at(15_010), Outcome::Applied);
    assert_eq!(leases.deadline(), at(15_060));
    assert_eq!(leases.due(at(15_060)), ages(&[("a", 1)]));
}

#[test]
fn a_lease_may_end_by_itself_while_its_record_is_under_way() {
    let mut leases = leader_of(aged(1));
    leases.due(at(15_000));
    leases.changed(at(15_001), role("a"), None);
    assert_eq!(leases.renewal(&role("a"), 1), RenewalVerdict::Lost);
    leases.settled(at(15_002), Outcome::Applied);
    leases.changed(at(15_003), role("a"), Some(fresh(2)));
    assert_eq!(leases.deadline(), at(30_003));
}

#[test]
fn ten_thousand_ends_are_ten_records() {
    let mut leases = many(10_000, aged);
    for _ in 0..10 {
        let due = carry_out(&mut leases, at(15_000), TTL);
        assert_eq!((due.end.len(), due.age.len(), due.refresh.len()), (1000, 0, 0));
    }
    assert_eq!(leases.deadline(), Time::NEVER);
}

#[test]
fn ages_and_refreshes_share_a_record() {
    let mut leases = many(3000, |number| if number < 600 { aged(number) } else { fresh(number) });
    for number in 0..600 {
        leases.renew(at(14_000), &role(&format!("{number:06}")), number, None);
    }
    let sizes = |leases: &mut Leases| {
        let due = carry_out(leases, at(15_000), TTL);
        (due.end.len(), due.age.len(), due.refresh.len())
    };
    assert_eq!(sizes(&mut leases), (0, 400, 600));
    assert_eq!(sizes(&mut leases), (0, 1000, 0));
    assert_eq!(sizes(&mut leases), (0, 1000, 0));
}

#[test]
fn every_due_lease_is_named_with_its_token() {
    let mut leases =
        many(1500, |number| Lease { token: 7 * number, ttl: Span::millis(1000 + number), aged: true });
    let mut seen = Vec::new();
    for _ in 0..2 {
        seen.extend(carry_out(&mut leases, at(100_000), TTL).end);
    }
    let expected: Vec<(LeaseName, u64)> =
        (0..1500).map(|number| (role(&format!("{number:06}")), 7 * number)).collect();
    assert_eq!(seen, expected, "the shortest first");
}

/// The new leader takes all leases over in one sorted pass. A renewal touches one lease.
#[test]
fn a_hundred_thousand_leases_are_taken_over() {
    let mut leases = many(100_000, fresh);
    for number in (0..100_000).step_by(100) {
        leases.renew(at(9_000), &role(&format!("{number:06}")), number, None);
    }
    assert_eq!(leases.due(at(15_000)).age.len(), 1000);
}
