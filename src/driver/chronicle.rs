//! Keeps the chronicle of leadership and roles, and writes its events to the log for operators.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::{io, thread};

use super::clock;
use super::end::End;
use super::feed::{Draft, Fact, Kind};
use super::setup::Setup;
use crate::chronicle::{Book, ENTRIES_MOST, Note, RoleTurns, TURNS_MOST, sentence};
use crate::protocol::{Cause, Event, Impasse};
use crate::storage;
use crate::types::{Epoch, Index, NodeId, Position, Span, Time, WallTime};

/// The maximum number of lines that wait for the disk. If roles change hands faster than the disk writes, further lines are not kept.
const LINES_MOST: usize = 1024;

/// A repeated observation, such as a clock that is set each second, is logged once in this time. So the log shows whether it goes on.
const LOGGED_EVERY: Span = Span::millis(60_000);

/// The name under which this module sets its notice.
const MATTER: &str = "chronicle";

/// The names of the files in the data directory.
const LEADERSHIP_FILE: &str = "chronicle";
const ROLES_FILE: &str = "roles";

/// The maximum number of events of one role that are shown.
const TOLD_MOST: usize = 100;

/// A node keeps its chronicle in memory for queries, and in files that a separate thread writes, so that a slow disk delays nothing. If
/// a file cannot be written, the node continues and sets a notice.
#[derive(Debug)]
pub struct Chronicle {
    book: Book,
    roles: RoleTurns,
    lines: Option<SyncSender<Line>>,
    /// The chronicle says that the disk keeps this node waiting.
    disk_waits: bool,
    /// When each kind of observation was logged last, with the node that it is about.
    logged: BTreeMap<(String, Option<u32>), Time>,
}

#[derive(Debug)]
enum Line {
    Leadership(String),
    Role(String),
}

#[derive(Debug)]
struct Files {
    leadership: storage::Chronicle,
    roles: storage::Chronicle,
}

impl Chronicle {
    /// Opens the files. The node starts even if the chronicle cannot be kept in the directory. `last` is the last index of the log.
    pub fn open(dir: &Path, setup: &Arc<Setup>, last: Index) -> Chronicle {
        let (now, is_new) = (clock::now(), last == Index::default());
        let files = match Files::open(dir) {
            Ok(files) => files,
            Err(error) => {
                cannot_be_kept(setup, &error);
                // Queries are still answered, from memory alone.
                let (book, _) = Book::open([], now, is_new);
                let roles = RoleTurns::default();
                return Chronicle { book, roles, lines: None, disk_waits: false, logged: BTreeMap::new() };
            }
        };
        let damaged = files.leadership.damaged() + files.roles.damaged();
        if damaged > 0 {
            tracing::warn!("{damaged} damaged lines of the history of leadership and roles are left out");
        }
        let (book, started) = Book::open(files.leadership.lines(), now, is_new);
        let roles = RoleTurns::open(files.roles.lines(), last);
        let (lines, coming) = sync_channel(LINES_MOST);
        let (setup, name) = (setup.clone(), "chronicle".to_string());
        let work = move || files.write(&coming, &setup);
        let lines = thread::Builder::new().name(name).spawn(work).ok().map(|_| lines);
        let mut chronicle = Chronicle { book, roles, lines, disk_waits: false, logged: BTreeMap::new() };
        chronicle.write(Line::Leadership(started.line()));
        chronicle
    }

    /// Notes an event of this node, which has this log and this promise now. Returns whether it belongs in the log for operators as well.
    pub fn event(&mut self, event: &Event, last: Position, promised: Epoch) -> bool {
        let now = clock::now();
        let entries = self.book.note(now, event, last, promised);
        self.write_entries(&entries);
        let observed = Note::of(now.wall, event).filter(Note::is_observation);
        observed.is_none_or(|note| self.log_now(now.mono, note))
    }

    /// Returns whether that observation goes to the log now.
    fn log_now(&mut self, now: Time, note: Note) -> bool {
        let kind = (note.event.into_owned(), note.node);
        let is_due = self.logged.get(&kind).is_none_or(|last| now.since(*last) >= LOGGED_EVERY);
        if is_due {
            self.logged.insert(kind, now);
        }
        is_due
    }

