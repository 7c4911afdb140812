//! Repairs the files of the log as decided, so that the next start finds nothing to decide.
//!
//! If a crash stops the repair after any step, the log is still read the same way. So the order of the steps matters:
//!
//! - `keep`: later segments go, the newest first; bad lines are cleared; the end is cut; the first segment is rewritten;
//!   earlier segments go.
//! - `start_after_snapshot`: space is allocated; later segments go, the newest first; the new segment gets its name; earlier segments
//!   go.
//!
//! The caller records a loss first: the new incarnation is durable, and copies of bad files are in the quarantine. A repair that
//! removed the traces first would let a disk that has forgotten something continue as if nothing had happened.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use super::cut::blank_behind;
use super::error::StorageError;
use super::files::{Files, Open};
use super::gather::{Checked, Gathered, Junk};
use super::log::Resumed;
use super::meta::Boundary;
use super::quarantine::Quarantine;
use super::scan::{Bad, Reason};
use super::segment::{self, allocate};
use crate::types::Index;

/// The log's directory, and the length of a new segment.
#[derive(Clone, Debug)]
pub struct LogPlace {
    pub files: Files,
    pub dir: PathBuf,
    pub segment_bytes: u64,
}

impl LogPlace {
    fn path(&self, first: Index) -> PathBuf {
        segment::path(&self.dir, first)
    }

    fn resumed(
        &self,
        segments: Vec<Index>,
        current: Open,
        offset: u64,
        end: Boundary,
        marked: Index,
    ) -> Resumed {
        let segments = VecDeque::from(segments);
        Resumed {
            files: self.files.clone(),
            dir: self.dir.clone(),
            segment_bytes: self.segment_bytes,
            segments,
            current,
            offset,
            end,
            marked,
        }
    }

    /// The log continues after its last good line. Later segments are moved to the quarantine, if there is one, or removed.
    /// Earlier segments are removed. There is a quarantine only if the disk is doubtful.
    pub fn keep(
        &self,
        gathered: &Gathered,
        log: &Checked,
        quarantine: Option<&mut Quarantine>,
    ) -> Result<Resumed, StorageError> {
        let after: Vec<Index> = gathered.segments.iter().copied().filter(|first| *first > log.last).collect();
        let before: Vec<Index> =
            gathered.segments.iter().copied().filter(|first| *first < log.first).collect();
        // The newest segment goes first, so that after a crash the log just ends earlier.
        self.drop_all(after.into_iter().rev(), quarantine)?;
        // Lines that held no record. If a write that clears one is torn, the rest of the line is still bad, and the record after
        // it still shows that nothing is missing.
        for junk in &gathered.junk {
            self.clear(junk)?;
        }
        let path = self.path(log.last);
        let mut current = self.files.existing(&path)?;
        self.lengthen(&current, gathered.lost.as_ref())?;
        blank_behind(&current, &self.files.read(&path)?, log.offset as usize)?;
        // The process before may have died between a write and its sync.
        // Then its records were read from the system's cache. They count as durable from here on (`Log::resume`).
        current.sync()?;
        let mut offset = log.offset;
        let mut kept = gathered.segments.clone();
        kept.retain(|first| (log.first..=log.last).contains(first));
        if log.amid {
            let (file, written) = self.rewrite_first(log, &kept)?;
            kept[0] = log.base.index() + 1;
            if kept.len() == 1 {
                (current, offset) = (file, written);
            }
        }
        self.drop_all(before.into_iter(), None)?;
        self.files.sync_dir(&self.dir)?;
        Ok(self.resumed(kept, current, offset, log.end.clone(), log.marked))
    }

