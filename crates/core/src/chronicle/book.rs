//! The chronicle of leadership in memory: the newest entries, without answers that only repeat earlier ones.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::note::Note;
use crate::protocol::Event;
use crate::types::{Epoch, Now, Position, Span, Time};

/// Room for some dozens of changes of leader, each with its steps on this node. Beyond it the oldest entry is dropped; the file
/// keeps at least as many.
pub const ENTRIES_MOST: usize = 1024;

/// While there is no leader, nodes ask and claim many times a second. After this many different answers all of them are forgotten, and
/// later answers are noted again.
const ANSWERS_MOST: usize = 256;

/// The first and the longest wait before a repeated event is noted again. An event that waits is lost if the process is killed.
const FIRST_WAIT: Span = Span::millis(10_000);
const LONGEST_WAIT: Span = Span::millis(3_600_000);

#[derive(Debug)]
pub struct Book {
    /// Shared with the queries that show them.
    entries: VecDeque<Arc<Note>>,
    /// The answers since the last leader was found, without their times. With a new leader they begin again: an objection to the
    /// next candidate is news, even if an earlier candidate met the same objection.
    said: BTreeSet<String>,
    leaderless_since: Option<Time>,
    /// Events since the last leader was found that may repeat, by kind and by the node that they are about.
    recurring: BTreeMap<(String, Option<u32>), Recurring>,
}

/// A kind of event that may repeat often, such as a clock that is set each second or a claim that fails. A repetition is noted after a wait
/// that doubles each time, or just before the next event of another kind. If each one were noted, they would push out the changes that
/// they should explain.
#[derive(Debug)]
struct Recurring {
    noted: Time,
    wait: Span,
    /// The newest one since then.
    unnoted: Option<Arc<Note>>,
}

