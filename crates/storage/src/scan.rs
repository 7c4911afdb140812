//! Reads a log from its first segment to its last, and reports its good and bad parts, and where it continues.
//!
//! A line is good if it follows the line before: by index, epoch and checksum. After a bad line the reader is *lost* until the
//! expected record appears after all (then the bad line was no record: a damaged marker or head), or until a record appears
//! that follows the newest snapshot, which replaces everything before it. If the reader is still lost at the end, the log ends
//! at the bad line.
//!
//! ```text
//!               bad line                              the record that was due: Resumed
//!  Start ─► Record, Marker, Segment ─► Bad ─► lost ──┬──────────────────────────────────► Record …
//!                                                    ├─ the record after the snapshot: Start ─► Record …
//!                                                    └─ nothing: `lost` says where the log ends
//! ```
//!
//! The reader does not judge. `synced` is the greatest index that any marker or head vouches for, in the good part or behind
//! it, and `gather.rs` compares it with the bad line (P27).
//!
//! A lost record cannot be skipped: the checksum of each line covers the checksum of the line before, so no later line of the
//! same log checks without it.

use std::fmt;
use std::path::{Path, PathBuf};

use super::batch::follows;
use super::error::StorageError;
use super::line::{self, LineError};
use super::marker::Marker;
use super::meta::Boundary;
use super::segment::{self, LOG_FORMAT};
use super::text::{Line, SealError, lines};
use crate::types::{Index, Record};

/// The places where a lost reader may restart.
#[derive(Clone, Copy, Debug)]
pub enum Resume<'a> {
    /// Right after the last record in this snapshot.
    After(&'a Boundary),
    /// At any head: for people, who want to see the rest. The log that a node uses must not have a gap.
    AtAnyHead,
}

/// The parts of a log, in the order of the files.
#[derive(Debug)]
pub enum Item<'a> {
    /// The log begins after this boundary. Earlier items are not part of it.
    Start {
        boundary: &'a Boundary,
        place: Place<'a>,
    },
    /// Another segment continues where the last one ended.
    Segment {
        place: Place<'a>,
    },
    Record {
        record: Record,
        line: &'a [u8],
        chain: u32,
        place: Place<'a>,
    },
    Marker {
        index: Index,
        place: Place<'a>,
    },
    /// The reader is lost from here on.
    Bad(&'a Bad),
    /// The expected record has appeared: nothing is missing between `Bad` and here.
    Resumed {
        bad: &'a Bad,
        at: &'a Boundary,
        place: Place<'a>,
    },
}

/// The place of a line.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    pub path: &'a Path,
    pub segment: Index,
    pub offset: u64,
    /// The offset at which the next line may begin.
    pub end: u64,
}

/// A line that does not check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bad {
    pub path: PathBuf,
    pub segment: Index,
    pub offset: u64,
    /// The record that is expected here.
    pub index: Index,
    pub reason: Reason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    Line(LineError),
    /// The file ends within the line.
    Unended,
    /// The file ends before it should.
    Shortened {
        size: u64,
    },
    Marker,
    Head(&'static str),
    /// The head is good, but continues from another record: a file is missing or does not belong here.
    Gap {
        from: Index,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Line(error) => write!(f, "{error}"),
            Reason::Unended => write!(f, "the file ends within this line"),
            Reason::Shortened { size } => write!(f, "the file ends here, and was {size} bytes long"),
            Reason::Marker => write!(f, "a marker that does not match the record before it"),
            Reason::Head(why) => write!(f, "bad head: {why}"),
            Reason::Gap { from } => {
                write!(f, "this file continues from record {from}, which is not the last one")
            }
        }
    }
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Bad { path, offset, index, reason, .. } = self;
        write!(f, "{}, byte {offset}, expected record {index}: {reason}", path.display())
    }
}