    /// Notes once that the disk has not stored what it was given that long ago.
    pub fn disk_waits(&mut self, waited: Span) {
        if !std::mem::replace(&mut self.disk_waits, true) {
            self.observe(|at| Note::disk_waits(at, waited));
        }
    }

    pub fn disk_answers(&mut self, waited: Span) {
        self.disk_waits = false;
        self.observe(|at| Note::disk_answers(at, waited));
    }

    /// Notes that the node `by` refuses this node's calls, if that is news.
    pub fn barred(&mut self, by: NodeId, why: &str) {
        self.observe(|at| Note::barred(at, by.0, why));
    }

    fn observe(&mut self, entry: impl FnOnce(WallTime) -> Note) {
        let now = clock::now();
        let entries = self.book.observe(now, entry(now.wall));
        self.write_entries(&entries);
    }

    fn write_entries(&mut self, entries: &[Arc<Note>]) {
        entries.iter().for_each(|entry| self.write(Line::Leadership(entry.line())));
    }

    /// Notes the events of a record with the time at which the record was written, because a node that was away applies it late.
    pub fn drafts(&mut self, at: Position, wall: WallTime, drafts: &[Draft]) {
        for draft in drafts {
            let event = match draft.kind {
                Kind::RoleAcquired => "acquired",
                Kind::RoleLost => "lost",
                _ => continue,
            };
            let Fact::Members { name: Some(role), json } = &draft.fact else { continue };
            if let Some(line) = self.roles.note(wall, at, event, role, json) {
                self.write(Line::Role(line));
            }
        }
    }

    pub fn entries(&self) -> Vec<Arc<Note>> {
        self.book.entries()
    }

    pub fn turns(&self, role: &str) -> Vec<String> {
        self.roles.of(role, TOLD_MOST)
    }

    /// If the queue is full, the line is dropped: the loop never waits for the disk here, and no decision depends on the chronicle (P58).
    fn write(&mut self, line: Line) {
        let sent = self.lines.as_ref().map(|lines| lines.try_send(line));
        if matches!(sent, Some(Err(TrySendError::Disconnected(_)))) {
            self.lines = None;
        }
    }
}

impl Files {
    fn open(dir: &Path) -> io::Result<Files> {
        Ok(Files {
            leadership: storage::Chronicle::open(dir, LEADERSHIP_FILE, ENTRIES_MOST)?,
            roles: storage::Chronicle::open(dir, ROLES_FILE, TURNS_MOST)?,
        })
    }

    /// Writes lines until the loop has ended. The notice stands from the first line that cannot be written to the first that can.
    fn write(mut self, coming: &Receiver<Line>, setup: &Setup) {
        let mut failing = false;
        while let Ok(line) = coming.recv() {
            let written = match line {
                Line::Leadership(line) => self.leadership.add(&line),
                Line::Role(line) => self.roles.add(&line),
            };
            match written {
                Ok(()) if failing => setup.notices.set(MATTER, None),
                Err(ref error) if !failing => cannot_be_kept(setup, error),
                _ => {}
            }
            failing = written.is_err();
        }
    }
}

fn cannot_be_kept(setup: &Setup, error: &io::Error) {
    let notice = format!(
        "cannot write the history of leadership and roles; `eldest why` will not know it after a restart: {error}"
    );
    setup.notices.set(MATTER, Some(notice));
}

