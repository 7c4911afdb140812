//! The log of a directory in a readable form: no lock is needed and no file is changed, so a node may use the directory
//! meanwhile.
//!
//! It is for people and tools (`eldest log cat`, `eldest log verify`), so it shows everything that it can read: after a gap
//! it goes on at the next head. A starting node goes on only where its newest snapshot ends.

use std::path::{Path, PathBuf};

use super::error::StorageError;
use super::files::Files;
use super::scan::{Bad, Item, Resume, Scan};
use super::segment::{self, LOG_DIR};
use crate::types::{Index, Position, Record};

/// The parts of a log, in order.
#[derive(Debug)]
pub enum LogItem<'a> {
    /// The log begins after this record. This comes at the oldest segment, and at each segment that does not follow the one
    /// before.
    Start { after: Position, path: &'a Path },
    /// The log continues in this file.
    Segment { path: &'a Path },
    /// A record. Its line has no newline.
    Record { record: Record, line: &'a [u8] },
    /// Everything up to here was durable when this marker was written.
    Marker { index: Index },
    /// The lines after this one do not check until the next `Start` or `Record`. In a log in use, the last line may be one that
    /// is just being written.
    Bad(&'a Bad),
}

/// The end of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogEnd {
    pub last: Position,
    /// Markers and heads vouch for everything up to here.
    pub synced: Index,
    /// The lines from here on do not check.
    pub bad: Option<Bad>,
}

/// Reads the log in a data directory, or the segments in the directory itself.
pub fn read_dir(dir: &Path, sink: impl FnMut(LogItem<'_>)) -> Result<LogEnd, StorageError> {
    read_in(&Files::default(), dir, sink)
}

/// The same for any file system.
pub fn read_in(files: &Files, dir: &Path, mut sink: impl FnMut(LogItem<'_>)) -> Result<LogEnd, StorageError> {
    let dir = log_dir(files, dir)?;
    let mut scan = Scan::new(Resume::AtAnyHead);
    for first in segment::list(files, &dir)? {
        let path = segment::path(&dir, first);
        // A segment that is missing was trimmed after the listing.
        let Some(bytes) = files.read_if_there(&path)? else {
            continue;
        };
        scan.segment(&path, first, &bytes, &mut |item| show(item, &mut sink))?;
    }
    let last = scan.end.as_ref().map_or(Position::ZERO, |end| end.meta.at);
    Ok(LogEnd { last, synced: scan.synced, bad: scan.lost })
}

fn log_dir(files: &Files, dir: &Path) -> Result<PathBuf, StorageError> {
    let below = dir.join(LOG_DIR);
    Ok(if files.is_dir(&below)? { below } else { dir.to_path_buf() })
}

fn show(item: Item<'_>, sink: &mut impl FnMut(LogItem<'_>)) {
    match item {
        Item::Start { boundary, place } => sink(LogItem::Start { after: boundary.meta.at, path: place.path }),
        Item::Segment { place } => sink(LogItem::Segment { path: place.path }),
        Item::Record { record, line, .. } => sink(LogItem::Record { record, line }),
        Item::Marker { index, .. } => sink(LogItem::Marker { index }),
        Item::Bad(bad) => sink(LogItem::Bad(bad)),
        Item::Resumed { .. } => {}
    }
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
