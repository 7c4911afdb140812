//! Cuts a segment so that a crash half-way leaves no doubt.
//!
//! A cut happens if another leader's records conflict with those here (P5). No record that is cut was committed. The offset of
//! a record is not kept anywhere: a cut is rare, so the segment is read, and checked, once more.

use std::path::Path;

use super::error::StorageError;
use super::files::Open;
use super::marker::Marker;
use super::meta::Boundary;
use super::scan::{Item, Resume, Scan};
use super::text::{lines, written};
use crate::types::Index;

/// The place where a segment is to end.
#[derive(Debug)]
pub struct Cut {
    pub end: Boundary,
    /// The offset after the last line that stays.
    pub offset: usize,
    /// The greatest index that the markers in the remaining part vouch for.
    /// Markers further back go with the records that they vouch for.
    pub marked: Index,
}

/// Finds the end of record `above` in a segment, with the markers that vouch for it.
/// It is an error if the segment does not have that record: the segment was good at the start, so it was damaged since then.
pub fn find_cut(path: &Path, first: Index, bytes: &[u8], above: Index) -> Result<Cut, StorageError> {
    let mut found: Option<Cut> = None;
    // One segment is read, so there is no other place to resume at.
    let mut scan = Scan::new(Resume::AtAnyHead);
    scan.segment(path, first, bytes, &mut |item| match (item, &mut found) {
        (Item::Start { boundary, place }, None) => {
            let (end, marked) = (boundary.clone(), boundary.index());
            found = Some(Cut { end, offset: place.end as usize, marked });
        }
        (Item::Record { record, chain, place, .. }, Some(cut)) if record.index() <= above => {
            cut.end.meta.absorb(&record);
            cut.end.chain = chain;
            cut.offset = place.end as usize;
        }
        (Item::Marker { index, place }, Some(cut)) if index <= above => {
            cut.marked = index;
            cut.offset = place.end as usize;
        }
        _ => {}
    })?;
    let why = || scan.lost.as_ref().map_or(format!("record {above} is not in it"), ToString::to_string);
    let found = found.filter(|cut| cut.end.index() == above);
    found.ok_or_else(|| StorageError::Damaged { path: path.to_path_buf(), why: why() })
}

/// Makes everything behind `offset` blank, durably. The markers go first: as long as one is left, it vouches for records that
/// may already be half gone, and the log would be doubtful (P27).
pub fn blank_behind(file: &Open, bytes: &[u8], offset: usize) -> Result<(), StorageError> {
    let behind = &bytes[offset..written(bytes).max(offset)];
    if behind.is_empty() {
        return Ok(());
    }
    // Offsets do not change: a marker becomes newlines of the same length, and empty lines have no meaning.
    let mut unmarked = behind.to_vec();
    for line in lines(behind).filter(|line| Marker::at_end_of(line.text).is_some()) {
        unmarked[line.offset..line.offset + line.text.len()].fill(b'\n');
    }
    if unmarked != behind {
        file.write_at(&unmarked, offset as u64)?;
        file.sync()?;
    }
    // This write may be torn in any way: a start keeps the records up to the first gap, and without markers it takes the others
    // for a torn write.
    file.write_at(&vec![b'\n'; behind.len()], offset as u64)?;
    Ok(file.sync()?)
}
