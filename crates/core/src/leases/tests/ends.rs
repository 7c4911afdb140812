//! The end of a lease, and the effect of a renewal.

use super::super::{Leases, Outcome, RenewalVerdict};
use super::{TTL, aged, ages, at, ends, fresh, leader_of, renewed, role};
use crate::types::{Lease, LeaseName, Span, Text, Time};

#[test]
fn a_new_leader_gives_each_lease_its_ttl() {
    let leases = leader_of(fresh(1));
    assert_eq!(leases.left(&role("a"), at(0)), Some(TTL));
    assert_eq!(leases.left(&role("a"), at(29_000)), Some(Span::millis(1000)));
    assert_eq!(leases.left(&role("a"), at(40_000)), Some(Span::ZERO));
    assert_eq!(leases.left(&role("b"), at(0)), None);
}

#[test]
fn a_new_leader_gives_an_aged_lease_half_its_ttl() {
    let mut leases = leader_of(aged(1));
    assert_eq!(leases.deadline(), at(15_000));
    assert!(leases.due(at(14_999)).is_empty());
    assert_eq!(leases.due(at(15_000)), ends(&[("a", 1)]));
}

#[test]
fn a_lease_ends_when_its_ttl_is_over_and_no_earlier() {
    let mut leases = leader_of(fresh(1));
    assert_eq!(leases.due(at(15_000)), ages(&[("a", 1)]));
    leases.changed(at(15_010), role("a"), Some(aged(1)));
    leases.settled(at(15_010), Outcome::Applied);
    assert_eq!(leases.left(&role("a"), at(15_010)), Some(Span::millis(14_990)), "ageing moves no end");
    assert_eq!(leases.deadline(), at(30_000));
    assert!(leases.due(at(29_999)).is_empty());
    assert_eq!(leases.due(at(30_000)), ends(&[("a", 1)]));
    leases.changed(at(30_010), role("a"), None);
    leases.settled(at(30_010), Outcome::Applied);
    assert_eq!((leases.left(&role("a"), at(30_010)), leases.deadline()), (None, Time::NEVER));
}

#[test]
fn a_renewal_puts_the_end_off() {
    let mut leases = leader_of(fresh(1));
    assert_eq!(leases.renew(at(10_000), &role("a"), 1, None), renewed(30_000));
    assert_eq!(leases.deadline(), at(25_000), "to be aged");
    assert_eq!(leases.left(&role("a"), at(10_000)), Some(TTL));
}

#[test]
fn a_renewal_for_less_is_promised_less_and_takes_nothing_back() {
    let mut leases = leader_of(fresh(1));
    assert_eq!(leases.renew(at(10_000), &role("a"), 1, Some(Span::millis(2000))), renewed(2000));
    assert_eq!(leases.left(&role("a"), at(10_000)), Some(Span::millis(20_000)), "the first promise");
    assert_eq!(leases.renew(at(29_000), &role("a"), 1, Some(Span::millis(2000))), renewed(2000));
    assert_eq!(leases.left(&role("a"), at(29_000)), Some(Span::millis(2000)));
}

#[test]
fn a_renewal_for_more_is_promised_what_the_log_says() {
    let mut leases = leader_of(fresh(1));
    assert_eq!(leases.renew(at(10_000), &role("a"), 1, Some(TTL.times(2))), renewed(30_000));
}

#[test]
fn another_token_and_an_unknown_name_are_lost() {
    let mut leases = leader_of(fresh(7));
    assert_eq!(leases.renewal(&role("a"), 7), RenewalVerdict::Renewable);
    assert_eq!(leases.renewal(&role("a"), 6), RenewalVerdict::Lost);
    assert_eq!(leases.renewal(&role("b"), 7), RenewalVerdict::Lost);
    assert_eq!(leases.renewal(&LeaseName::Process(Text::from("a")), 7), RenewalVerdict::Lost);
    assert_eq!(leases.renew(at(1), &role("a"), 6, None), None);
}

#[test]
fn a_renewal_after_the_end_came_due_and_before_it_was_proposed_wins() {
    let mut leases = leader_of(aged(1));
    assert_eq!(leases.deadline(), at(15_000));
    assert_eq!(leases.renew(at(15_500), &role("a"), 1, None), renewed(15_000));
    assert!(leases.due(at(15_600)).end.is_empty());
}

#[test]
fn a_proposed_end_makes_renewals_wait() {
    let mut leases = leader_of(aged(1));
    assert_eq!(leases.due(at(15_000)), ends(&[("a", 1)]));
    assert_eq!(leases.renewal(&role("a"), 1), RenewalVerdict::Ending);
    assert_eq!(leases.renew(at(15_001), &role("a"), 1, None), None);
    assert_eq!(leases.renewal(&role("a"), 2), RenewalVerdict::Lost, "only those of this token");

    leases.settled(at(15_002), Outcome::Refused);
    assert_eq!(leases.renew(at(15_003), &role("a"), 1, None), renewed(15_000));
}

