//! The chronicle of leadership in memory: the newest entries, without repeated answers that say nothing new.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use super::entry::Entry;
use crate::protocol::Event;
use crate::types::{Now, Time};

/// Room for some dozens of changes of leader, each with its steps on this node. Beyond it the oldest entry is dropped; the file
/// keeps at least as many.
pub const ENTRIES_MOST: usize = 1024;

/// Nodes ask and claim again many times a second while there is no leader. After this many different answers all are forgotten, so further
/// answers are noted as if the search for a leader had just begun.
const ANSWERS_MOST: usize = 256;

#[derive(Debug)]
pub struct Book {
    entries: VecDeque<Entry>,
    /// A copy of all entries, shared by all queries until the next entry.
    shown: Option<Arc<Vec<Entry>>>,
    /// The answers since the last leader was found, without their times. With a new leader they begin again: an objection to the
    /// next candidate is news, even if an earlier candidate met the same objection.
    said: BTreeSet<String>,
    leaderless_since: Option<Time>,
}

impl Book {
    /// `lines` are the entries of earlier processes. A line that is no entry is left out. The process itself begins without a
    /// leader, so the time without one counts from here.
    pub fn open<'a>(lines: impl IntoIterator<Item = &'a str>, now: Now) -> (Book, Entry) {
        let mut book = Book {
            entries: VecDeque::new(),
            shown: None,
            said: BTreeSet::new(),
            leaderless_since: Some(now.mono),
        };
        lines.into_iter().filter_map(Entry::parse).for_each(|entry| book.keep(entry));
        let started = Entry::started(now.wall);
        book.keep(started.clone());
        (book, started)
    }

    /// Returns the entry to be written to the file, if it is new.
    pub fn note(&mut self, now: Now, event: &Event) -> Option<Entry> {
        let mut entry = Entry::of(now.wall, event)?;
        match event {
            Event::Suspected { .. } | Event::SteppedDown { .. } => {
                // A candidate that never became leader is given up as well. The time counts from the first leader that was lost.
                self.leaderless_since.get_or_insert(now.mono);
            }
            Event::Opened { .. } | Event::Following { .. } => {
                // If one leader follows another without a gap, there is no time to state.
                let since = self.leaderless_since.take();
                entry.leaderless_ms = since.map(|since| now.mono.since(since).0 / 1000);
                self.said.clear();
            }
            Event::Declined { .. } | Event::Deferred { .. } | Event::Refused { .. }
                if !self.is_news(&entry) =>
            {
                return None;
            }
            _ => {}
        }
        self.keep(entry.clone());
        Some(entry)
    }

    /// Returns all entries. They are copied once for all queries.
    pub fn entries(&mut self) -> Arc<Vec<Entry>> {
        let entries = &self.entries;
        self.shown.get_or_insert_with(|| Arc::new(entries.iter().cloned().collect())).clone()
    }

    /// Returns whether this answer is new. Claims have a new epoch each time, which does not make an answer new.
    fn is_news(&mut self, entry: &Entry) -> bool {
        if self.said.len() >= ANSWERS_MOST {
            self.said.clear();
        }
        let Entry { event, node, cause, instead, .. } = entry;
        self.said.insert(format!("{event} {node:?} {cause:?} {instead:?}"))
    }

    fn keep(&mut self, entry: Entry) {
        if self.entries.len() >= ENTRIES_MOST {
            self.entries.pop_front();
        }
        self.entries.push_back(entry);
        self.shown = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Cause, Objection};
    use crate::types::{Epoch, NodeId, WallTime};

    fn at(seconds: u64) -> Now {
        Now { mono: Time(seconds * 1_000_000), wall: WallTime(1_700_000_000_000_000 + seconds * 1_000_000) }
    }

    fn epoch(counter: u64) -> Epoch {
        Epoch { counter, leader: NodeId(2) }
    }

    #[test]
    fn a_new_leader_says_for_how_long_there_was_none() {
        let (mut book, _) = Book::open([], at(1));
        let first = book.note(at(3), &Event::Following { epoch: epoch(1) }).expect("news");
        assert_eq!(first.leaderless_ms, Some(2_000), "since it started");
        book.note(at(10), &Event::Suspected { leader: NodeId(2), cause: Cause::Silence });
        book.note(at(11), &Event::Suspected { leader: NodeId(3), cause: Cause::NoDecision });
        let second = book.note(at(14), &Event::Opened { epoch: epoch(2) }).expect("news");
        assert_eq!(second.leaderless_ms, Some(4_000), "since the first that was given up");
        let third = book.note(at(15), &Event::Following { epoch: epoch(3) }).expect("news");
        assert_eq!(third.leaderless_ms, None, "one leader followed the other");
    }

    #[test]
    fn what_is_answered_many_times_is_noted_once_until_somebody_leads() {
        let (mut book, _) = Book::open([], at(1));
        let no = Event::Declined { candidate: NodeId(3), why: Objection::Leads };
        assert!(book.note(at(2), &no).is_some());
        assert!(book.note(at(3), &no).is_none());
        let refused = |counter| Event::Refused { epoch: epoch(counter), why: Objection::ClaimsItself };
        assert!(book.note(at(3), &refused(4)).is_some());
        assert!(book.note(at(3), &refused(5)).is_none(), "the same answer to the claim after");
        book.note(at(4), &Event::Following { epoch: epoch(6) });
        assert!(book.note(at(5), &no).is_some());
    }

    #[test]
    fn a_book_outlives_its_process_and_is_bounded() {
        let (mut book, started) = Book::open([], at(1));
        for second in 0..2 * ENTRIES_MOST as u64 {
            book.note(at(second), &Event::Opened { epoch: epoch(second) });
        }
        let lines: Vec<String> = book.entries().iter().map(Entry::line).collect();
        assert_eq!(lines.len(), ENTRIES_MOST);
        let torn = ["{\"at\":\"2023", &started.line()];
        let (mut again, _) = Book::open(lines.iter().map(String::as_str).chain(torn), at(9));
        let entries = again.entries();
        assert_eq!(entries.len(), ENTRIES_MOST);
        assert_eq!(entries[ENTRIES_MOST - 2], started, "what is no entry is left out");
        assert_eq!(entries[ENTRIES_MOST - 1].event, "started");
    }
}
