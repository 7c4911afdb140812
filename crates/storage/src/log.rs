//! The log as its writer sees it: the growing segment, how much of it is durable, and the segments allocated ahead.
//!
//! ```text
//!             marked        durable          end
//!               │              │              │
//!  ─ records ───┴─ records ────┴─ records ────┴─ newlines … size
//!               ▲              ▲
//!               │              reported as durable; until a marker follows, a bad line up to here is taken for a torn write
//!               a marker or a head on disk vouches for this much (P27)
//! ```
//!
//! `marked <= durable <= end` between any two calls. The next batch begins with a marker for `durable`; a quiet log gets one
//! by itself. What was appended since the last sync is partly in `gathered` and partly in the file.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use super::counters::Counters;
use super::cut::{Cut, blank_behind, find_cut};
use super::error::StorageError;
use super::files::{Files, Open};
use super::line;
use super::marker::{MARKER_BYTES_MAX, Marker};
use super::meta::Boundary;
use super::segment::{self, Spare};
use super::text::lines;
use crate::protocol::Records;
use crate::types::Index;

type Result<T> = std::result::Result<T, StorageError>;

/// Lines are gathered up to this size before they are written: one system call for a usual group.
const GATHER_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub struct Log {
    files: Files,
    dir: PathBuf,
    segment_bytes: u64,
    /// The first indexes of all segments; the last one grows.
    segments: VecDeque<Index>,
    current: Open,
    size: u64,
    /// The written length of the current segment.
    offset: u64,
    /// Lines that are not yet written.
    gathered: Vec<u8>,
    /// Something was written since the last sync.
    dirty: bool,
    /// The boundary after the last record, gathered or written.
    end: Boundary,
    /// Everything up to here is on disk.
    durable: Index,
    /// A marker or a head vouches for everything up to here.
    marked: Index,
    spares: Vec<Spare>,
    /// The size of the segment that the log waits for.
    wanted: Option<u64>,
    counters: Arc<Counters>,
}

/// The state from which a log continues after it was read from disk. All of it is durable.
#[derive(Debug)]
pub struct Resumed {
    pub files: Files,
    pub dir: PathBuf,
    pub segment_bytes: u64,
    pub segments: VecDeque<Index>,
    pub current: Open,
    pub offset: u64,
    pub end: Boundary,
    pub marked: Index,
}

/// Records that are being written, as far as there is room.
#[derive(Debug)]
pub struct Appending {
    records: Records,
    lines: Bytes,
    next: usize,
    offset: usize,
}

impl Appending {
    pub fn new(records: Records, lines: Bytes) -> Appending {
        Appending { records, lines, next: 0, offset: 0 }
    }
}

impl Log {
    pub fn resume(from: Resumed, counters: Arc<Counters>) -> Result<Log> {
        let size = from.current.size()?;
        let durable = from.end.index();
        Ok(Log {
            size,
            durable,
            files: from.files,
            dir: from.dir,
            segment_bytes: from.segment_bytes,
            segments: from.segments,
            current: from.current,
            offset: from.offset,
            gathered: Vec::new(),
            dirty: false,
            end: from.end,
            marked: from.marked,
            spares: Vec::new(),
            wanted: Some(from.segment_bytes),
            counters,
        })
    }

    /// The size of the segment to allocate, if the log waits for one.
    pub fn wanted(&self) -> Option<u64> {
        self.wanted
    }