/// The state of a reader.
#[derive(Debug)]
pub struct Scan<'a> {
    resume: Resume<'a>,
    /// The end of the good part.
    pub end: Option<Boundary>,
    pub lost: Option<Bad>,
    /// The greatest index that a marker or a head vouches for.
    pub synced: Index,
}

impl<'a> Scan<'a> {
    pub fn new(resume: Resume<'a>) -> Scan<'a> {
        Scan { resume, end: None, lost: None, synced: 0 }
    }

    /// Reads the next segment.
    pub fn segment(
        &mut self,
        path: &Path,
        first: Index,
        bytes: &[u8],
        sink: &mut dyn FnMut(Item<'_>),
    ) -> Result<(), StorageError> {
        let mut segment = Segment { scan: self, path, first, sink };
        let mut lines = lines(bytes);
        let mut size = 0;
        match lines.next() {
            Some(line) if line.offset == 0 => size = segment.head(&line)?,
            _ => segment.lose(0, Reason::Head("the file does not begin with one")),
        }
        lines.for_each(|line| segment.line(&line));
        if (bytes.len() as u64) < size {
            segment.lose(bytes.len(), Reason::Shortened { size });
            if let Some(bad) = segment.scan.lost.as_mut().filter(|bad| bad.segment == first) {
                // More may be missing there, so this reason replaces the other one: a bad line alone could be torn, but no
                // power failure shortens a segment.
                bad.reason = Reason::Shortened { size };
            }
        }
        Ok(())
    }

    fn due(&self, first: Index) -> Index {
        self.end.as_ref().map_or(first, |end| end.index() + 1)
    }
}

/// One segment being read.
struct Segment<'s, 'w, 'a> {
    scan: &'s mut Scan<'a>,
    path: &'w Path,
    first: Index,
    sink: &'s mut dyn FnMut(Item<'_>),
}

