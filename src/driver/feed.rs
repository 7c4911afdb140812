//! The feed delivers the events of the cluster to its readers, in order.
//!
//! ```text
//!   loop ── FeedWriter ──► Ring ──► hand-out ──► ReaderSeats ──► a bounded queue a reader ──► Subscription
//!                       │                                                              ▲
//!                       └───── what was missed, piece by piece, until there is no more ┘
//! ```
//!
//! The loop only appends to the ring. A separate thread hands events out, so a write costs the same with ten thousand readers as
//! with one. A reader is served from the ring until it has everything, and takes its seat under the same locks (`ReaderSeats`,
//! then `Ring`): so no event is missed between the two, and none comes twice. A reader whose queue is full loses its seat and
//! continues from the ring by itself. If the ring drops an event before the reader has fetched it, the subscription ends and
//! tells the reader why.

use bytes::Bytes;
use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;
use std::{io, thread};
use tokio::sync::mpsc;
use tokio::time::timeout;

pub use crate::feed::{Id, Refused, Since, VALUE_MOST};
use crate::feed::{Ring, RingEvent};
pub use crate::replica::{Draft, Fact, Kind, Kinds, quoted};
use crate::types::{History, Position, Text, WallTime};

/// An event and its text. The text is written once, when the first reader needs it.
#[derive(Debug)]
pub struct Frame {
    event: RingEvent,
    /// Most events are never read: until then the text takes no room.
    text: OnceLock<Box<Written>>,
}

#[derive(Debug)]
struct Written {
    frame: Bytes,
    /// The offset in `frame` at which the JSON begins.
    json: usize,
}

impl Frame {
    /// Returns the event as a server-sent event.
    pub fn frame(&self) -> Bytes {
        self.written().frame.clone()
    }

    /// Returns only the JSON, as one line. The frame ends with an empty line, so the last of its two line ends is left out.
    pub fn line(&self) -> Bytes {
        let Written { frame, json } = self.written();
        frame.slice(*json..frame.len() - 1)
    }

    fn written(&self) -> &Written {
        self.text.get_or_init(|| {
            let mut frame = String::with_capacity(self.size());
            let json = self.write(&mut frame).expect("writing to a String cannot fail");
            Box::new(Written { frame: frame.into(), json })
        })
    }
}

impl From<RingEvent> for Frame {
    fn from(event: RingEvent) -> Frame {
        Frame { event, text: OnceLock::new() }
    }
}

impl Borrow<RingEvent> for Frame {
    fn borrow(&self) -> &RingEvent {
        &self.event
    }
}

impl Deref for Frame {
    type Target = RingEvent;

    fn deref(&self) -> &RingEvent {
        &self.event
    }
}

/// The events that a reader wants.
#[derive(Clone, Debug)]
pub struct Filter {
    kinds: Kinds,
    prefix: Text,
}

impl Filter {
    /// Without `kinds` the filter admits all kinds; if there is a prefix, only those that have a name.
    pub fn new(kinds: Option<Kinds>, prefix: &str) -> Filter {
        let usual = Kind::ALL.into_iter().filter(|kind| prefix.is_empty() || kind.is_named());
        Filter { kinds: kinds.unwrap_or_else(|| Kinds::of(usual)), prefix: prefix.into() }
    }

    /// Some events go to every reader, even one that has asked for other kinds (`is_for_all`). An event without a name passes any
    /// prefix, if the reader has asked for its kind.
    pub fn wants(&self, event: &RingEvent) -> bool {
        let named_so = || event.name().is_none_or(|name| name.starts_with(&*self.prefix));
        event.is_for_all() || (self.kinds.has(event.kind()) && named_so())
    }
}

/// The queue to one reader that has read everything so far. The queue keeps no event alive: an event that the ring drops before the reader
/// has fetched it is lost to the reader.
#[derive(Debug)]
pub struct ReaderSeat {
    pub kinds: Kinds,
    /// The number of the first event that the reader has not read.
    pub from: u64,
    pub queue: mpsc::Sender<Weak<Frame>>,
    /// The number from which the reader continues by itself after its queue was full; `NOWHERE` until then.
    pub fell_behind: Arc<AtomicU64>,
}

/// No event has this number.
pub const NOWHERE: u64 = u64::MAX;

/// The reader seats, grouped by prefix. The readers of an event are looked up by the prefixes of its name; among these, readers
/// that want other kinds are skipped.
#[derive(Debug, Default)]
pub struct ReaderSeats {
    last: u64,
    /// The number of the next event to be handed out.
    pub next: u64,
    /// Seats by the length of the prefix, then by the prefix. Handing out an event with a name costs one lookup for each length
    /// of prefix in use.
    by_prefix: BTreeMap<usize, HashMap<Text, BTreeMap<u64, ReaderSeat>>>,
    taken: usize,
}

