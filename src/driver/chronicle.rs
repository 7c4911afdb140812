//! A node keeps its chronicle: in memory for whoever asks, and in files that a thread of its own writes, so that a slow disk delays
//! nothing. If a file cannot be written the node goes on, and says so.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;

use super::clock;
use super::feed::{Draft, Fact, Kind};
use super::setup::Setup;
use crate::chronicle::{Book, ENTRIES_MOST, Entry, Roles, TURNS_MOST};
use crate::protocol::Event;
use crate::storage;
use crate::types::{Index, Position, WallTime};

/// Lines on their way to the disk. Where roles change hands faster than it writes, lines beyond it are not kept.
const LINES_MOST: usize = 1024;

/// What the notice is about.
const MATTER: &str = "chronicle";

/// As the files in the data directory are called.
const LEADERSHIP_FILE: &str = "chronicle";
const ROLES_FILE: &str = "roles";

/// Turns of one role that are told of.
const TOLD_MOST: usize = 100;

#[derive(Debug)]
pub struct Chronicle {
    book: Book,
    roles: Roles,
    lines: Option<SyncSender<Line>>,
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
    /// A directory where it cannot be kept is no reason not to start.
    /// `last` is where the log ends.
    pub fn open(dir: &Path, setup: &Arc<Setup>, last: Index) -> Chronicle {
        let now = clock::now();
        let files = match Files::open(dir) {
            Ok(files) => files,
            Err(error) => {
                cannot_be_kept(setup, &error);
                let (book, _) = Book::open([], now);
                return Chronicle { book, roles: Roles::default(), lines: None };
            }
        };
        let (book, started) = Book::open(files.leadership.lines(), now);
        let roles = Roles::open(files.roles.lines(), last);
        let (lines, coming) = sync_channel(LINES_MOST);
        let (setup, name) = (setup.clone(), "chronicle".to_string());
        let work = move || files.write(&coming, &setup);
        let lines = thread::Builder::new().name(name).spawn(work).ok().map(|_| lines);
        let mut chronicle = Chronicle { book, roles, lines };
        chronicle.write(Line::Leadership(started.line()));
        chronicle
    }

    pub fn event(&mut self, event: &Event) {
        if let Some(entry) = self.book.note(clock::now(), event) {
            self.write(Line::Leadership(entry.line()));
        }
    }

    /// What a record has brought about, and when it was written: a node that was away hears of it late.
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

    pub fn entries(&mut self) -> Arc<Vec<Entry>> {
        self.book.entries()
    }

    pub fn turns(&self, role: &str) -> Vec<String> {
        self.roles.of(role, TOLD_MOST)
    }

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

    /// Until the loop has ended.
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
        "what happens to leadership and roles cannot be written down, and `eldest why` will not know it after a restart: {error}"
    );
    setup.notices.set(MATTER, Some(notice));
}