impl<'w> Segment<'_, 'w, '_> {
    fn place(&self, line: &Line<'_>) -> Place<'w> {
        Place { path: self.path, segment: self.first, offset: line.offset as u64, end: line.end() as u64 }
    }

    /// Returns the size that the file should have, or zero if it is unknown.
    fn head(&mut self, line: &Line<'_>) -> Result<u64, StorageError> {
        let (size, boundary) = match segment::parse_head(line.text, self.first) {
            Ok(head) => head,
            Err(SealError::Newer(found)) => {
                let path = self.path.to_path_buf();
                return Err(StorageError::NewerFormat { path, found, known: LOG_FORMAT });
            }
            Err(SealError::Bad(why)) => {
                self.lose(line.offset, Reason::Head(why));
                return Ok(0);
            }
        };
        self.boundary(boundary, line);
        Ok(size)
    }

    fn boundary(&mut self, boundary: Boundary, line: &Line<'_>) {
        // A segment is begun only when everything before it is durable.
        // So its head counts as a marker, even if it does not continue from the last good record.
        self.scan.synced = self.scan.synced.max(boundary.index());
        let connects = self.scan.end.as_ref().is_some_and(|end| same_place(end, &boundary));
        let first = self.scan.end.is_none() && self.scan.lost.is_none();
        let anew = match self.scan.resume {
            Resume::After(snapshot) => same_place(snapshot, &boundary),
            Resume::AtAnyHead => true,
        };
        if connects {
            self.found(line);
            let place = self.place(line);
            (self.sink)(Item::Segment { place });
        } else if first || anew {
            if !first && matches!(self.scan.resume, Resume::AtAnyHead) {
                self.lose(line.offset, Reason::Gap { from: boundary.index() });
            }
            self.start(boundary, line);
        } else {
            self.lose(line.offset, Reason::Gap { from: boundary.index() });
        }
    }

    fn line(&mut self, line: &Line<'_>) {
        if !line.ended {
            return self.lose_at(line, Reason::Unended);
        }
        if self.scan.lost.is_some() {
            return self.line_when_lost(line);
        }
        match Marker::parse(line.text) {
            Some(marker) => self.marker(marker, line),
            None => {
                if let Err(error) = self.record(line) {
                    self.lose_at(line, Reason::Line(error));
                }
            }
        }
    }

    fn marker(&mut self, marker: Marker, line: &Line<'_>) {
        // A marker that does not fit proves nothing, so it does not raise `synced`. The next record, if there is one, shows
        // that no record is missing.
        let fits = |end: &Boundary| marker == Marker::new(end.index(), end.chain);
        if !self.scan.end.as_ref().is_some_and(fits) {
            return self.lose(line.offset, Reason::Marker);
        }
        self.scan.synced = self.scan.synced.max(marker.index);
        let (index, place) = (marker.index, self.place(line));
        (self.sink)(Item::Marker { index, place });
    }

    /// Reads the expected record.
    fn record(&mut self, line: &Line<'_>) -> Result<(), LineError> {
        let Some(end) = &self.scan.end else {
            return Err(LineError::Field("record before it"));
        };
        let (record, chain) = line::decode(line.text, end.chain)?;
        if !follows(end.meta.at, record.position) {
            return Err(LineError::Order(record.position));
        }
        self.found(line);
        if let Some(end) = &mut self.scan.end {
            end.meta.absorb(&record);
            end.chain = chain;
        }
        let (line, place) = (line.text, self.place(line));
        (self.sink)(Item::Record { record, line, chain, place });
        Ok(())
    }

    /// While the reader is lost, every marker counts, even with a wrong checksum: the record that it refers to may be the bad
    /// one, and a marker too many only makes a torn log doubtful.
    fn line_when_lost(&mut self, line: &Line<'_>) {
        if let Some(marker) = Marker::parse(line.text) {
            self.scan.synced = self.scan.synced.max(marker.index);
            return;
        }
        if self.record(line).is_err() && !self.record_after_snapshot(line) {
            self.count_swallowed_marker(line);
        }
    }

    fn record_after_snapshot(&mut self, line: &Line<'_>) -> bool {
        let Resume::After(snapshot) = self.scan.resume else {
            return false;
        };
        // The position is read first, because most lines are not the one that is looked for.
        let next = line::position_in(line.text).is_some_and(|position| follows(snapshot.meta.at, position));
        if !next || line::decode(line.text, snapshot.chain).is_err() {
            return false;
        }
        self.start(snapshot.clone(), line);
        self.record(line).is_ok()
    }

    fn start(&mut self, boundary: Boundary, line: &Line<'_>) {
        let place = self.place(line);
        self.scan.lost = None;
        let boundary = self.scan.end.insert(boundary);
        (self.sink)(Item::Start { boundary, place });
    }

    /// The expected record has appeared.
    fn found(&mut self, line: &Line<'_>) {
        let place = self.place(line);
        if let (Some(bad), Some(at)) = (self.scan.lost.take(), &self.scan.end) {
            (self.sink)(Item::Resumed { bad: &bad, at, place });
        }
    }

    /// The line may end with a marker, if the newline between them was damaged. The marker counts anyway.
    fn count_swallowed_marker(&mut self, line: &Line<'_>) {
        if let Some(marker) = Marker::at_end_of(line.text) {
            self.scan.synced = self.scan.synced.max(marker.index);
        }
    }

    fn lose_at(&mut self, line: &Line<'_>, reason: Reason) {
        self.count_swallowed_marker(line);
        self.lose(line.offset, reason);
    }

    fn lose(&mut self, offset: usize, reason: Reason) {
        if self.scan.lost.is_some() {
            return;
        }
        // The first bad line is the one that counts: everything behind it is in doubt already.
        let index = self.scan.due(self.first);
        let path = self.path.to_path_buf();
        let bad = Bad { path, segment: self.first, offset: offset as u64, index, reason };
        (self.sink)(Item::Bad(self.scan.lost.insert(bad)));
    }
}

fn same_place(a: &Boundary, b: &Boundary) -> bool {
    a.meta.at == b.meta.at && a.chain == b.chain
}
