//! One reader of the feed.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::timeout;

use super::frame::Frame;
use super::seats::{Filter, NOWHERE, Seat};
use super::shared::{Feed, Shared};
use crate::feed::{Id, Refused, Since};

/// Events that wait for one reader. A reader that lags further reads from what is kept, and nothing waits for it.
const QUEUE_MOST: usize = 256;

/// Events looked through while others wait for the lock.
const LOOKED_AT_MOST: usize = 2048;

/// What a reader is told next.
#[derive(Debug)]
pub enum Next {
    Event(Arc<Frame>),
    /// Everything up to here that concerns it has been told: it may go on from here.
    Bookmark(Id),
    /// Nothing follows.
    Over(Over),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// What comes next for this reader is not kept any more.
    TooSlow,
    /// The node ends.
    Stopping,
}

/// A place among the readers, given back when dropped.
#[derive(Debug)]
struct Place(Arc<Shared>);

#[derive(Debug)]
pub struct Subscription {
    place: Place,
    filter: Filter,
    /// Found in the ring, yet to be told.
    found: VecDeque<Weak<Frame>>,
    stage: Stage,
    /// Whether it has been told where it stands.
    introduced: bool,
}

#[derive(Debug)]
enum Stage {
    /// From this event on it looks for itself. What is in no record is told only to those who were there.
    Reading {
        from: u64,
        all: bool,
    },
    Seated {
        number: u64,
        from: u64,
        queue: mpsc::Receiver<Weak<Frame>>,
        fell_behind: Arc<AtomicU64>,
    },
    Over,
}

impl Feed {
    /// Readers at this node.
    pub fn readers(&self) -> usize {
        self.0.readers.load(Ordering::Relaxed)
    }

    /// How many events are kept for those who come back, and their bytes.
    pub fn kept(&self) -> (usize, usize) {
        self.0.ring().size()
    }

    /// From a place on, or from now on.
    pub fn subscribe(&self, filter: Filter, since: Option<Since>) -> Result<Subscription, Refused> {
        let shared = self.0.clone();
        shared.readers.fetch_add(1, Ordering::Relaxed);
        let place = Place(shared);
        let from = {
            let ring = place.0.ring();
            if !ring.is_open || ring.is_closed {
                return Err(Refused::Closed);
            }
            since.map_or(Ok(ring.next()), |since| ring.find(&since))?
        };
        let stage = Stage::Reading { from, all: false };
        Ok(Subscription { place, filter, found: VecDeque::new(), stage, introduced: false })
    }
}

impl Subscription {
    /// Waits for what comes next; after `silence` without anything it says where the reader stands. Giving this up
    /// half-way loses nothing.
    pub async fn next(&mut self, silence: Duration) -> Next {
        loop {
            if let Some(event) = self.found.pop_front() {
                return self.tell(&event);
            }
            if let Stage::Reading { from, all } = self.stage {
                if let Some(next) = self.read_on(from, all) {
                    return next;
                }
                continue;
            }
            let Stage::Seated { queue, .. } = &mut self.stage else {
                return Next::Over(Over::Stopping);
            };
            match timeout(silence, queue.recv()).await {
                Ok(Some(event)) => return self.tell(&event),
                Ok(None) => self.stand_up(),
                Err(_) => {
                    if let Some(next) = self.bookmark() {
                        return next;
                    }
                }
            }
        }
    }

    fn tell(&mut self, event: &Weak<Frame>) -> Next {
        match event.upgrade() {
            Some(event) => Next::Event(event),
            None => self.end(Over::TooSlow),
        }
    }

    fn end(&mut self, over: Over) -> Next {
        self.leave();
        self.found.clear();
        self.stage = Stage::Over;
        Next::Over(over)
    }

    /// Looks at what is kept, and takes a seat when there is no more of it.
    fn read_on(&mut self, from: u64, all: bool) -> Option<Next> {
        let shared = self.place.0.clone();
        let mut seats = shared.seats();
        let ring = shared.ring();
        let Some(events) = ring.from(from, LOOKED_AT_MOST) else {
            drop((ring, seats));
            return Some(self.end(Over::TooSlow));
        };
        let mut upto = from;
        for event in events {
            upto += 1;
            if self.filter.wants(event) && (all || event.id.is_some()) {
                self.found.push_back(Arc::downgrade(event));
                if self.found.len() == QUEUE_MOST {
                    break;
                }
            }
        }
        if upto < ring.next() || !self.found.is_empty() {
            self.stage = Stage::Reading { from: upto, all };
            return None;
        }
        if ring.is_closed {
            drop((ring, seats));
            return Some(self.end(Over::Stopping));
        }
        if seats.is_empty() {
            seats.next = upto;
        }
        let (sender, queue) = mpsc::channel(QUEUE_MOST);
        let fell_behind = Arc::new(AtomicU64::new(NOWHERE));
        let number = seats.add(&self.filter, |kinds| Seat {
            kinds,
            from: upto,
            queue: sender,
            fell_behind: fell_behind.clone(),
        });
        shared.awaited.store(true, Ordering::Release);
        self.stage = Stage::Seated { number, from: upto, queue, fell_behind };
        let introduced = std::mem::replace(&mut self.introduced, true);
        ring.place_before(upto).filter(|_| !introduced).map(Next::Bookmark)
    }

    /// The queue has ended: it was full, or the node ends.
    fn stand_up(&mut self) {
        let Stage::Seated { fell_behind, .. } = &self.stage else { return };
        let from = fell_behind.load(Ordering::Acquire);
        self.leave();
        self.stage = match from {
            NOWHERE => Stage::Over,
            from => Stage::Reading { from, all: true },
        };
    }

    /// None when it cannot be said just now.
    fn bookmark(&mut self) -> Option<Next> {
        let shared = self.place.0.clone();
        let Stage::Seated { from, queue, .. } = &mut self.stage else { return None };
        let seats = shared.seats();
        // Nothing is handed out meanwhile.
        if let Ok(event) = queue.try_recv() {
            drop(seats);
            return Some(self.tell(&event));
        }
        let place = shared.ring().place_before(seats.next.max(*from));
        place.map(Next::Bookmark)
    }

    fn leave(&self) {
        if let Stage::Seated { number, .. } = &self.stage {
            self.place.0.seats().remove(&self.filter, *number);
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.readers.fetch_sub(1, Ordering::Relaxed);
    }
}
