//! Several consecutive files, read as one: for every key the newest line, in order.
//!
//! Memory is one buffer and one line per file, however large the files are.
//!
//! All files are sorted alike, so the next row is the least of the rows at their fronts. If several files have the key, the
//! newest one decides, and its older rows are skipped without a look at their values.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use super::error::SnapshotError;
use super::reader::FileReader;
use super::row::Row;

#[derive(Debug)]
pub(super) struct Merging {
    sources: BinaryHeap<Source>,
    /// The table of the last row. It is empty at first, which is not the name of a table.
    table: String,
    key: String,
}

/// A file with a row left. The greatest of the sources is next: the first row in order and, for equal keys, the newest file.
#[derive(Debug)]
struct Source {
    reader: FileReader,
    age: usize,
}

impl Merging {
    /// `readers` are ordered from the oldest file to the newest.
    pub fn new(readers: impl IntoIterator<Item = FileReader>) -> Result<Merging, SnapshotError> {
        let mut sources = BinaryHeap::new();
        for (age, mut reader) in readers.into_iter().enumerate() {
            if reader.advance()? {
                sources.push(Source { reader, age });
            }
        }
        Ok(Merging { sources, table: String::new(), key: String::new() })
    }

    /// The next row. `None` means that every file was good to its end: only then can the earlier rows be relied on, because
    /// the checksum of a file comes last.
    pub fn advance(&mut self) -> Result<Option<&Row>, SnapshotError> {
        self.leave_place()?;
        let Some(first) = self.sources.peek() else {
            return Ok(None);
        };
        let row = first.reader.row();
        self.table.clear();
        self.table.push_str(row.table());
        self.key.clear();
        self.key.push_str(row.key());
        Ok(Some(row))
    }

    /// Skips the last row, and the older rows of the same key.
    fn leave_place(&mut self) -> Result<(), SnapshotError> {
        while let Some(mut first) = self.sources.peek_mut() {
            // The row in use is left only now, so that `advance` can return it without a copy.
            if first.reader.row().place() != (&self.table, &self.key) {
                break;
            }
            if !first.reader.advance()? {
                PeekMut::pop(first);
            }
        }
        Ok(())
    }
}

impl Ord for Source {
    fn cmp(&self, other: &Source) -> Ordering {
        let place = other.reader.row().place().cmp(&self.reader.row().place());
        place.then(self.age.cmp(&other.age))
    }
}

impl PartialOrd for Source {
    fn partial_cmp(&self, other: &Source) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Source {
    fn eq(&self, other: &Source) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Source {}
