//! The files that the log is divided into: names, heads, and space allocated ahead.
//!
//! A segment begins with the boundary that it continues from, so that the log can lose its older segments and still have the
//! state's meta. It is filled with newlines before it is used. So a full disk is noticed when space is allocated, never in the
//! middle of a write (P24), and a write only changes bytes that exist.

use std::path::{Path, PathBuf};

use super::error::StorageError;
use super::files::{Files, Open};
use super::meta::Boundary;
use super::text::{SealError, seal, unseal};
use crate::types::Index;

/// Takes some seconds of the heaviest load to fill, and some ten milliseconds to read. The log is trimmed by whole segments,
/// so up to one segment of records stays on disk after they have been trimmed.
pub const SEGMENT_BYTES: u64 = 8 << 20;

pub const LOG_DIR: &str = "log";

const NAME: &str = "eldest-log";
pub const LOG_FORMAT: u32 = 1;

/// A segment is filled in pieces, each synced, so that the log's own syncs do not wait behind eight megabytes.
const FILL_BYTES: usize = 1 << 20;

const SPARE: &str = "spare-";

/// A file of newlines, durable, under a name that has no meaning yet.
#[derive(Debug)]
pub struct Spare {
    pub file: Open,
    pub size: u64,
}

pub fn file_name(first: Index) -> String {
    format!("{first:020}.log")
}

pub fn path(dir: &Path, first: Index) -> PathBuf {
    dir.join(file_name(first))
}

pub fn first_of(name: &str) -> Option<Index> {
    let number = name.strip_suffix(".log")?;
    let first = number.parse().ok()?;
    (file_name(first) == name).then_some(first)
}

/// The first indexes of all segments, ascending. The order of the names is the order of the indexes, because every name has
/// twenty digits. Names that `file_name` does not produce are not segments.
pub fn list(files: &Files, dir: &Path) -> Result<Vec<Index>, StorageError> {
    Ok(files.names_if_there(dir)?.iter().filter_map(|name| first_of(name)).collect())
}

/// The first line of a segment: the length of the file, so that a shortened file is detected, and the boundary that it
/// continues from.
pub fn head(size: u64, boundary: &Boundary) -> String {
    seal(NAME, LOG_FORMAT, &format!("{size} {}", boundary.to_json()))
}

/// Parses a head line without its newline.
pub fn parse_head(line: &[u8], first: Index) -> Result<(u64, Boundary), SealError> {
    let text = unseal(NAME, LOG_FORMAT, line)?;
    let parsed =
        text.split_once(' ').and_then(|(size, json)| Some((size.parse().ok()?, Boundary::from_json(json)?)));
    let (size, boundary) = parsed.ok_or(SealError::Bad("no size and boundary"))?;
    let follows = boundary.index().checked_add(1) == Some(first);
    if follows { Ok((size, boundary)) } else { Err(SealError::Bad("the file name has another index")) }
}

/// The space for a segment that begins with these lines. The head includes the size in decimal. The size is not known yet, so
/// the greatest number stands in for it.
pub fn needed(boundary: &Boundary, lines: usize) -> u64 {
    (head(u64::MAX, boundary).len() + lines) as u64
}

/// Restores the length of a shortened segment.
/// A segment shorter than its head says is doubtful at each start (P27), so a repair must bring the length back.
pub fn lengthen(file: &Open, size: u64) -> Result<(), StorageError> {
    let from = file.size()?;
    if from < size { fill(file, from, size) } else { Ok(()) }
}

/// Creates a file of newlines. On failure the file is removed, because its space may be needed elsewhere.
pub fn allocate(files: &Files, dir: &Path, size: u64) -> Result<Spare, StorageError> {
    let taken =
        files.names_if_there(dir)?.into_iter().filter_map(|name| name.strip_prefix(SPARE)?.parse().ok());
    // An earlier spare may still be there, so this takes a number that is not in use. The order of the numbers has no meaning.
    let number = taken.max().unwrap_or(0u64).saturating_add(1);
    let path = dir.join(format!("{SPARE}{number}"));
    let file = files.create(&path)?;
    match fill(&file, 0, size).and_then(|()| Ok(files.sync_dir(dir)?)) {
        Ok(()) => Ok(Spare { file, size }),
        Err(error) => {
            files.remove(&path)?;
            Err(error)
        }
    }
}

/// Writes the newlines instead of only extending the file: a write into a hole can fail on a full disk.
fn fill(file: &Open, mut offset: u64, size: u64) -> Result<(), StorageError> {
    let newlines = vec![b'\n'; FILL_BYTES.min((size - offset) as usize)];
    while offset < size {
        let length = (size - offset).min(FILL_BYTES as u64);
        file.write_at(&newlines[..length as usize], offset)?;
        file.sync()?;
        offset += length;
    }
    Ok(())
}

/// Removes spares of an earlier process, because it is unknown how far they were filled.
pub fn remove_spares(files: &Files, dir: &Path) -> Result<(), StorageError> {
    let names = files.names_if_there(dir)?;
    let mut spares = names.iter().filter(|name| name.starts_with(SPARE)).peekable();
    let any = spares.peek().is_some();
    for name in spares {
        files.remove(&dir.join(name))?;
    }
    if any {
        files.sync_dir(dir)?;
    }
    Ok(())
}

impl Spare {
    /// Becomes the segment after this boundary, and replaces one of the same name. `lines` follow its head. Returns the written
    /// length.
    pub fn become_segment(
        mut self,
        files: &Files,
        dir: &Path,
        boundary: &Boundary,
        lines: &[u8],
    ) -> Result<(Open, u64), StorageError> {
        let mut text = head(self.size, boundary).into_bytes();
        text.extend_from_slice(lines);
        // Head and lines are durable before the name is: a segment with a bad head is doubtful (P27), because no crash leaves
        // one.
        self.file.write_at(&text, 0)?;
        self.file.sync()?;
        self.file.rename(files, &path(dir, boundary.index() + 1))?;
        files.sync_dir(dir)?;
        Ok((self.file, text.len() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_its_first_index() {
        assert_eq!(file_name(1001), "00000000000000001001.log");
        assert_eq!(first_of("00000000000000001001.log"), Some(1001));
        for name in ["1001.log", "00000000000000001001.lo", "+0000000000000001001.log", "spare-1"] {
            assert_eq!(first_of(name), None, "{name}");
        }
    }

    #[test]
    fn a_head_belongs_to_its_segment() {
        let boundary = Boundary { chain: 7, ..Boundary::default() };
        let line = head(640, &boundary);
        assert!(line.len() as u64 <= needed(&boundary, 0));
        let line = line.trim_end().as_bytes();
        assert_eq!(parse_head(line, 1), Ok((640, boundary)));
        assert!(parse_head(line, 2).is_err());
    }
}
