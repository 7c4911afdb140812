//! Who reads along, found by what it asked for: an event is looked up by its name's beginnings, and meets nobody whom it does not
//! concern but those who wait for other kinds under the same prefix.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use tokio::sync::mpsc;

use super::frame::Frame;
use crate::feed::RingEvent;
use crate::replica::{Kind, Kinds};
use crate::types::Text;

/// What a reader wants to be told.
#[derive(Clone, Debug)]
pub struct Filter {
    kinds: Kinds,
    prefix: Text,
}

impl Filter {
    /// Without kinds: all of them, or, under a prefix, all that have a name.
    pub fn new(kinds: Option<Kinds>, prefix: &str) -> Filter {
        let usual = Kind::ALL.into_iter().filter(|kind| prefix.is_empty() || kind.is_named());
        Filter { kinds: kinds.unwrap_or_else(|| Kinds::of(usual)), prefix: prefix.into() }
    }

    pub fn wants(&self, event: &RingEvent) -> bool {
        let named_so = || event.name().is_none_or(|name| name.starts_with(&*self.prefix));
        event.is_for_all() || (self.kinds.has(event.kind()) && named_so())
    }
}

/// The queue to one reader that has read everything so far. It holds no event alive: what a reader has not fetched by
/// the time it is no longer kept is lost to it.
#[derive(Debug)]
pub struct Seat {
    pub kinds: Kinds,
    /// The first event that is news.
    pub from: u64,
    pub queue: mpsc::Sender<Weak<Frame>>,
    /// Where it goes on by itself when the queue was full; `NOWHERE` as long as it was not.
    pub fell_behind: Arc<AtomicU64>,
}

/// No event has this number.
pub const NOWHERE: u64 = u64::MAX;

#[derive(Debug, Default)]
pub struct Seats {
    last: u64,
    /// The number of the next event to be handed out.
    pub next: u64,
    /// By the length of the prefix, then by the prefix.
    by_prefix: BTreeMap<usize, HashMap<Text, BTreeMap<u64, Seat>>>,
    taken: usize,
}

impl Seats {
    pub fn is_empty(&self) -> bool {
        self.taken == 0
    }

    pub fn add(&mut self, filter: &Filter, seat: impl FnOnce(Kinds) -> Seat) -> u64 {
        self.last += 1;
        self.taken += 1;
        let same = self.by_prefix.entry(filter.prefix.len()).or_default();
        same.entry(filter.prefix.clone()).or_default().insert(self.last, seat(filter.kinds));
        self.last
    }

    /// One that fell behind is gone already.
    pub fn remove(&mut self, filter: &Filter, number: u64) {
        let length = filter.prefix.len();
        let Some(same) = self.by_prefix.get_mut(&length) else { return };
        let Some(seats) = same.get_mut(&filter.prefix) else { return };
        self.taken -= usize::from(seats.remove(&number).is_some());
        if seats.is_empty() {
            same.remove(&filter.prefix);
        }
        if same.is_empty() {
            self.by_prefix.remove(&length);
        }
    }

    /// Hands out the next event.
    pub fn hand_out(&mut self, event: &Arc<Frame>) {
        let number = self.next;
        self.next += 1;
        let name = event.name().filter(|_| !event.is_for_all());
        let gone = match name {
            None => {
                let all = self.by_prefix.values_mut().flat_map(HashMap::values_mut);
                all.map(|seats| give(seats, event, number)).sum()
            }
            Some(name) => {
                let mut gone = 0;
                for (length, same) in self.by_prefix.range_mut(..=name.len()) {
                    let seats = name.get(..*length).and_then(|prefix| same.get_mut(prefix));
                    gone += seats.map_or(0, |seats| give(seats, event, number));
                }
                gone
            }
        };
        self.taken -= gone;
    }

    /// Events up to this one are gone before they were handed out: everybody finds that out for itself.
    pub fn lose(&mut self, upto: u64) {
        let next = std::mem::replace(&mut self.next, upto);
        for seat in self.by_prefix.values().flat_map(HashMap::values).flat_map(BTreeMap::values) {
            seat.fell_behind.store(next.max(seat.from), Ordering::Release);
        }
        self.clear();
    }

    /// Queues end, and their readers with them.
    pub fn clear(&mut self) {
        self.by_prefix.clear();
        self.taken = 0;
    }
}

/// Gives an event to those who want it, and says how many are there no more.
fn give(seats: &mut BTreeMap<u64, Seat>, event: &Arc<Frame>, number: u64) -> usize {
    let before = seats.len();
    seats.retain(|_, seat| {
        let wanted = event.is_for_all() || seat.kinds.has(event.kind());
        if !wanted || number < seat.from {
            return true;
        }
        let full = seat.queue.try_send(Arc::downgrade(event)).is_err();
        if full {
            seat.fell_behind.store(number, Ordering::Release);
        }
        !full
    });
    before - seats.len()
}
