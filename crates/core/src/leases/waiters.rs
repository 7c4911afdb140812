//! The waiter queues of roles: the highest priority first, then the earliest arrival (P41).
//!
//! A queue knows neither the holder of a role nor when the role becomes free. The replica calls `next` when a record that
//! frees the role has entered the log, and calls `drain` when it no longer leads. The queues are in the leader's memory only:
//! they do not survive a change of leader, and the callers ask the next leader.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::types::{Text, Time, WAITERS_MOST, WAITERS_PER_ROLE_MOST};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiter<T> {
    pub role: Text,
    pub instance: Text,
    /// A higher priority comes first.
    pub priority: i64,
    /// The wait is over at this time.
    pub until: Time,
    /// The data that is needed to answer the call.
    pub ticket: T,
}

/// The first waiter that is alive, and the dead or late waiters before it, which need an answer, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Next<T> {
    pub best: Option<Waiter<T>>,
    pub dropped: Vec<Waiter<T>>,
}

/// No place is left: in the queue of this role, or in all queues together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    Role,
    All,
}

/// A waiter that was refused a place. It is returned, because its call needs an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnedAway<T> {
    pub waiter: Waiter<T>,
    pub full: Full,
}

/// The place in a queue: priority, then the number of the arrival.
type Place = (Reverse<i64>, u64);

#[derive(Clone, Debug)]
struct Line<T> {
    waiting: BTreeMap<Place, Waiter<T>>,
    /// Each instance has one place, because it waits for a role once.
    places: BTreeMap<Text, Place>,
}

#[derive(Clone, Debug)]
pub struct Waiters<T> {
    /// The queue of each role. No queue is empty, so a role that no call waits for takes no memory.
    lines: BTreeMap<Text, Line<T>>,
    /// The time when each wait is over: one entry for each waiter. `insert`, `take` and `expired` keep it so.
    ends: BTreeSet<(Time, Text, Place)>,
    arrivals: u64,
}

impl<T> Default for Waiters<T> {
    fn default() -> Waiters<T> {
        Waiters { lines: BTreeMap::new(), ends: BTreeSet::new(), arrivals: 0 }
    }
}

impl<T> Waiters<T> {
    /// Adds a waiter. Returns the earlier wait of the same instance for the same role, which this one replaces. The new wait
    /// keeps the arrival of the earlier one: an instance that lost its connection and asks again does not go to the back.
    pub fn join(&mut self, waiter: Waiter<T>) -> Result<Option<Waiter<T>>, TurnedAway<T>> {
        // An instance that waits already needs no further place, so it is never turned away.
        let earlier = self.place(&waiter.role, &waiter.instance);
        if let (None, Some(full)) = (earlier, self.full(&waiter.role)) {
            return Err(TurnedAway { waiter, full });
        }
        let arrival = earlier.map_or(self.arrivals, |(_, arrival)| arrival);
        self.arrivals += 1;
        let replaced = earlier.and_then(|place| self.take(&waiter.role, place));
        self.insert((Reverse(waiter.priority), arrival), waiter);
        Ok(replaced)
    }

    /// The role is free. Removes the waiter whose turn it is.
    pub fn next(&mut self, now: Time, role: &Text, mut is_alive: impl FnMut(&T) -> bool) -> Next<T> {
        let mut dropped = Vec::new();
        while let Some(place) = self.first(role) {
            let Some(waiter) = self.take(role, place) else { break };
            if now < waiter.until && is_alive(&waiter.ticket) {
                return Next { best: Some(waiter), dropped };
            }
            dropped.push(waiter);
        }
        Next { best: None, dropped }
    }

    /// Removes the waiters whose time is over.
    pub fn expired(&mut self, now: Time) -> Vec<Waiter<T>> {
        let mut expired = Vec::new();
        while self.deadline() <= now {
            let Some((_, role, place)) = self.ends.pop_first() else { break };
            expired.extend(self.take(&role, place));
        }
        expired
    }

    /// Removes a call that waits no more. `is_it` checks that it is still the same call: another wait of the same instance may have
    /// replaced it.
    pub fn leave(
        &mut self,
        role: &Text,
        instance: &Text,
        is_it: impl FnOnce(&T) -> bool,
    ) -> Option<Waiter<T>> {
        let place = self.place(role, instance)?;
        let waiter = self.lines.get(role)?.waiting.get(&place)?;
        if is_it(&waiter.ticket) { self.take(role, place) } else { None }
    }

    /// Removes all waiters, when this node no longer leads.
    pub fn drain(&mut self) -> Vec<Waiter<T>> {
        let lines = std::mem::take(self).lines;
        lines.into_values().flat_map(|line| line.waiting.into_values()).collect()
    }

    /// The time when the next wait is over.
    pub fn deadline(&self) -> Time {
        self.ends.first().map_or(Time::NEVER, |(until, ..)| *until)
    }

    /// The number of waiters for all roles.
    pub fn waiting(&self) -> usize {
        self.ends.len()
    }

    pub fn count(&self, role: &Text) -> usize {
        self.lines.get(role).map_or(0, |line| line.waiting.len())
    }

    /// The waiters for a role, the next one first.
    pub fn in_order(&self, role: &Text) -> impl Iterator<Item = &Waiter<T>> {
        self.lines.get(role).into_iter().flat_map(|line| line.waiting.values())
    }

    fn full(&self, role: &Text) -> Option<Full> {
        match () {
            () if self.count(role) >= WAITERS_PER_ROLE_MOST => Some(Full::Role),
            () if self.waiting() >= WAITERS_MOST => Some(Full::All),
            () => None,
        }
    }

    fn place(&self, role: &Text, instance: &Text) -> Option<Place> {
        self.lines.get(role)?.places.get(instance).copied()
    }

    fn first(&self, role: &Text) -> Option<Place> {
        self.lines.get(role)?.waiting.keys().next().copied()
    }

    fn insert(&mut self, place: Place, waiter: Waiter<T>) {
        self.ends.insert((waiter.until, waiter.role.clone(), place));
        let empty = || Line { waiting: BTreeMap::new(), places: BTreeMap::new() };
        let line = self.lines.entry(waiter.role.clone()).or_insert_with(empty);
        line.places.insert(waiter.instance.clone(), place);
        line.waiting.insert(place, waiter);
    }

    fn take(&mut self, role: &Text, place: Place) -> Option<Waiter<T>> {
        let line = self.lines.get_mut(role)?;
        let waiter = line.waiting.remove(&place)?;
        line.places.remove(&waiter.instance);
        if line.waiting.is_empty() {
            self.lines.remove(role);
        }
        self.ends.remove(&(waiter.until, waiter.role.clone(), place));
        Some(waiter)
    }
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Full::Role => write!(f, "{WAITERS_PER_ROLE_MOST} instances are already waiting for this role"),
            Full::All => write!(f, "{WAITERS_MOST} instances are already waiting for roles"),
        }
    }
}
