//! Reads the log into memory, and judges which part of it can be used.
//!
//! ```text
//!  segments ─► Scan: Items ─► Gathering: one log from some boundary on, junk, replaced parts ─► Gathered
//!                                                                                                  │ judge(snapshot)
//!                                               findings, and whether the log is kept ◄────────────┘
//! ```
//!
//! This module changes no file. A loss can be told from a torn write only while all traces of it are still there.

use std::path::Path;

use super::error::StorageError;
use super::files::Files;
use super::finding::{Doubt, Finding};
use super::lines::{Building, Lines};
use super::meta::Boundary;
use super::scan::{Bad, Item, Place, Reason, Resume, Scan};
use super::segment;
use crate::protocol::{BadLine, Tail, judge};
use crate::types::{Index, Position, Record};

/// Records that are kept below the newest snapshot, for followers that lag. More would cost memory and time at the start, and
/// a follower that lags farther catches up faster by a snapshot (P26). The files keep older records until the log is trimmed.
pub const RECORDS_KEPT_MAX: u64 = 10_000;
/// The same bound in bytes, for large records.
pub const BYTES_KEPT_MAX: usize = 64 << 20;

/// The good and the bad parts of a log.
#[derive(Debug)]
pub struct Gathered {
    pub segments: Vec<Index>,
    /// `None` if no part of the log is good.
    pub log: Option<Checked>,
    pub junk: Vec<Junk>,
    pub replaced: Vec<Bad>,
    /// The log ends here, with a bad line.
    pub lost: Option<Bad>,
    pub synced: Index,
}

/// The log from some boundary on.
#[derive(Debug)]
pub struct Checked {
    pub base: Boundary,
    pub records: Vec<Record>,
    pub lines: Lines,
    /// The segment with the first of the records.
    pub first: Index,
    /// The segment also has lines before these records.
    pub amid: bool,
    /// The segment with the last record, and the end of that record.
    pub last: Index,
    pub offset: u64,
    pub end: Boundary,
    pub marked: Index,
}

/// A damaged line that was not a record: a marker, a head, or bytes between records. This is known because the record that
/// was due at the line comes after it.
#[derive(Debug)]
pub struct Junk {
    pub bad: Bad,
    /// The boundary of the log at that place.
    pub at: Boundary,
    /// The offset at which the log continues, if it does so in the same file.
    pub upto: Option<u64>,
}

/// The decision about the log that was read.
#[derive(Debug)]
pub struct Verdict {
    /// The log can be used. Otherwise a new log begins after the snapshot.
    pub keep: bool,
    pub findings: Vec<Finding>,
}

/// Reads every segment. The snapshot is the place where the log may begin again after a bad line.
pub fn gather(files: &Files, dir: &Path, snapshot: &Boundary) -> Result<Gathered, StorageError> {
    let segments = segment::list(files, dir)?;
    let mut gathering = Gathering::default();
    let mut scan = Scan::new(Resume::After(snapshot));
    for first in &segments {
        let path = segment::path(dir, *first);
        let bytes = files.read(&path)?;
        scan.segment(&path, *first, &bytes, &mut |item| gathering.take(item))?;
    }
    let Gathering { mut log, mut building, mut junk, replaced, .. } = gathering;
    if let Some(log) = &mut log {
        log.lines.finish(&mut building);
        log.end = scan.end.clone().unwrap_or_default();
        // Bad lines in older files are removed with these files. If the log begins inside a file, that file is rewritten.
        junk.retain(|junk| junk.bad.segment > log.first || (junk.bad.segment == log.first && !log.amid));
    }
    Ok(Gathered { segments, log, junk, replaced, lost: scan.lost, synced: scan.synced })
}

#[derive(Debug, Default)]
struct Gathering {
    log: Option<Checked>,
    building: Building,
    junk: Vec<Junk>,
    replaced: Vec<Bad>,
    /// A bad line that is not classified yet.
    bad: Option<Bad>,
}

impl Gathering {
    fn take(&mut self, item: Item<'_>) {
        match item {
            Item::Start { boundary, place } => self.start(boundary, place),
            Item::Bad(bad) => self.bad = Some(bad.clone()),
            Item::Resumed { bad, at, place } => {
                self.bad = None;
                let upto = (place.segment == bad.segment).then_some(place.offset);
                self.junk.push(Junk { bad: bad.clone(), at: at.clone(), upto });
            }
            Item::Segment { place } => {
                self.reach(place);
                if let Some(log) = &mut self.log {
                    log.marked = place.segment - 1;
                }
            }
            Item::Marker { index, place } => {
                self.reach(place);
                if let Some(log) = &mut self.log {
                    log.marked = index;
                }
            }
            Item::Record { record, line, chain, place } => {
                self.reach(place);
                if let Some(log) = &mut self.log {
                    log.records.push(record);
                    log.lines.push_line(line, chain, &mut self.building);
                }
            }
        }
    }

    fn start(&mut self, boundary: &Boundary, place: Place<'_>) {
        // The log begins here. The records read so far are not part of it, nor is a bad line, whose loss the snapshot makes
        // up for.
        self.replaced.extend(self.bad.take());
        self.building = Building::default();
        let amid = place.offset > 0;
        self.log = Some(Checked {
            base: boundary.clone(),
            records: Vec::new(),
            lines: Lines::new(boundary),
            first: place.segment,
            amid,
            last: place.segment,
            // After a head the log continues behind the head. In the middle of a segment the line here is the first record
            // itself.
            offset: if amid { place.offset } else { place.end },
            end: boundary.clone(),
            marked: boundary.index(),
        });
    }

