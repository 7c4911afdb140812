//! Leases that end with a connection (P45).

use super::super::{Leases, Outcome, RenewalVerdict};
use super::{TTL, at, ends, fresh, leader_of, renewed, role};
use crate::types::{Lease, Span};

/// A lease that is tied to connection 7.
fn tied() -> Leases {
    let mut leases = Leases::default();
    leases.changed(at(0), role("a"), Some(fresh(1)));
    leases.name_tie(&role("a"), 1, Some(7));
    leases
}

#[test]
fn it_ends_with_the_connection_that_was_named() {
    let mut leases = tied();
    assert!(leases.untie(at(1000), &role("a"), 1, 7));
    assert_eq!(leases.due(at(1000)), ends(&[("a", 1)]));
    assert_eq!(leases.renewal(&role("a"), 1), RenewalVerdict::Ending, "a renewal waits for that record");
    assert!(leases.untie(at(1001), &role("a"), 1, 7), "it is under way");
}

#[test]
fn one_that_was_replaced_ends_nothing() {
    let mut leases = tied();
    leases.name_tie(&role("a"), 1, Some(8));
    assert!(!leases.untie(at(1000), &role("a"), 1, 7));
    leases.name_tie(&role("a"), 1, Some(7));
    assert!(!leases.untie(at(1000), &role("a"), 1, 7), "a renewal that comes late takes nothing back");
    leases.name_tie(&role("a"), 1, None);
    assert!(!leases.untie(at(1000), &role("a"), 1, 8), "its holder relies on none any more");
    leases.name_tie(&role("a"), 1, Some(8));
    assert!(
        !leases.untie(at(1000), &role("a"), 1, 8),
        "nor does a renewal that comes later than that name it again"
    );
    assert!(!leases.untie(at(1000), &role("a"), 2, 8), "another grant");
    assert!(!leases.untie(at(1000), &role("b"), 1, 8), "nobody's");
    assert!(leases.due(at(1000)).is_empty());
}

/// A holder that wants no tie names a number that is no connection. After a renewal without a number, a late renewal may still name the
/// first tie.
#[test]
fn one_that_comes_late_is_outdone_by_a_greater_number() {
    let mut leases = Leases::default();
    leases.changed(at(0), role("a"), Some(fresh(1)));
    leases.name_tie(&role("a"), 1, Some(u64::MAX));
    leases.name_tie(&role("a"), 1, Some(7));
    assert!(!leases.untie(at(1000), &role("a"), 1, 7));
    let mut leases = Leases::default();
    leases.changed(at(0), role("a"), Some(fresh(1)));
    leases.name_tie(&role("a"), 1, None);
    leases.name_tie(&role("a"), 1, Some(7));
    assert!(leases.untie(at(1000), &role("a"), 1, 7), "nothing but numbers tells which came first");
}

/// The renewal comes before the record that ends the lease is proposed.
#[test]
fn a_renewal_that_overtakes_the_end_keeps_the_lease() {
    let mut leases = tied();
    assert!(leases.untie(at(1000), &role("a"), 1, 7));
    assert_eq!(leases.renew(at(1000), &role("a"), 1, None), renewed(30_000));
    assert!(leases.due(at(1000)).is_empty());
}

#[test]
fn a_later_leader_knows_of_no_tie() {
    let mut leases = tied();
    leases.resign();
    leases.lead(at(10), [(role("a"), fresh(1))].into_iter());
    assert!(!leases.untie(at(1000), &role("a"), 1, 7));
    leases.name_tie(&role("a"), 1, Some(7));
    assert!(leases.untie(at(1001), &role("a"), 1, 7), "until the next renewal");
    assert!(
        leases.due(at(1001)).is_empty(),
        "which may come late: the one before may have been told 8, and promised its ttl"
    );
    assert_eq!(leases.due(at(10) + TTL), ends(&[("a", 1)]));
}

/// The new leader counts the ties that it learns itself, once the promises of the leader before it are over.
#[test]
fn who_outlives_a_leader_is_tied_again() {
    let mut leases = leader_of(fresh(1));
    let later = at(100) + TTL;
    leases.renew(at(1000), &role("a"), 1, None);
    leases.name_tie(&role("a"), 1, Some(7));
    assert!(leases.untie(later, &role("a"), 1, 7));
    assert_eq!(leases.due(later), ends(&[("a", 1)]));
}

/// The promise stands, even if a renewal of the earlier process names a tie. Once the promise is over, that tie counts.
#[test]
fn what_was_promised_to_whoever_asked_anew_stands() {
    let mut leases = tied();
    leases.renew(at(1000), &role("a"), 1, None);
    leases.forget_tie(&role("a"), 1);
    assert!(!leases.untie(at(1001), &role("a"), 1, 7), "nothing is named");
    leases.name_tie(&role("a"), 1, Some(7));
    assert!(leases.untie(at(1002), &role("a"), 1, 7));
    assert!(leases.due(at(1002)).is_empty());
    assert_eq!(leases.due(at(1000) + TTL), ends(&[("a", 1)]));
}

/// The same holds for a promise of a later renewal, because that renewal names no connection.
#[test]
fn what_is_promised_to_whoever_asked_anew_and_names_none_stands() {
    let mut leases = tied();
    leases.forget_tie(&role("a"), 1);
    leases.renew(at(10_000), &role("a"), 1, None);
    leases.name_tie(&role("a"), 1, None);
    leases.name_tie(&role("a"), 1, Some(7));
    assert!(leases.untie(at(10_001), &role("a"), 1, 7));
    let left = leases.left(&role("a"), at(1000) + TTL);
    assert_eq!(left, Some(Span::millis(9_000)), "that was the connection of the process before it");
    assert_eq!(leases.due(at(10_000) + TTL), ends(&[("a", 1)]));
}

/// A restore: the same leader goes on, and keeps the ties that it knows.
#[test]
fn whose_leader_goes_on_stays_tied() {
    let mut leases = tied();
    leases.lead(at(10), [(role("a"), fresh(1))].into_iter());
    assert!(leases.untie(at(1000), &role("a"), 1, 7));
    let mut leases = tied();
    leases.name_tie(&role("a"), 1, None);
    leases.lead(at(10), [(role("a"), fresh(1))].into_iter());
    leases.name_tie(&role("a"), 1, Some(7));
    assert!(!leases.untie(at(1000), &role("a"), 1, 7), "it comes late");
}

#[test]
fn who_asks_anew_is_tied_to_nothing() {
    let mut leases = tied();
    leases.changed(at(10), role("a"), Some(Lease { token: 1, ttl: TTL, aged: false }));
    leases.settled(at(10), Outcome::Applied);
    assert!(!leases.untie(at(1000), &role("a"), 1, 7), "it may be another process under the same name");
}
