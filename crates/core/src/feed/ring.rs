//! The newest events, kept so that a reader can go on where it was. The ring also knows how far back it reaches.
//!
//! Between two replacements of the state a node's history is one line: indexes rise by one, epochs never fall. A place that a
//! reader names is known, yet to come, or not kept; index and epoch tell which. Events from before a replacement are kept for
//! readers that have not passed the replacement yet, but no reader can name them as a place any more.
//!
//! ```text
//!   first                       begins             next     numbers of events, since the start of the process
//!     ▼                           ▼                  ▼
//!     │ before the replacement    │ 41 42.1 42.2 43  │
//!                                 ▲               ▲
//!                               floor            head      places from which a reader can go on
//! ```
//! Marks never fall from `begins` on, so a place is found by bisection.

use std::borrow::Borrow;
use std::collections::VecDeque;
use std::sync::Arc;

use crate::feed::event::RingEvent;
use crate::feed::mark::{Id, Mark, PART, Since};
use crate::protocol::mutant::{self, Mutant};
use crate::replica::Draft;
use crate::types::{Epoch, History, Index, Position, WallTime};

/// A few minutes of a busy cluster. That is enough for a client that reconnects after a failover; the ring is no second log.
const EVENTS_MOST: usize = 100_000;
/// The same bound in bytes of memory.
const BYTES_MOST: usize = 64 << 20;

/// `E` is an event and the data that is kept with it.
#[derive(Debug)]
pub struct Ring<E = RingEvent> {
    events_most: usize,
    bytes_most: usize,
    sides: bool,
    history: History,
    events: VecDeque<Arc<E>>,
    bytes: usize,
    /// The number of the first event kept. Events are numbered from the start of the process.
    first: u64,
    /// The number of the first event of the present history that a reader may go on from.
    begins: u64,
    /// A reader that has got as far as this misses nothing.
    floor: Mark,
    /// The position of the last record that was added.
    head: Position,
    /// The index at which each epoch begins, from the epoch of the floor on.
    epochs: VecDeque<(Index, Epoch)>,
    pub is_open: bool,
    pub is_closed: bool,
}

impl<E: From<RingEvent> + Borrow<RingEvent>> Default for Ring<E> {
    fn default() -> Ring<E> {
        Ring::bounded(EVENTS_MOST, BYTES_MOST)
    }
}

impl<E: From<RingEvent> + Borrow<RingEvent>> Ring<E> {
    pub fn bounded(events_most: usize, bytes_most: usize) -> Ring<E> {
        Ring {
            events_most,
            bytes_most,
            sides: false,
            history: History::FIRST,
            events: VecDeque::new(),
            bytes: 0,
            first: 0,
            begins: 0,
            floor: Mark::default(),
            head: Position::ZERO,
            epochs: VecDeque::new(),
            is_open: false,
            is_closed: false,
        }
    }

    /// Opens the ring. Records above this position follow.
    pub fn open(&mut self, at: Position, sides: bool, history: History) {
        (self.sides, self.history) = (sides, history);
        self.is_open = true;
        self.begin_at(at);
    }

    /// Begins a line at this position. The records that led to it are not known.
    fn begin_at(&mut self, at: Position) {
        self.begins = self.next();
        self.floor = Mark::behind(at.index);
        self.head = at;
        self.epochs = VecDeque::from([(at.index, at.epoch)]);
    }

    /// Adds the next record with its events. From here on places are of this history.
    pub fn record(&mut self, at: Position, history: History, wall: WallTime, drafts: Vec<Draft>) {
        if self.history != history {
            self.history = history;
            // The places before this record are of the other history, so the line begins right before it.
            self.begin_at(Position::new(at.epoch, at.index.saturating_sub(1)));
        }
        self.head = at;
        if self.epochs.back().is_none_or(|(_, epoch)| *epoch != at.epoch) {
            self.epochs.push_back((at.index, at.epoch));
        }
        let several = drafts.len() > 1;
        for (number, draft) in (1..).zip(drafts) {
            let mark = Mark { index: at.index, n: number };
            let id = self.id(at, several.then_some(number));
            self.push(RingEvent::new(mark, Some(id), id, wall, draft));
        }
    }

    /// The state was replaced by another one: by these changes, if they are known. Each node gets to the new state in its own
    /// way, so a reader that has only some of the changes cannot go on from its place. The last event's id means the same on
    /// every node.
    pub fn replaced(&mut self, at: Position, history: History, changes: Vec<Draft>, last: Draft) {
        self.history = history;
        self.begin_at(at);
        let (mark, id) = (Mark::behind(at.index), self.id(at, None));
        let wall = WallTime::default();
        let part = (!mutant::is_on(Mutant::PartHasNoId)).then(|| self.id(at, Some(PART)));
        // Changes that later ones would push out at once are not added: there may be millions (P49).
        let skipped = changes.len().saturating_sub(self.events_most);
        self.skip(skipped);
        for draft in changes.into_iter().skip(skipped) {
            self.push(RingEvent::new(mark, part, id, wall, draft));
        }
        self.begins = self.next();
        self.push(RingEvent::new(mark, Some(id), id, wall, last));
    }

    /// Counts this many events as added and dropped, and drops all events before them.
    fn skip(&mut self, count: usize) {
        if count > 0 {
            self.first = self.next() + count as u64;
            self.events.clear();
            self.bytes = 0;
        }
    }

    /// Adds an event that is in no record.
    /// A reader that comes back to the place of the head does not get the event again: the event's mark is that very place.
    pub fn passing(&mut self, wall: WallTime, draft: Draft) {
        let id = self.id(self.head, None);
        self.push(RingEvent::new(Mark::behind(self.head.index), None, id, wall, draft));
    }