    pub fn give(&mut self, spare: Spare) {
        self.wanted = self.wanted.filter(|wanted| spare.size < *wanted);
        self.spares.push(spare);
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn files(&self) -> &Files {
        &self.files
    }

    /// Continues with a batch. Returns false if there is no room for the rest yet.
    pub fn append(&mut self, batch: &mut Appending) -> Result<bool> {
        self.mark();
        while let Some(record) = batch.records.get(batch.next) {
            // A batch may be split over segments, and over calls if there is no room: `next` and `offset` say where it
            // continues.
            let rest = &batch.lines[batch.offset..];
            let line = lines(rest).next().map_or(rest, |line| &rest[..line.end()]);
            // A line is never split over two segments, so each segment can be read by itself.
            if !self.fits(line.len()) && !self.rotate(line.len())? {
                return Ok(false);
            }
            self.gathered.extend_from_slice(line);
            self.end.meta.absorb(record);
            self.end.chain = line::checksum_in(line).expect("lines and records are the same");
            batch.next += 1;
            batch.offset += line.len();
            if self.gathered.len() >= GATHER_BYTES {
                self.write()?;
            }
        }
        Ok(true)
    }

    fn fits(&self, bytes: usize) -> bool {
        self.offset + (self.gathered.len() + bytes) as u64 <= self.size
    }

    /// Writes a marker for the durable part, unless the log has one already.
    fn mark(&mut self) {
        // In the middle of a round `durable` is below the end, and the marker needs the checksum of the record at `durable`,
        // which only the end has. So there is at most one marker for each round.
        let due = self.durable == self.end.index() && self.marked < self.durable;
        if due && self.fits(MARKER_BYTES_MAX) {
            Marker::new(self.durable, self.end.chain).push(&mut self.gathered);
            self.marked = self.durable;
        }
    }

    /// Whether a durable part of the log has no marker yet.
    pub fn is_unmarked(&self) -> bool {
        self.marked < self.durable && self.fits(MARKER_BYTES_MAX)
    }

    /// Writes and syncs a marker by itself. Without it, damage to the newest records of a quiet log would be taken for a torn
    /// write until the next batch comes (P27).
    pub fn mark_when_idle(&mut self) -> Result<()> {
        self.mark();
        self.sync()
    }

    /// Begins a new segment with room for a first record of this length. Returns false if there is no room on disk.
    fn rotate(&mut self, line: usize) -> Result<bool> {
        let Some(spare) = self.take_spare(segment::needed(&self.end, line)) else {
            return Ok(false);
        };
        // A head vouches for everything before it, so all of that must be durable first. Otherwise a power failure here would
        // make the disk doubtful although nothing that it reported is missing.
        self.sync()?;
        let end = self.end.clone();
        self.begin_segment(spare, &end)?;
        Ok(true)
    }

    /// Takes a spare that is large enough, if there is one, and asks for another: usually one of the normal size, ahead of
    /// need; a larger one if a single record is larger than a segment.
    fn take_spare(&mut self, needed: u64) -> Option<Spare> {
        let found = self.spares.iter().position(|spare| spare.size >= needed);
        let spare = found.map(|at| self.spares.swap_remove(at));
        self.wanted = match spare {
            None => Some(needed.max(self.segment_bytes)),
            Some(_) if self.spares.is_empty() => Some(self.segment_bytes),
            Some(_) => self.wanted,
        };
        spare
    }

    fn begin_segment(&mut self, spare: Spare, boundary: &Boundary) -> Result<()> {
        self.size = spare.size;
        (self.current, self.offset) = spare.become_segment(&self.files, &self.dir, boundary, &[])?;
        // A segment that had no room for its first record is replaced by a larger one of the same name.
        if self.segments.back() != Some(&(boundary.index() + 1)) {
            self.segments.push_back(boundary.index() + 1);
        }
        self.marked = boundary.index();
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        if !self.gathered.is_empty() {
            self.current.write_at(&self.gathered, self.offset)?;
            self.offset += self.gathered.len() as u64;
            self.counters.wrote(self.gathered.len());
            self.gathered.clear();
            self.dirty = true;
        }
        Ok(())
    }

    /// Everything appended so far is durable when this returns.
    pub fn sync(&mut self) -> Result<()> {
        self.write()?;
        // A round without records, such as one of votes, costs the log no sync.
        if self.dirty {
            let began = Instant::now();
            self.current.sync()?;
            self.counters.synced(began.elapsed());
            self.dirty = false;
        }
        self.durable = self.end.index();
        Ok(())
    }

    /// Removes every record above this index, durably.
    pub fn truncate(&mut self, above: Index) -> Result<()> {
        self.sync()?;
        if above >= self.end.index() {
            return Ok(());
        }
        // The newest segment goes first, so that after a crash the log just ends earlier.
        // A segment that begins right after `above` stays: its head vouches for `above`, and its records are blanked below.
        while self.segments.len() > 1 && self.last_segment() > above + 1 {
            self.files.remove(&segment::path(&self.dir, self.last_segment()))?;
            self.segments.pop_back();
        }
        self.files.sync_dir(&self.dir)?;
        let first = self.last_segment();
        self.current = self.files.existing(&segment::path(&self.dir, first))?;
        self.size = self.current.size()?;
        let bytes = self.files.read(self.current.path())?;
        let Cut { end, offset, marked } = find_cut(self.current.path(), first, &bytes, above)?;
        blank_behind(&self.current, &bytes, offset)?;
        (self.end, self.offset) = (end, offset as u64);
        (self.durable, self.marked) = (above, marked);
        Ok(())
    }

    /// Restarts the log after a snapshot, which is durable already. Returns false if there is no room.
    pub fn restart(&mut self, boundary: &Boundary) -> Result<bool> {
        assert!(self.gathered.is_empty() && !self.dirty, "the snapshot came after what the log had");
        let Some(spare) = self.take_spare(segment::needed(boundary, 0)) else {
            return Ok(false);
        };
        let first = boundary.index() + 1;
        // Later segments go first: behind the new one they would be a gap, and the next start would find the disk doubtful.
        // Earlier segments go last, because otherwise a crash could leave no segment.
        let (earlier, later): (Vec<_>, Vec<_>) = self.segments.drain(..).partition(|old| *old <= first);
        self.remove(later.into_iter().rev())?;
        self.begin_segment(spare, boundary)?;
        self.remove(earlier.into_iter().filter(|old| *old < first))?;
        self.end = boundary.clone();
        self.durable = boundary.index();
        Ok(true)
    }

    fn remove(&self, segments: impl Iterator<Item = Index>) -> Result<()> {
        let mut any = false;
        for first in segments {
            self.files.remove(&segment::path(&self.dir, first))?;
            any = true;
        }
        if any {
            self.files.sync_dir(&self.dir)?;
        }
        Ok(())
    }

    /// Removes segments whose records are all at or below `upto`. The last segment stays even then, because the log grows in
    /// it. The oldest goes first: a crash between two removals leaves no gap.
    pub fn trim(&mut self, upto: Index) -> Result<()> {
        let next = self.segments.iter().skip(1);
        let gone = next.take_while(|first| **first <= upto.saturating_add(1)).count();
        let gone: Vec<Index> = self.segments.drain(..gone).collect();
        self.remove(gone.into_iter())
    }

    fn last_segment(&self) -> Index {
        *self.segments.back().expect("a log has a segment")
    }
}
