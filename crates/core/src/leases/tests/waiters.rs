//! The order of waiters, and waiters that leave.

use super::super::{Full, Next, Waiter, Waiters};
use super::at;
use crate::types::{Text, Time};

fn waiter(instance: &str, priority: i64, until_ms: u64, ticket: u32) -> Waiter<u32> {
    Waiter { role: Text::from("r"), instance: Text::from(instance), priority, until: at(until_ms), ticket }
}

fn role() -> Text {
    Text::from("r")
}

fn joined(waiting: &[(&str, i64, u64, u32)]) -> Waiters<u32> {
    let mut waiters = Waiters::default();
    for (instance, priority, until_ms, ticket) in waiting {
        assert_eq!(waiters.join(waiter(instance, *priority, *until_ms, *ticket)), Ok(None));
    }
    waiters
}

fn turns(waiters: &mut Waiters<u32>) -> Vec<u32> {
    let mut turns = Vec::new();
    while let Some(best) = waiters.next(at(0), &role(), |_| true).best {
        turns.push(best.ticket);
    }
    turns
}

#[test]
fn the_highest_priority_is_first_then_who_came_first() {
    let mut waiters =
        joined(&[("a", 0, 9, 1), ("b", 5, 9, 2), ("c", -5, 9, 3), ("d", 5, 9, 4), ("e", 0, 9, 5)]);
    assert_eq!(waiters.count(&role()), 5);
    assert_eq!(turns(&mut waiters), [2, 4, 1, 5, 3]);
    assert_eq!((waiters.count(&role()), waiters.deadline()), (0, Time::NEVER));
}

#[test]
fn the_dead_and_the_late_are_dropped_and_handed_back() {
    let mut waiters = joined(&[("a", 0, 100, 1), ("b", 0, 50, 2), ("c", 0, 100, 3), ("d", 0, 100, 4)]);
    let next = waiters.next(at(50), &role(), |ticket| *ticket != 1);
    assert_eq!(next.best.map(|best| best.ticket), Some(3));
    assert_eq!(next.dropped.iter().map(|waiter| waiter.ticket).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(waiters.count(&role()), 1);
    assert_eq!(waiters.deadline(), at(100));
}

#[test]
fn nobody_waits_for_an_unknown_role() {
    let mut waiters = joined(&[("a", 0, 9, 1)]);
    let other = Text::from("other");
    assert_eq!(waiters.next(at(0), &other, |_| true), Next { best: None, dropped: Vec::new() });
    assert_eq!(waiters.count(&other), 0);
}

#[test]
fn a_wait_is_over_at_its_time() {
    let mut waiters = joined(&[("a", 0, 300, 1), ("b", 0, 100, 2), ("c", 9, 200, 3)]);
    assert_eq!(waiters.deadline(), at(100));
    assert!(waiters.expired(at(99)).is_empty());
    let over: Vec<_> = waiters.expired(at(200)).into_iter().map(|waiter| waiter.ticket).collect();
    assert_eq!(over, [2, 3]);
    assert_eq!((waiters.count(&role()), waiters.deadline()), (1, at(300)));
}

#[test]
fn the_same_instance_waits_once_and_keeps_its_turn() {
    let mut waiters = joined(&[("a", 0, 100, 1), ("b", 0, 100, 2)]);
    let replaced = waiters.join(waiter("a", 0, 200, 3));
    assert_eq!(replaced, Ok(Some(waiter("a", 0, 100, 1))));
    assert_eq!(waiters.count(&role()), 2);
    assert!(waiters.expired(at(100)).iter().all(|waiter| waiter.ticket == 2), "its time is the new one");
    assert_eq!(turns(&mut waiters), [3]);

    let mut waiters = joined(&[("a", 0, 100, 1), ("b", 0, 100, 2)]);
    waiters.join(waiter("a", -1, 100, 3)).unwrap();
    assert_eq!(turns(&mut waiters), [2, 3], "its priority is the new one");
}

#[test]
fn the_same_instance_may_wait_for_two_roles() {
    let mut waiters = joined(&[("a", 0, 100, 1)]);
    assert_eq!(waiters.join(Waiter { role: Text::from("s"), ..waiter("a", 0, 100, 2) }), Ok(None));
    assert_eq!((waiters.count(&role()), waiters.count(&Text::from("s"))), (1, 1));
}

#[test]
fn who_leaves_waits_no_more_unless_it_has_come_back() {
    let mut waiters = joined(&[("a", 0, 100, 1)]);
    waiters.join(waiter("a", 0, 100, 2)).unwrap();
    let instance = Text::from("a");
    assert_eq!(waiters.leave(&role(), &instance, |ticket| *ticket == 1), None);
    assert_eq!(waiters.leave(&role(), &instance, |ticket| *ticket == 2), Some(waiter("a", 0, 100, 2)));
    assert_eq!((waiters.count(&role()), waiters.deadline()), (0, Time::NEVER));
}

#[test]
fn one_role_has_a_bound() {
    let mut waiters = Waiters::default();
    for number in 0..1000 {
        waiters.join(waiter(&format!("{number}"), 0, 100, number)).unwrap();
    }
    let refused = waiters.join(waiter("late", 9, 100, 5000)).unwrap_err();
    assert_eq!((refused.full, refused.waiter.ticket), (Full::Role, 5000));
    assert!(waiters.join(waiter("17", 0, 100, 6000)).unwrap().is_some(), "one that replaces its own wait");
    waiters.join(Waiter { role: Text::from("s"), ..waiter("late", 0, 100, 1) }).unwrap();
}

#[test]
fn all_roles_together_have_a_bound() {
    let mut waiters = Waiters::default();
    let of = |role: u32, number: u32| Waiter {
        role: Text::from(format!("{role}")),
        ..waiter(&format!("{number}"), 0, 100, number)
    };
    for number in 0..10_000 {
        waiters.join(of(number % 100, number)).unwrap();
    }
    assert_eq!(waiters.join(of(7, 10_000)).unwrap_err().full, Full::All);
    assert_eq!(waiters.drain().len(), 10_000);
    assert_eq!(waiters.deadline(), Time::NEVER);
    waiters.join(of(7, 10_000)).unwrap();
}