    fn push(&mut self, event: RingEvent) {
        self.bytes += event.size();
        self.events.push_back(Arc::new(event.into()));
        while self.events.len() > self.events_most || self.bytes > self.bytes_most {
            let Some(oldest) = self.events.pop_front() else {
                return;
            };
            let oldest: &RingEvent = (*oldest).borrow();
            self.bytes -= oldest.size();
            self.first += 1;
            // An event from before the line began has no place on it, so its loss does not raise the floor.
            if self.first > self.begins {
                self.raise_floor(oldest.mark(), oldest.id().is_some_and(|id| id.n.is_none()));
            }
        }
    }

    fn raise_floor(&mut self, gone: Mark, whole: bool) {
        let gone = if whole { Mark::behind(gone.index) } else { gone };
        self.floor = self.floor.max(gone);
        while self.epochs.get(1).is_some_and(|(from, _)| *from <= self.floor.index) {
            self.epochs.pop_front();
        }
    }

    fn id(&self, at: Position, n: Option<u32>) -> Id {
        Id { at, n, sides: self.sides, history: self.history }
    }

    /// Whether histories may part. If so, ids have an epoch.
    pub fn sides(&self) -> bool {
        self.sides
    }

    /// The number of events that are kept, and their bytes.
    pub fn size(&self) -> (usize, usize) {
        (self.events.len(), self.bytes)
    }

    /// The number that the next event will have.
    pub fn next(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    pub fn first(&self) -> u64 {
        self.first
    }

    /// The number of the first event behind a place.
    pub fn find(&self, since: &Since) -> Result<u64, Refused> {
        // This comes first: an index of another history says nothing here (P60). The first history is over for good.
        // Any other may be one that has yet to begin at this node.
        if since.history != self.history && !mutant::is_on(Mutant::CursorOfAnyHistory) {
            let oldest = self.oldest();
            let before = since.history.is_first();
            return Err(if before {
                Refused::Compacted { oldest }
            } else {
                Refused::OtherHistory { oldest }
            });
        }
        if since.mark.n == PART {
            return Err(Refused::Compacted { oldest: self.oldest() });
        }
        let place = Position::new(since.epoch.unwrap_or(self.head.epoch), since.mark.index);
        // Both have to be ahead. A greater index in a lower epoch is a place of another side (mutant
        // `CursorOfAnyEpoch`).
        if place.index > self.head.index && place.epoch >= self.head.epoch {
            return Err(Refused::Ahead { head: self.id(self.head, None) });
        }
        let is_kept = since.mark >= self.floor || mutant::is_on(Mutant::CursorNotKept);
        if !is_kept || !self.is_of_this_line(since) {
            return Err(Refused::Compacted { oldest: self.oldest() });
        }
        let by_record = mutant::is_on(Mutant::CursorBehindRecord);
        Ok(self.first_behind(if by_record { Mark::behind(place.index) } else { since.mark }))
    }

    /// Whether the record at this index is the one that the reader means. This is always so where histories never part.
    fn is_of_this_line(&self, since: &Since) -> bool {
        let here = self.epoch_at(since.mark.index);
        since.epoch.is_none_or(|epoch| here == Some(epoch) || mutant::is_on(Mutant::CursorOfAnyEpoch))
    }

    /// The number of the first event of the present history behind this place.
    fn first_behind(&self, mark: Mark) -> u64 {
        let (mut low, mut high) = (self.begins.max(self.first), self.next());
        while low < high {
            let middle = low + (high - low) / 2;
            match self
                .events
                .get((middle - self.first) as usize)
                .is_some_and(|event| (**event).borrow().mark() <= mark)
            {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    fn epoch_at(&self, index: Index) -> Option<Epoch> {
        let at = self.epochs.partition_point(|(from, _)| *from <= index).checked_sub(1)?;
        self.epochs.get(at).filter(|_| index <= self.head.index).map(|(_, epoch)| *epoch)
    }

    /// The oldest place from which nothing is missing.
    fn oldest(&self) -> Id {
        let Mark { index, n } = self.floor;
        let epoch = self.epoch_at(index).unwrap_or_default();
        self.id(Position::new(epoch, index), (n < u32::MAX).then_some(n))
    }

    /// The events from this number on, `most` at most. `None` if the event with this number is no longer kept.
    pub fn from(&self, number: u64, most: usize) -> Option<impl Iterator<Item = &Arc<E>>> {
        let skip = usize::try_from(number.checked_sub(self.first)?).ok()?;
        Some(self.events.range(skip.min(self.events.len())..).take(most))
    }

    /// The place before an event. A reader that has got there may go on from it.
    pub fn place_before(&self, number: u64) -> Option<Id> {
        if number == self.next() {
            return Some(self.id(self.head, None));
        }
        if number <= self.begins {
            return None;
        }
        let before = usize::try_from(number.checked_sub(self.first)?).ok()?.checked_sub(1)?;
        (**self.events.get(before)?).borrow().id()
    }
}

// Reasons to refuse a reader.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The place is yet to come: this node is behind the node that named it, or no node has got there. This node's feed ends at `head`.
    Ahead { head: Id },
    /// The events behind the place are not kept, or not in this history. From `oldest` on nothing is missing.
    Compacted { oldest: Id },
    /// The place is in a history that this node does not know: that history has yet to begin here, or belongs to another
    /// cluster (P60).
    OtherHistory { oldest: Id },
    /// The node is starting, or is about to end.
    Closed,
}