impl ReaderSeats {
    pub fn is_empty(&self) -> bool {
        self.taken == 0
    }

    pub fn add(&mut self, filter: &Filter, seat: impl FnOnce(Kinds) -> ReaderSeat) -> u64 {
        self.last += 1;
        self.taken += 1;
        let same = self.by_prefix.entry(filter.prefix.len()).or_default();
        same.entry(filter.prefix.clone()).or_default().insert(self.last, seat(filter.kinds));
        self.last
    }

    /// Removes a seat. A reader that fell behind has lost its seat already.
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
                    // A length that ends within a character gives None: no reader's prefix is that text.
                    let seats = name.get(..*length).and_then(|prefix| same.get_mut(prefix));
                    gone += seats.map_or(0, |seats| give(seats, event, number));
                }
                gone
            }
        };
        self.taken -= gone;
    }

    /// The events before number `upto` were dropped before they were handed out: each reader notices this by itself.
    pub fn lose(&mut self, upto: u64) {
        let next = std::mem::replace(&mut self.next, upto);
        for seat in self.by_prefix.values().flat_map(HashMap::values).flat_map(BTreeMap::values) {
            // A reader that took its seat for later events has read the ones before from the ring.
            seat.fell_behind.store(next.max(seat.from), Ordering::Release);
        }
        self.clear();
    }

    /// Drops all queues, which ends their readers.
    pub fn clear(&mut self) {
        self.by_prefix.clear();
        self.taken = 0;
    }
}

