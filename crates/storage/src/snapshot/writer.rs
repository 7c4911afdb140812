//! One file that is being written: the first line, rows that are already checked, the last line; then it is durable.
//!
//! Its name, or that of its folder, is temporary until `Unfinished` gives it the final one. A file that is not finished has no
//! last line, so it could not be taken for a whole one.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crc32fast::Hasher;

use super::check::{Head, checksum, end};
use super::error::SnapshotError;
use crate::files::{Files, Stream};

const BUFFER_BYTES: usize = 256 << 10;

/// The bytes that may wait to be written to the medium. Otherwise a merge of the whole state would pile up all of it, and the
/// log's next sync, which shares the disk, would wait behind it.
const UNSYNCED_BYTES_MAX: u64 = 8 << 20;

#[derive(Debug)]
pub(super) struct FileWriter {
    path: PathBuf,
    file: BufWriter<Stream>,
    crc: Hasher,
    written: WrittenFile,
    unsynced: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WrittenFile {
    pub rows: u64,
    pub bytes: u64,
}

impl FileWriter {
    pub fn create(files: &Files, path: &Path, head: &Head) -> Result<FileWriter, SnapshotError> {
        let file = BufWriter::with_capacity(BUFFER_BYTES, files.create_new(path)?.stream());
        let (path, crc, written) = (path.to_path_buf(), Hasher::new(), WrittenFile::default());
        let mut writer = FileWriter { path, file, crc, written, unsynced: 0 };
        writer.put(&head.encode())?;
        Ok(writer)
    }

    /// `line` is checked, and includes its newline.
    pub fn row(&mut self, line: &str) -> Result<(), SnapshotError> {
        self.written.rows += 1;
        self.put(line)
    }

    /// The file is durable when this returns, except for its name.
    pub fn finish(mut self) -> Result<WrittenFile, SnapshotError> {
        self.put(&end(self.written.rows))?;
        let checksum = checksum(self.crc.clone());
        self.put(&checksum)?;
        self.sync()?;
        Ok(self.written)
    }

    fn put(&mut self, text: &str) -> Result<(), SnapshotError> {
        self.crc.update(text.as_bytes());
        self.written.bytes += text.len() as u64;
        self.unsynced += text.len() as u64;
        self.file.write_all(text.as_bytes()).map_err(SnapshotError::io(&self.path))?;
        if self.unsynced > UNSYNCED_BYTES_MAX {
            self.sync()?;
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), SnapshotError> {
        self.unsynced = 0;
        self.file.flush().map_err(SnapshotError::io(&self.path))?;
        Ok(self.file.get_ref().open().sync()?)
    }
}
