//! One file, read line by line through a buffer of fixed size, and checked while it is read.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use super::check::{Check, Head, Step, Trouble};
use super::error::{SnapshotError, Why};
use super::names::Stretch;
use super::row::Row;
use crate::files::{Files, Open, Stream};

/// Large enough that the cost of system calls does not matter. With every file of a chain open at once it is still a few
/// megabytes.
const BUFFER_BYTES: u64 = 256 << 10;

#[derive(Debug)]
pub(super) struct FileReader {
    path: PathBuf,
    input: BufReader<Stream>,
    bytes: u64,
    check: Check,
    head: Head,
}

impl FileReader {
    pub fn open(files: &Files, path: &Path, stretch: Stretch) -> Result<FileReader, SnapshotError> {
        FileReader::new(files.open(path)?, stretch)
    }

    /// Reads the first line, which must agree with the name.
    pub fn new(file: Open, stretch: Stretch) -> Result<FileReader, SnapshotError> {
        let (path, bytes) = (file.path().to_path_buf(), file.size()?);
        let mut input = BufReader::with_capacity(bytes.clamp(1, BUFFER_BYTES) as usize, file.stream());
        let mut check = Check::default();
        let head = match step(&mut check, &mut input, &path)? {
            Step::Head(head) => head,
            Step::Row | Step::End => return Err(SnapshotError::bad(&path, 1, Why::Head)),
        };
        if stretch != (Stretch { from: head.from, to: head.boundary.index() }) {
            return Err(SnapshotError::bad(&path, 1, Why::Stretch));
        }
        Ok(FileReader { path, input, bytes, check, head })
    }

    /// Moves to the next row, if there is one. At the end it returns false only if the whole file was good.
    pub fn advance(&mut self) -> Result<bool, SnapshotError> {
        let bad = |line, why| SnapshotError::bad(&self.path, line, why);
        match step(&mut self.check, &mut self.input, &self.path)? {
            Step::Row => Ok(true),
            Step::Head(_) => Err(bad(self.check.line(), Why::Head)),
            Step::End => {
                // `Check` has seen the last line. Bytes after it are not covered by its checksum.
                let rest = self.input.fill_buf().map_err(SnapshotError::io(&self.path))?;
                if rest.is_empty() { Ok(false) } else { Err(bad(self.check.line() + 1, Why::AfterEnd)) }
            }
        }
    }

    pub fn row(&self) -> &Row {
        self.check.row()
    }

    pub fn rows(&self) -> u64 {
        self.check.rows()
    }

    pub fn head(&self) -> &Head {
        &self.head
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    #[cfg(test)]
    pub fn buffer_bytes(&self) -> usize {
        self.input.capacity()
    }
}

fn step(check: &mut Check, input: &mut BufReader<Stream>, path: &Path) -> Result<Step, SnapshotError> {
    match check.advance(input) {
        Ok(Some(step)) => Ok(step),
        // A file has no more bytes to wait for, unlike a stream.
        Ok(None) => Err(SnapshotError::bad(path, check.line(), Why::Unfinished)),
        Err(Trouble::Bad(why)) => Err(SnapshotError::bad(path, check.line(), why)),
        Err(Trouble::Io(error)) => Err(SnapshotError::io(path)(error)),
    }
}