impl Book {
    /// `lines` are the entries of earlier processes. A line that is no entry is left out. If there is none although the node is not
    /// new, its journal was lost. The process itself begins without a leader, so the time without one counts from here.
    pub fn open<'a>(lines: impl IntoIterator<Item = &'a str>, now: Now, is_new: bool) -> (Book, Note) {
        let mut book = Book {
            entries: VecDeque::new(),
            said: BTreeSet::new(),
            leaderless_since: Some(now.mono),
            recurring: BTreeMap::new(),
        };
        lines.into_iter().filter_map(Note::parse).for_each(|entry| book.keep(entry.into()));
        let lost = book.entries.is_empty() && !is_new;
        let started = Note { up_us: Some(now.mono.0), ..Note::started(now.wall, lost) };
        book.keep(Arc::new(started.clone()));
        (book, started)
    }

    /// Notes an event of a node that has this log and this promise. Returns the entries to be written to the file.
    pub fn note(&mut self, now: Now, event: &Event, last: Position, promised: Epoch) -> Vec<Arc<Note>> {
        let Some(entry) = Note::of(now.wall, event) else { return Vec::new() };
        let mut entry = Note { up_us: Some(now.mono.0), ..entry.with_standing(last, promised) };
        match event {
            Event::Declined { .. } | Event::Deferred { .. } | Event::Refused { .. }
                if !self.is_news(&entry) =>
            {
                return Vec::new();
            }
            Event::Suspected { .. } | Event::SteppedDown { .. } | Event::HandedOver { .. } => {
                // A candidate that never became leader is given up as well. The time counts from the first leader that was lost.
                self.leaderless_since.get_or_insert(now.mono);
            }
            Event::Opened { .. } | Event::Following { .. } => {
                // If one leader follows another without a gap, there is no time to state.
                let since = self.leaderless_since.take();
                entry.leaderless_ms = since.map(|since| now.mono.since(since).0 / 1000);
                self.said.clear();
            }
            _ => {}
        }
        if entry.is_observation() || entry.is_an_attempt() {
            return self.observe(now, entry);
        }
        // Earlier observations may explain this event, so they are noted before it.
        let mut entries = self.unnoted();
        match entry.begins_to_follow() {
            true => self.recurring.clear(),
            false => self.recurring.values_mut().for_each(|recurring| recurring.unnoted = None),
        }
        entries.push(entry.into());
        entries.iter().for_each(|entry| self.keep(entry.clone()));
        entries
    }

    /// Notes an event that may repeat: an observation of the node or of its driver, or an attempt. Returns the entries for the file.
    pub fn observe(&mut self, now: Now, entry: Note) -> Vec<Arc<Note>> {
        let entry = Arc::new(Note { up_us: Some(now.mono.0), ..entry });
        let kind = (entry.event.to_string(), entry.node);
        let wait = match self.recurring.get_mut(&kind) {
            Some(known) if now.mono.since(known.noted) < known.wait => {
                known.unnoted = Some(entry);
                return Vec::new();
            }
            Some(known) => Span(known.wait.0 * 2).min(LONGEST_WAIT),
            None => FIRST_WAIT,
        };
        self.recurring.insert(kind, Recurring { noted: now.mono, wait, unnoted: None });
        self.keep(entry.clone());
        vec![entry]
    }

    /// The newest repeated event of each kind that is not noted yet, in the order in which they happened.
    pub fn unnoted(&self) -> Vec<Arc<Note>> {
        let unnoted = self.recurring.values().filter_map(|recurring| recurring.unnoted.clone());
        let mut unnoted: Vec<Arc<Note>> = unnoted.collect();
        unnoted.sort_by_key(|entry| entry.up_us);
        unnoted
    }

    /// Returns all entries, including those that are not noted yet.
    pub fn entries(&self) -> Vec<Arc<Note>> {
        self.entries.iter().cloned().chain(self.unnoted()).collect()
    }

    /// Returns whether this answer is new. Claims have a new epoch each time, which does not make an answer new.
    fn is_news(&mut self, entry: &Note) -> bool {
        if self.said.len() >= ANSWERS_MOST {
            self.said.clear();
        }
        let Note { event, node, cause, instead, .. } = entry;
        self.said.insert(format!("{event} {node:?} {cause:?} {instead:?}"))
    }

    fn keep(&mut self, entry: Arc<Note>) {
        if self.entries.len() >= ENTRIES_MOST {
            self.entries.pop_front();
        }
        self.entries.push_back(entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Cause, Objection};
    use crate::types::{NodeId, WallTime};

    fn at(seconds: u64) -> Now {
        Now { mono: Time(seconds * 1_000_000), wall: WallTime(1_700_000_000_000_000 + seconds * 1_000_000) }
    }

    fn epoch(counter: u64) -> Epoch {
        Epoch { counter, leader: NodeId(2) }
    }

    fn suspected(leader: u32, cause: Cause) -> Event {
        Event::Suspected { leader: NodeId(leader), cause, silent: Span::ZERO, patience: Span::ZERO }
    }

    fn note(book: &mut Book, now: Now, event: &Event) -> Option<Arc<Note>> {
        book.note(now, event, Position::default(), Epoch::ZERO).pop()
    }

    #[test]
    fn what_is_observed_again_and_again_drives_out_nothing() {
        let (mut book, _) = Book::open([], at(1), true);
        note(&mut book, at(2), &Event::Opened { epoch: epoch(1) });
        let set = |second: u64| Event::WallClockSet { micros: second as i64 * 1_000_000 };
        let noted = (10..610).filter_map(|second| note(&mut book, at(second), &set(second))).count();
        assert_eq!(noted, 6, "at 10, 20, 40, 80, 160 and 320 seconds");
        assert!(
            note(&mut book, at(610), &Event::Slept { late: Span::millis(900) }).is_some(),
            "another kind"
        );
        let end = Event::SteppedDown { epoch: epoch(1), cause: Cause::NoMajority };
        let entries = book.note(at(611), &end, Position::default(), Epoch::ZERO);
        let words: Vec<_> = entries.iter().map(|entry| (entry.event.as_ref(), entry.shift_ms)).collect();
        assert_eq!(words, [("clock_set", Some(609_000)), ("stepped_down", None)], "the newest explains it");
        assert_eq!(book.entries().len(), 11, "also in memory, with the start");
        note(&mut book, at(612), &Event::Opened { epoch: epoch(2) });
        assert!(note(&mut book, at(613), &set(613)).is_some(), "with a new leader it is news again");
    }

    /// For an hour no claim succeeds.
    #[test]
    fn attempts_that_fail_drive_out_nothing() {
        let (mut book, _) = Book::open([], at(1), true);
        note(&mut book, at(2), &Event::Following { epoch: epoch(1) });
        note(&mut book, at(3), &suspected(2, Cause::Silence));
        for second in 4..3_604 {
            note(&mut book, at(second), &Event::Claimed { epoch: epoch(second) });
            note(&mut book, at(second), &suspected(2, Cause::NoDecision));
        }
        let entries =
            book.note(at(3_604), &Event::Opened { epoch: epoch(3_603) }, Position::default(), Epoch::ZERO);
        let words: Vec<_> = entries.iter().map(|entry| entry.event.as_ref()).collect();
        assert_eq!(words, ["claimed", "suspected", "opened"], "the last ones");
        assert_eq!(entries[0].epoch.as_deref(), Some("3603.2"));
        assert_eq!(entries[2].leaderless_ms, Some(3_601_000));
        assert!(book.entries().len() < 30, "{}", book.entries().len());
    }

    #[test]
    fn a_new_leader_says_for_how_long_there_was_none() {
        let (mut book, _) = Book::open([], at(1), true);
        let first = note(&mut book, at(3), &Event::Following { epoch: epoch(1) }).expect("news");
        assert_eq!(first.leaderless_ms, Some(2_000), "since it started");
        note(&mut book, at(10), &suspected(2, Cause::Silence));
        note(&mut book, at(11), &suspected(3, Cause::NoDecision));
        let second = note(&mut book, at(14), &Event::Opened { epoch: epoch(2) }).expect("news");
        assert_eq!(second.leaderless_ms, Some(4_000), "since the first that was given up");
        let third = note(&mut book, at(15), &Event::Following { epoch: epoch(3) }).expect("news");
        assert_eq!(third.leaderless_ms, None, "one leader followed the other");
    }

    #[test]
    fn what_is_answered_many_times_is_noted_once_until_somebody_leads() {
        let (mut book, _) = Book::open([], at(1), true);
        let no = Event::Declined { candidate: NodeId(3), why: Objection::Leads };
        assert!(note(&mut book, at(2), &no).is_some());
        assert!(note(&mut book, at(3), &no).is_none());
        let refused = |counter| Event::Refused { epoch: epoch(counter), why: Objection::ClaimsItself };
        assert!(note(&mut book, at(3), &refused(4)).is_some());
        assert!(note(&mut book, at(3), &refused(5)).is_none(), "the same answer to the claim after");
        note(&mut book, at(4), &Event::Following { epoch: epoch(6) });
        assert!(note(&mut book, at(5), &no).is_some());
    }

    #[test]
    fn a_book_outlives_its_process_and_is_bounded() {
        let (mut book, started) = Book::open([], at(1), true);
        for second in 0..2 * ENTRIES_MOST as u64 {
            note(&mut book, at(second), &Event::Opened { epoch: epoch(second) });
        }
        let lines: Vec<String> = book.entries().iter().map(|entry| entry.line()).collect();
        assert_eq!(lines.len(), ENTRIES_MOST);
        let torn = ["{\"at\":\"2023", &started.line()];
        let (again, _) = Book::open(lines.iter().map(String::as_str).chain(torn), at(9), false);
        let entries = again.entries();
        assert_eq!(entries.len(), ENTRIES_MOST);
        assert_eq!(*entries[ENTRIES_MOST - 2], started, "what is no entry is left out");
        assert_eq!(entries[ENTRIES_MOST - 1].event, "started");
        assert_eq!(entries[ENTRIES_MOST - 1].cause, None);
        let (_, lost) = Book::open([], at(9), false);
        assert_eq!(lost.cause.as_deref(), Some("journal_lost"));
    }
}