    /// The first segment has damaged lines before the first good record: its good part becomes a new segment.
    fn rewrite_first(&self, log: &Checked, kept: &[Index]) -> Result<(Open, u64), StorageError> {
        let upto = kept.get(1).map_or(log.end.index(), |next| next - 1);
        let base = log.base.index();
        let lines = log.lines.slice(base, (upto - base) as usize).unwrap_or_default();
        let needed = segment::needed(&log.base, lines.len());
        let spare = allocate(&self.files, &self.dir, needed.max(self.segment_bytes))?;
        let new = spare.become_segment(&self.files, &self.dir, &log.base, &lines)?;
        // If a crash comes before this, the old segment is read again, then the new one, whose head is that of the snapshot:
        // the log begins there.
        if log.first != base + 1 {
            self.files.remove(&self.path(log.first))?;
        }
        Ok(new)
    }

    /// A new log begins after the snapshot.
    /// The segments that were found go. The space is allocated first: if there is none, nothing has been removed.
    pub fn start_after_snapshot(
        &self,
        found: &[Index],
        snapshot: &Boundary,
        mut quarantine: Option<&mut Quarantine>,
    ) -> Result<Resumed, StorageError> {
        let first = snapshot.index() + 1;
        let spare = allocate(&self.files, &self.dir, segment::needed(snapshot, 0).max(self.segment_bytes))?;
        // Later segments go before the new one has its name. Behind it they would be a gap, and the next start would find the
        // disk doubtful.
        let later = found.iter().copied().rev().filter(|old| *old > first);
        self.drop_all(later, quarantine.as_deref_mut())?;
        if let (true, Some(quarantine)) = (found.contains(&first), quarantine.as_deref_mut()) {
            quarantine.copy(&self.path(first))?;
        }
        // From here on the log is the new segment, even if a crash leaves earlier ones.
        let (current, offset) = spare.become_segment(&self.files, &self.dir, snapshot, &[])?;
        let earlier = found.iter().copied().filter(|old| *old < first);
        self.drop_all(earlier, quarantine)?;
        Ok(self.resumed(vec![first], current, offset, snapshot.clone(), snapshot.index()))
    }

    fn drop_all(
        &self,
        segments: impl Iterator<Item = Index>,
        mut quarantine: Option<&mut Quarantine>,
    ) -> Result<(), StorageError> {
        for first in segments {
            let path = self.path(first);
            match &mut quarantine {
                Some(quarantine) => quarantine.take(&path)?,
                None => self.files.remove(&path)?,
            }
        }
        Ok(self.files.sync_dir(&self.dir)?)
    }

    fn lengthen(&self, file: &Open, bad: Option<&Bad>) -> Result<(), StorageError> {
        match bad.map(|bad| (&bad.path, bad.reason)) {
            Some((path, Reason::Shortened { size })) if path == file.path() => segment::lengthen(file, size),
            _ => Ok(()),
        }
    }

    /// Replaces damaged lines by newlines, or by the head that belongs there. If the bad stretch ends in a later file, this file
    /// is cleared up to its end.
    fn clear(&self, junk: &Junk) -> Result<(), StorageError> {
        let path = self.path(junk.bad.segment);
        let bytes = self.files.read(&path)?;
        let file = self.files.existing(&path)?;
        let from = junk.bad.offset as usize;
        let Some(upto) = junk.upto.map(|upto| upto as usize) else {
            self.lengthen(&file, Some(&junk.bad))?;
            return blank_behind(&file, &bytes, from);
        };
        let mut clear = vec![b'\n'; upto - from];
        if from == 0 {
            let head = segment::head(bytes.len() as u64, &junk.at).into_bytes();
            let length = head.len().min(clear.len());
            clear[..length].copy_from_slice(&head[..length]);
        }
        file.write_at(&clear, junk.bad.offset)?;
        Ok(file.sync()?)
    }
}

/// Copies the segments with bad lines, before anything is changed.
pub fn save_bad(dir: &Path, gathered: &Gathered, quarantine: &mut Quarantine) -> Result<(), StorageError> {
    match &gathered.lost {
        Some(bad) => quarantine.copy(&segment::path(dir, bad.segment)),
        None => Ok(()),
    }
}