#[test]
fn a_new_token_is_a_new_lease() {
    let mut leases = leader_of(aged(1));
    leases.changed(at(10_000), role("a"), Some(fresh(2)));
    assert_eq!(leases.left(&role("a"), at(10_000)), Some(TTL));
    assert_eq!(leases.renewal(&role("a"), 1), RenewalVerdict::Lost);
    assert_eq!(leases.renew(at(10_001), &role("a"), 2, None), renewed(30_000));
}

#[test]
fn a_token_that_replaces_one_about_to_end_is_not_ending() {
    let mut leases = leader_of(aged(1));
    assert_eq!(leases.due(at(15_000)), ends(&[("a", 1)]));
    leases.changed(at(15_001), role("a"), Some(fresh(2)));
    assert_eq!(leases.renewal(&role("a"), 2), RenewalVerdict::Renewable);
    leases.settled(at(15_002), Outcome::Applied);
    assert_eq!(leases.left(&role("a"), at(15_002)), Some(Span::millis(29_999)));
    assert_eq!(leases.deadline(), at(30_001), "no pause: nothing was left over");
}

#[test]
fn a_longer_ttl_of_the_same_token_counts_at_once() {
    let mut leases = leader_of(fresh(1));
    leases.changed(at(10_000), role("a"), Some(Lease { ttl: TTL.times(2), ..fresh(1) }));
    assert_eq!(leases.left(&role("a"), at(10_000)), Some(TTL.times(2)));
    assert_eq!(leases.deadline(), at(40_000), "to be aged");
    assert_eq!(leases.renew(at(11_000), &role("a"), 1, None), renewed(60_000));
}

#[test]
fn a_record_of_the_holders_own_is_a_renewal() {
    let mut leases = leader_of(aged(1));
    leases.changed(at(10_000), role("a"), Some(fresh(1)));
    assert_eq!(leases.left(&role("a"), at(10_000)), Some(TTL));
    leases.changed(at(20_000), role("a"), Some(fresh(1)));
    assert_eq!(leases.left(&role("a"), at(20_000)), Some(TTL));
    assert_eq!(leases.deadline(), at(35_000), "to be aged");
}

#[test]
fn a_record_of_the_holders_own_before_a_proposed_end_saves_nothing() {
    let mut leases = leader_of(aged(1));
    assert_eq!(leases.due(at(15_000)), ends(&[("a", 1)]));
    leases.changed(at(15_001), role("a"), Some(fresh(1)));
    assert_eq!(leases.left(&role("a"), at(15_001)), Some(Span::ZERO));
    assert_eq!(leases.renewal(&role("a"), 1), RenewalVerdict::Ending);
}

#[test]
fn who_resigns_forgets_everything() {
    let mut leases = leader_of(aged(1));
    leases.due(at(15_000));
    leases.resign();
    assert_eq!((leases.renewal(&role("a"), 1), leases.deadline()), (RenewalVerdict::Lost, Time::NEVER));
    leases.lead(at(20_000), [(role("a"), fresh(1))].into_iter());
    assert_eq!(leases.renewal(&role("a"), 1), RenewalVerdict::Renewable);
    assert_eq!(leases.deadline(), at(35_000));
}

#[test]
fn a_state_that_is_replaced_starts_its_leases_anew_and_keeps_promises() {
    let mut leases = leader_of(fresh(1));
    leases.renew(at(10_000), &role("a"), 1, None);
    let state = [(role("a"), aged(1)), (role("b"), aged(2))];
    leases.lead(at(11_000), state.into_iter());
    assert_eq!(leases.left(&role("a"), at(11_000)), Some(Span::millis(29_000)), "as promised");
    assert_eq!(leases.left(&role("b"), at(11_000)), Some(Span::millis(15_000)));
    leases.lead(at(12_000), [(role("b"), fresh(3))].into_iter());
    assert_eq!(leases.left(&role("a"), at(12_000)), None);
    assert_eq!(leases.left(&role("b"), at(12_000)), Some(TTL), "another token");
}

#[test]
fn a_state_that_is_replaced_leaves_the_record_under_way() {
    let mut leases = leader_of(aged(1));
    assert_eq!(leases.due(at(15_000)), ends(&[("a", 1)]));
    leases.lead(at(15_001), [(role("a"), aged(1))].into_iter());
    assert_eq!(leases.renewal(&role("a"), 1), RenewalVerdict::Ending);
    assert_eq!(leases.deadline(), Time::NEVER);
    leases.settled(at(15_002), Outcome::Refused);
    assert_eq!(leases.renewal(&role("a"), 1), RenewalVerdict::Renewable);
}

#[test]
fn a_node_that_does_not_lead_counts_nothing() {
    let mut leases = Leases::default();
    assert!(leases.due(at(1)).is_empty());
    assert_eq!((leases.deadline(), leases.left(&role("a"), at(1))), (Time::NEVER, None));
}
