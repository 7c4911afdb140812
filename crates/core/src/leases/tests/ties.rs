//! Leases that end with a connection (P45).

use super::super::{Judged, Leases, Outcome};
use super::{TTL, at, ends, fresh, leader_of, renewed, role};
use crate::types::Lease;

/// Tied to connection 7.
fn tied() -> Leases {
    let mut leases = leader_of(fresh(1));
    leases.name_tie(&role("a"), 1, Some(7));
    leases
}

#[test]
fn it_ends_with_the_connection_that_was_named() {
    let mut leases = tied();
    assert!(leases.untie(at(1000), &role("a"), 1, 7));
    assert_eq!(leases.due(at(1000)), ends(&[("a", 1)]));
    assert_eq!(leases.renewal(&role("a"), 1), Judged::Ending, "a renewal waits for that record");
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
    assert!(!leases.untie(at(1000), &role("a"), 1, 8), "nor does a renewal that comes later than that name it again");
    assert!(!leases.untie(at(1000), &role("a"), 2, 8), "another grant");
    assert!(!leases.untie(at(1000), &role("b"), 1, 8), "nobody's");
    assert!(leases.due(at(1000)).is_empty());
}

/// What it renews is what it has not lost yet.
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
}

/// A restore: the same leader goes on, and what it was told it knows.
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