/// Writes an event to the log for operators. A line names a node by its id and its name; an id that the directory does not know
/// has the name `?`.
pub fn event(setup: &Setup, event: Event) {
    let name = |node| setup.member(node).map_or("?".to_string(), |member| member.name);
    // The sentence of `eldest why`. It continues the name of the node that noted the event, which is this node.
    let said = |event: &Event| {
        let entry = Note::of(WallTime::default(), event);
        entry
            .map(|entry| format!("this node {}", sentence(&entry, |id| name(NodeId(id)))))
            .unwrap_or_default()
    };
    match event {
        Event::Suspected { leader, cause, .. } => {
            tracing::warn!(leader = leader.0, cause = cause.word(), "{}", said(&event));
        }
        Event::Claimed { epoch } => tracing::info!(%epoch, "claiming leadership"),
        Event::Opened { epoch } => tracing::info!(%epoch, "this node leads"),
        Event::Following { epoch } => {
            tracing::info!(%epoch, leader = epoch.leader.0, name = name(epoch.leader), "following");
        }
        // The node continues in the epoch of the merge.
        Event::SteppedDown { cause: Cause::Merged, .. } => {}
        Event::SteppedDown { epoch, cause } => {
            tracing::warn!(%epoch, cause = cause.word(), "{}", said(&event));
        }
        Event::Admitted { incarnation } => tracing::info!(%incarnation, "this node now votes"),
        Event::Replaced { by } => tracing::error!(
            %by,
            "another disk has replaced this one under its id: this node no longer votes or leads. If two \
                machines run under one id, stop one of them; to use this one again, start it with an empty data \
                directory"
        ),
        Event::Met { other } => {
            tracing::warn!(
                other = other.0,
                name = name(other),
                "two leaders have met: the sides are being merged"
            );
        }
        Event::Merged { with, index } => {
            tracing::warn!(with = with.0, name = name(with), index, "two sides have merged");
        }
        Event::Impasse { other, why } => {
            let (name, why) = (name(other), in_words(&why));
            tracing::error!(other = other.0, name, "two sides cannot merge: {why}");
        }
        Event::Overridden { index } => tracing::warn!(index, "the state is updated to the merged one"),
        Event::Accused { fault } => {
            tracing::error!(
                "ignored an unsigned message that would end this node: {}. If it is true, this node cannot \
                    continue until that is repaired; set cluster_secret_file so that such messages cannot be forged",
                End::Fault(fault)
            );
        }
        Event::Forgot { node, kept, end } => tracing::error!(
            node = node.0,
            name = name(node),
            acknowledged = kept,
            ends_at = end,
            "that node's disk has lost records that it acknowledged, as if an older copy of its data directory \
                had been put back: it no longer votes, is set aside, and is admitted again as a new disk"
        ),
        Event::Diverged { index } => {
            tracing::error!(index, "states differ between nodes, and no majority tells which is right");
        }
        other if is_observation(&other) => tracing::warn!("{}", said(&other)),
        Event::HandsOver { .. } => tracing::warn!("{}", said(&event)),
        // `eldest why` shows these events; without a leader they occur many times a second.
        other => tracing::debug!("{}", said(&other)),
    }
}

/// The event may explain a change of leader, but is no step towards one.
fn is_observation(event: &Event) -> bool {
    Note::of(WallTime::default(), event).is_some_and(|entry| entry.is_observation())
}

/// Explains why two sides cannot merge, and what to do about it.
pub fn in_words(why: &Impasse) -> String {
    match why {
        Impasse::NothingComes => {
            "the state transfer from the other leader did not arrive, or no longer matched the request: check \
                the link between the two, and the other leader's log. Both serve their clients, and try again"
                .to_string()
        }
        Impasse::TooLarge { bytes, most } => format!(
            "the state transfer has {bytes} bytes, and the limit is {most}: raise limits.merge_bytes on all \
                nodes and restart them. Both serve their clients until then"
        ),
        Impasse::JournalFull { entries, bytes } => format!(
            "the journal of conflicts would have {entries} entries and {bytes} bytes: drop or apply existing \
                conflicts (`eldest conflicts`), or raise limits.conflicts and limits.conflict_bytes on all \
                nodes and restart them. Both sides serve their clients until then"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Now;

    #[test]
    fn what_recurs_is_logged_once_a_minute() {
        let start = Now { mono: Time(0), wall: WallTime(0) };
        let (book, _) = Book::open([], start, true);
        let (roles, logged) = (RoleTurns::default(), BTreeMap::new());
        let mut chronicle = Chronicle { book, roles, lines: None, disk_waits: false, logged };
        let held = |node| {
            let event = Event::Held { node: NodeId(node), time: Span::millis(10_000) };
            Note::of(WallTime(0), &event).expect("a note")
        };
        let mut logs = |second: u64, node| chronicle.log_now(Time(second * 1_000_000), held(node));
        assert_eq!([logs(1, 1), logs(60, 1), logs(60, 2), logs(61, 1)], [true, false, true, true]);
    }
}
