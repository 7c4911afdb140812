//! What the loop, the thread that hands out and the readers have in common.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::frame::Frame;
use super::seats::Seats;
use crate::feed::Ring;
use crate::replica::Draft;
use crate::types::{History, Position};

/// Events handed out before others have their turn at the locks.
const HANDED_AT_ONCE: usize = 256;

/// The outside's end. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Feed(pub(super) Arc<Shared>);

#[derive(Debug, Default)]
pub struct Shared {
    /// Locked before the ring, never after it.
    seats: Mutex<Seats>,
    ring: Mutex<Ring<Frame>>,
    /// There is something to hand out.
    news: Condvar,
    /// Whether somebody sits there: else nobody needs waking.
    pub awaited: AtomicBool,
    pub readers: AtomicUsize,
}

impl Shared {
    pub fn seats(&self) -> MutexGuard<'_, Seats> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn ring(&self) -> MutexGuard<'_, Ring<Frame>> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands events out until the writer is gone.
    fn hand_out(&self) {
        loop {
            let upto = {
                let mut seats = self.seats();
                let (news, closed) = self.news(&mut seats);
                if news.is_empty() && closed {
                    return seats.clear();
                }
                news.iter().for_each(|event| seats.hand_out(event));
                self.awaited.store(!seats.is_empty(), Ordering::Release);
                seats.next
            };
            let nothing = |ring: &mut Ring<Frame>| ring.next() <= upto && !ring.is_closed;
            drop(self.news.wait_while(self.ring(), nothing).unwrap_or_else(PoisonError::into_inner));
        }
    }

    fn news(&self, seats: &mut Seats) -> (Vec<Arc<Frame>>, bool) {
        let ring = self.ring();
        if seats.is_empty() {
            seats.next = ring.next();
        }
        if seats.next < ring.first() {
            seats.lose(ring.first());
        }
        let news = ring.from(seats.next, HANDED_AT_ONCE).map(|news| news.cloned().collect());
        (news.unwrap_or_default(), ring.is_closed)
    }
}

/// The loop's end. The feed ends when it is dropped.
#[derive(Debug)]
pub struct Writer {
    shared: Arc<Shared>,
}

/// A feed that tells nothing yet.
pub fn feed() -> (Feed, Writer) {
    let feed = Feed::default();
    let writer = Writer { shared: feed.0.clone() };
    (feed, writer)
}

impl Writer {
    /// Records above this position will be told. `sides`: whether histories may part.
    pub fn open(&self, at: Position, sides: bool, history: History) -> io::Result<()> {
        self.shared.ring().open(at, sides, history);
        let shared = self.shared.clone();
        thread::Builder::new().name("feed".to_string()).spawn(move || shared.hand_out())?;
        Ok(())
    }

    /// The next record that is applied, and what it brought about.
    pub fn record(&self, at: Position, history: History, drafts: Vec<Draft>) {
        self.shared.ring().record(at, history, drafts);
    }

    /// The state has become another one.
    pub fn replaced(&self, at: Position, history: History, changes: Vec<Draft>, last: Draft) {
        self.shared.ring().replaced(at, history, changes, last);
        self.wake();
    }

    /// What is in no record, for those who read along now.
    pub fn passing(&self, draft: Draft) {
        self.shared.ring().passing(draft);
        self.wake();
    }

    /// After records: they are handed out.
    pub fn wake(&self) {
        if self.shared.awaited.load(Ordering::Acquire) {
            self.shared.news.notify_one();
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.shared.ring().is_closed = true;
        self.shared.news.notify_all();
    }
}