/// Gives an event to the readers that want it, and returns the number of seats that were removed.
fn give(seats: &mut BTreeMap<u64, ReaderSeat>, event: &Arc<Frame>, number: u64) -> usize {
    let before = seats.len();
    seats.retain(|_, seat| {
        let wanted = event.is_for_all() || seat.kinds.has(event.kind());
        // The hand-out lags behind the ring, so a reader may have read this event there before it took its seat.
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

/// The number of events handed out before other threads get the locks.
const EVENTS_PER_LOCK: usize = 256;

/// The feed as the rest of the process sees it. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Feed(pub(super) Arc<Shared>);

/// The state that the loop, the thread that hands out, and the readers share.
#[derive(Debug, Default)]
pub struct Shared {
    /// Locked before the ring, never after it: `read_on` and `news` hold both locks at once, and would deadlock in different
    /// orders.
    seats: Mutex<ReaderSeats>,
    ring: Mutex<Ring<Frame>>,
    /// Signals that there are events to hand out.
    news: Condvar,
    /// Whether any seat is taken: if not, no thread needs to be woken. A reader sets it while it holds both locks, so the next
    /// append sees it and wakes the thread.
    pub awaited: AtomicBool,
    pub readers: AtomicUsize,
}

impl Shared {
    pub fn seats(&self) -> MutexGuard<'_, ReaderSeats> {
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
            // The condition is checked under the lock that every append takes. An event that comes between the hand-out and this
            // wait is seen, even if no wake-up follows.
            let nothing = |ring: &mut Ring<Frame>| ring.next() <= upto && !ring.is_closed;
            drop(self.news.wait_while(self.ring(), nothing).unwrap_or_else(PoisonError::into_inner));
        }
    }

    fn news(&self, seats: &mut ReaderSeats) -> (Vec<Arc<Frame>>, bool) {
        let ring = self.ring();
        // With no seat taken these events may be skipped: every reader reads from the ring before it takes a seat.
        if seats.is_empty() {
            seats.next = ring.next();
        }
        if seats.next < ring.first() {
            seats.lose(ring.first());
        }
        let news = ring.from(seats.next, EVENTS_PER_LOCK).map(|news| news.cloned().collect());
        (news.unwrap_or_default(), ring.is_closed)
    }
}

/// The loop's side of the feed. The feed ends when this is dropped.
#[derive(Debug)]
pub struct FeedWriter {
    shared: Arc<Shared>,
}

/// Creates a feed that delivers no events yet.
pub fn feed() -> (Feed, FeedWriter) {
    let feed = Feed::default();
    let writer = FeedWriter { shared: feed.0.clone() };
    (feed, writer)
}

impl FeedWriter {
    /// Opens the feed for records above this position. `sides`: whether histories may part.
    pub fn open(&self, at: Position, sides: bool, history: History) -> io::Result<()> {
        self.shared.ring().open(at, sides, history);
        let shared = self.shared.clone();
        thread::Builder::new().name("feed".to_string()).spawn(move || shared.hand_out())?;
        Ok(())
    }

    /// Appends the next applied record, and the events that it caused. A record without events is appended, too: a place in the
    /// feed is an index, and the ring must know how far this node has come.
    /// `wall` is when the record was written.
    pub fn record(&self, at: Position, history: History, wall: WallTime, drafts: Vec<Draft>) {
        self.shared.ring().record(at, history, wall, drafts);
    }

    /// Another state has replaced the state of this node.
    pub fn replaced(&self, at: Position, history: History, changes: Vec<Draft>, last: Draft) {
        self.shared.ring().replaced(at, history, changes, last);
        self.wake();
    }

    /// Appends an event that is in no record. Only current readers get it.
    pub fn passing(&self, wall: WallTime, draft: Draft) {
        self.shared.ring().passing(wall, draft);
        self.wake();
    }

    /// Wakes the thread that hands out, after records were appended.
    pub fn wake(&self) {
        if self.shared.awaited.load(Ordering::Acquire) {
            self.shared.news.notify_one();
        }
    }
}

impl Drop for FeedWriter {
    fn drop(&mut self) {
        self.shared.ring().is_closed = true;
        self.shared.news.notify_all();
    }
}

/// The maximum number of events that wait for one reader. A slower reader reads from the ring, and nothing waits for it.
const QUEUE_MOST: usize = 256;

/// The number of events that are searched while other threads wait for the lock. Beyond it the reader releases the locks, and
/// then continues from there.
const LOOKED_AT_MOST: usize = 2048;

/// The next item for a reader.
#[derive(Debug)]
pub enum Next {
    Event(Arc<Frame>),
    /// All matching events up to this id have been delivered: the reader may resume from here.
    Bookmark(Id),
    /// The subscription is over.
    Over(Over),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// The next events for this reader are no longer kept.
    TooSlow,
    /// The node stops.
    Stopping,
}

/// A place in the count of readers, given back when dropped.
#[derive(Debug)]
struct Place(Arc<Shared>);

/// One reader of the feed.
#[derive(Debug)]
pub struct Subscription {
    place: Place,
    filter: Filter,
    /// Events found in the ring that are not yet delivered.
    found: VecDeque<Weak<Frame>>,
    stage: Stage,
    /// Whether the reader has been told its position.
    introduced: bool,
}

#[derive(Debug)]
enum Stage {
    /// The reader looks in the ring from this event on. An event that is in no record is only delivered to readers who were seated.
    Reading {
        from: u64,
        /// `all`: the reader had a seat and fell behind, so it gets such events as well.
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
    /// The number of readers at this node.
    pub fn readers(&self) -> usize {
        self.0.readers.load(Ordering::Relaxed)
    }

    /// The number of events that are kept for returning readers, and their bytes.
    pub fn kept(&self) -> (usize, usize) {
        self.0.ring().size()
    }

    /// Subscribes from a given place, or from now on. A place that this node has not reached yet is refused as `Ahead`: the node
    /// may lag, and the caller may wait and ask again.
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
    /// Waits for the next item. After `silence` without an event it returns a bookmark with the reader's position. A cancelled wait loses
    /// nothing.
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

    /// The ring alone keeps events in memory. If it has dropped one, the subscription ends: the next event would look as if
    /// nothing was missing.
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

    /// Reads from the ring, and takes a seat when everything there has been read. Both locks are held from the look at the ring
    /// until the reader has its seat. Otherwise an event appended in between would be neither read nor handed out.
    fn read_on(&mut self, from: u64, all: bool) -> Option<Next> {
        let shared = self.place.0.clone();
        let mut seats = shared.seats();
        let ring = shared.ring();
        let Some(events) = ring.from(from, LOOKED_AT_MOST) else {
            // `end` takes the lock on the seats.
            drop((ring, seats));
            return Some(self.end(Over::TooSlow));
        };
        let mut upto = from;
        for event in events {
            upto += 1;
            if self.filter.wants(event) && (all || event.id().is_some()) {
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
        let number = seats.add(&self.filter, |kinds| ReaderSeat {
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

    /// The queue has ended: it was full, or the node stops.
    fn stand_up(&mut self) {
        let Stage::Seated { fell_behind, .. } = &self.stage else { return };
        let from = fell_behind.load(Ordering::Acquire);
        self.leave();
        self.stage = match from {
            NOWHERE => Stage::Over,
            from => Stage::Reading { from, all: true },
        };
    }

    /// Returns the reader's position, or None while it is not known.
    fn bookmark(&mut self) -> Option<Next> {
        let shared = self.place.0.clone();
        let Stage::Seated { from, queue, .. } = &mut self.stage else { return None };
        let seats = shared.seats();
        // No event is handed out while the lock on the seats is held. So if the queue is empty, the reader has all events before
        // `seats.next`, and misses nothing if it resumes from there.
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

#[cfg(test)]
mod tests;