    fn reach(&mut self, place: Place<'_>) {
        if let Some(log) = &mut self.log {
            (log.last, log.offset) = (place.segment, place.end);
        }
    }
}

impl Gathered {
    /// Judges whether the log continues from the snapshot, and whether something was forgotten (P27). If `complete` is set,
    /// the directory once had a log, so a missing log is a loss.
    ///
    /// A log that ends before the snapshot is not a loss by itself: a snapshot from a peer, or of a merge, is durable before
    /// the log follows it (`writer.rs`). A log that begins beyond the snapshot has a gap.
    pub fn judge(&self, snapshot: &Boundary, complete: bool) -> Verdict {
        let mut findings: Vec<Finding> =
            self.junk.iter().map(|junk| Finding::Repaired(junk.bad.clone())).collect();
        findings.extend(self.replaced.iter().cloned().map(Finding::Replaced));
        findings.extend(self.lost.as_ref().map(|bad| self.judge_end(bad, snapshot)));
        let fit = self.log.as_ref().map_or(Fit::Nothing, |log| log.fit(snapshot));
        match fit {
            Fit::Good => {}
            Fit::Nothing if self.segments.is_empty() && complete => {
                findings.push(Finding::Doubtful(Doubt::NoLog));
            }
            // The log has no good part; the bad part has already been judged.
            Fit::Nothing => {}
            Fit::Beyond(to) => findings.push(Finding::Doubtful(Doubt::Gap { from: snapshot.index(), to })),
            Fit::Superseded(log) => {
                findings.push(Finding::Superseded { log, snapshot: snapshot.meta.at });
            }
            // One position names one record (P5), so log and snapshot cannot both be as they were written.
            Fit::Mismatch => {
                findings.push(Finding::Doubtful(Doubt::Mismatch { at: snapshot.meta.at }));
            }
        }
        Verdict { keep: fit == Fit::Good, findings }
    }

    /// Records in the snapshot are not lost, so a bad line before its end counts as the first line after it.
    fn judge_end(&self, bad: &Bad, snapshot: &Boundary) -> Finding {
        let index = bad.index.max(snapshot.index() + 1);
        let tail = match bad.reason {
            Reason::Line(_) | Reason::Unended | Reason::Marker => {
                judge(BadLine { index, synced: self.synced })
            }
            // Head and length are durable before the file has a name, so no power failure cuts them short.
            Reason::Head(_) | Reason::Gap { .. } | Reason::Shortened { .. } => Tail::Doubtful,
        };
        match tail {
            Tail::Torn if bad.index < index => Finding::Replaced(bad.clone()),
            Tail::Torn => Finding::Cut(bad.clone()),
            Tail::Doubtful => Finding::Doubtful(Doubt::Line { bad: bad.clone(), synced: self.synced }),
        }
    }
}

/// The relation between a log and the newest snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    Good,
    Nothing,
    /// The log begins after this record, beyond the snapshot.
    Beyond(Index),
    /// The log ends before the snapshot, or is of another history: the committed history was installed as the snapshot.
    Superseded(Position),
    Mismatch,
}

impl Checked {
    fn fit(&self, snapshot: &Boundary) -> Fit {
        let at = snapshot.index();
        let position = match at.checked_sub(self.base.index()) {
            None => return Fit::Beyond(self.base.index()),
            // The log begins exactly where the snapshot ends.
            Some(0) => Some(self.base.meta.at),
            Some(above) => self.records.get(above as usize - 1).map(|record| record.position),
        };
        match position {
            Some(position) if position == snapshot.meta.at => match self.lines.chain_at(at) {
                Some(chain) if chain == snapshot.chain => Fit::Good,
                _ => Fit::Mismatch,
            },
            _ => Fit::Superseded(self.end.meta.at),
        }
    }

    /// No record comes before the first one, so the vector of the base is known to be empty. A log that has lost its first
    /// segments cannot know what came before: it needs the vector of a head or of a snapshot (P31).
    pub fn tell_histories_apart(&mut self) {
        if self.base.index() == 0 {
            self.base.meta.vector.get_or_insert_default();
        }
    }

    /// Drops records that are too old to be useful, in memory only.
    pub fn shorten(&mut self, snapshot: &Boundary) {
        let below = snapshot.index().saturating_sub(self.base.index()) as usize;
        // The vector of the included histories is in the snapshot only, so the log begins there.
        let unsaid = self.base.meta.vector.is_none() && snapshot.meta.vector.is_some();
        let kept_most = if unsaid { 0 } else { RECORDS_KEPT_MAX };
        let (mut kept, mut bytes) = (0, 0);
        for record in self.records[..below].iter().rev() {
            bytes += record.entry.size();
            if kept == kept_most || bytes > BYTES_KEPT_MAX {
                break;
            }
            kept += 1;
        }
        let gone = below - kept as usize;
        for record in self.records.drain(..gone) {
            self.base.meta.absorb(&record);
        }
        if unsaid {
            self.base.meta.vector.clone_from(&snapshot.meta.vector);
        }
        self.lines.trim(self.base.index());
        self.base.chain = self.lines.chain_at(self.base.index()).unwrap_or(self.base.chain);
    }
}
