//! C14: ageing ends a dead holder's lease in spite of failovers, and costs live holders something.

use super::super::Outcome;
use super::{TTL, aged, ages, at, carry_out, ends, fresh, leader_of, refreshes, renewed, role};
use crate::types::{Lease, Span, Time};

#[test]
fn past_half_its_ttl_a_lease_is_aged_once() {
    let mut leases = leader_of(fresh(1));
    assert_eq!(leases.deadline(), at(15_000));
    assert_eq!(carry_out(&mut leases, at(15_000), TTL), ages(&[("a", 1)]));
    assert!(leases.due(at(29_999)).is_empty());
}

#[test]
fn a_lease_renewed_every_third_is_never_aged() {
    let mut leases = leader_of(fresh(1));
    for ms in (10_000..1_000_000).step_by(10_000) {
        assert!(leases.due(at(ms)).is_empty());
        assert_eq!(leases.renew(at(ms), &role("a"), 1, None), renewed(30_000));
    }
}

#[test]
fn an_aged_lease_is_promised_half_until_it_is_young_again() {
    let mut leases = leader_of(aged(1));
    assert_eq!(leases.renew(at(1000), &role("a"), 1, None), renewed(15_000));
    assert_eq!(leases.renew(at(1001), &role("a"), 1, Some(Span::millis(20_000))), renewed(15_000));
    assert_eq!(leases.renew(at(1002), &role("a"), 1, Some(Span::millis(3000))), renewed(3000));
    assert_eq!(leases.deadline(), at(1000), "from the first renewal");

    assert_eq!(leases.due(at(1003)), refreshes(&[("a", 1)]));
    assert_eq!(leases.renew(at(1004), &role("a"), 1, None), renewed(15_000), "not committed yet");
    leases.changed(at(1005), role("a"), Some(fresh(1)));
    leases.settled(at(1005), Outcome::Applied);
    assert_eq!(leases.renew(at(1006), &role("a"), 1, None), renewed(30_000));
    assert_eq!(leases.deadline(), at(16_006), "to be aged again");
}

#[test]
fn a_proposed_ageing_halves_the_promise_until_it_is_decided() {
    let mut leases = leader_of(fresh(1));
    assert_eq!(leases.due(at(15_000)), ages(&[("a", 1)]));
    assert_eq!(leases.renew(at(15_001), &role("a"), 1, None), renewed(15_000));
    leases.settled(at(15_002), Outcome::Refused);
    assert_eq!(leases.renew(at(15_003), &role("a"), 1, None), renewed(30_000));
    assert_eq!(leases.deadline(), at(30_003), "nothing to take back");
}

#[test]
fn a_lease_renewed_while_its_ageing_was_under_way_is_young_at_once() {
    let mut leases = leader_of(fresh(1));
    assert_eq!(leases.due(at(15_000)), ages(&[("a", 1)]));
    leases.renew(at(15_001), &role("a"), 1, None);
    leases.changed(at(15_002), role("a"), Some(aged(1)));
    leases.settled(at(15_002), Outcome::Applied);
    assert_eq!(leases.deadline(), at(15_001));
    assert_eq!(leases.due(at(15_002)), refreshes(&[("a", 1)]));
}

/// The holder's record stands in the log before the ageing, which then takes it back.
#[test]
fn a_record_of_the_holders_own_before_a_proposed_ageing_counts_half() {
    let mut leases = leader_of(fresh(1));
    assert_eq!(leases.due(at(15_000)), ages(&[("a", 1)]));
    leases.changed(at(15_001), role("a"), Some(fresh(1)));
    assert_eq!(leases.left(&role("a"), at(15_001)), Some(Span::millis(15_000)));
    leases.changed(at(15_002), role("a"), Some(aged(1)));
    leases.settled(at(15_002), Outcome::Applied);
    assert_eq!(leases.due(at(15_002)), refreshes(&[("a", 1)]));
    leases.changed(at(15_003), role("a"), Some(fresh(1)));
    leases.settled(at(15_003), Outcome::Applied);
    assert_eq!(leases.left(&role("a"), at(15_003)), Some(Span::millis(14_998)), "no renewal since");
}

#[test]
fn a_refused_ageing_leaves_no_trace() {
    let mut leases = leader_of(fresh(1));
    leases.due(at(15_000));
    leases.renew(at(15_001), &role("a"), 1, None);
    leases.settled(at(15_002), Outcome::Refused);
    leases.renew(at(20_000), &role("a"), 1, None);
    assert_eq!(carry_out(&mut leases, at(35_000), TTL), ages(&[("a", 1)]));
    assert!(leases.due(at(35_001)).is_empty(), "the renewals were before this ageing");
}

#[test]
fn the_odd_microsecond_is_before_the_ageing() {
    let odd = Lease { ttl: Span(1_000_001), ..fresh(1) };
    let mut leases = leader_of(odd);
    assert!(leases.due(Time(500_000)).is_empty());
    assert!(!leases.due(Time(500_001)).is_empty());
}

/// With a new leader every 20 s, the first leader ages a dead holder's 30 s lease, and the second one ends it.
#[test]
fn a_dead_holders_lease_ends_though_leaders_change() {
    let mut leases = leader_of(fresh(1));
    assert_eq!(carry_out(&mut leases, at(15_000), TTL), ages(&[("a", 1)]));
    leases.resign();
    leases.lead(at(20_000), [(role("a"), aged(1))].into_iter());
    assert_eq!(leases.deadline(), at(35_000));
    assert_eq!(leases.due(at(35_000)), ends(&[("a", 1)]));
}

/// A failover at every moment, from just after the renewal to long after.
#[test]
fn no_failover_ends_a_lease_earlier_than_promised() {
    for failover in (5_000..60_000).step_by(100) {
        end_after(fresh(1), failover);
        end_after(aged(1), failover);
    }
}

fn end_after(mut lease: Lease, failover: u64) {
    let mut leases = leader_of(lease);
    let believes_until = at(5_000) + leases.renew(at(5_000), &role("a"), 1, None).unwrap().expires_in;
    for ms in (5_100..failover).step_by(100) {
        let due = carry_out(&mut leases, at(ms), TTL);
        if !due.end.is_empty() {
            assert!(at(ms) >= believes_until);
            return;
        }
        lease.aged = !due.age.is_empty() || (lease.aged && due.refresh.is_empty());
    }
    leases.resign();
    leases.lead(at(failover), [(role("a"), lease)].into_iter());
    let end = at(failover) + leases.left(&role("a"), at(failover)).unwrap();
    assert!(end >= believes_until, "{lease:?}, failover after {failover} ms");
}
