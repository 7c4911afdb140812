//! One file being written: the first line, rows that somebody has checked, the last line; then it is durable.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crc32fast::Hasher;

use super::check::{Head, checksum, end};
use super::error::SnapshotError;

const BUFFER_BYTES: usize = 256 << 10;

/// What may wait to be written to the medium. A merge of the whole state would otherwise pile it all up, and the
/// log's next sync, which shares the disk, would wait behind it.
const UNSYNCED_BYTES_MAX: u64 = 8 << 20;

#[derive(Debug)]
pub(super) struct Writer {
    path: PathBuf,
    file: BufWriter<File>,
    crc: Hasher,
    written: Written,
    unsynced: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Written {
    pub rows: u64,
    pub bytes: u64,
}

impl Writer {
    pub fn create(path: &Path, head: &Head) -> Result<Writer, SnapshotError> {
        let file =
            OpenOptions::new().write(true).create_new(true).open(path).map_err(SnapshotError::io(path))?;
        let file = BufWriter::with_capacity(BUFFER_BYTES, file);
        let (path, crc, written) = (path.to_path_buf(), Hasher::new(), Written::default());
        let mut writer = Writer { path, file, crc, written, unsynced: 0 };
        writer.put(&head.encode())?;
        Ok(writer)
    }

    /// A checked line, with its newline.
    pub fn row(&mut self, line: &str) -> Result<(), SnapshotError> {
        self.written.rows += 1;
        self.put(line)
    }

    /// Durable when it returns, but for the name.
    pub fn finish(mut self) -> Result<Written, SnapshotError> {
        self.put(&end(self.written.rows))?;
        let checksum = checksum(self.crc.clone());
        self.put(&checksum)?;
        self.sync().map_err(SnapshotError::io(&self.path))?;
        Ok(self.written)
    }

    fn put(&mut self, text: &str) -> Result<(), SnapshotError> {
        self.crc.update(text.as_bytes());
        self.written.bytes += text.len() as u64;
        self.unsynced += text.len() as u64;
        let put = self.file.write_all(text.as_bytes());
        let put = put.and_then(|()| if self.unsynced > UNSYNCED_BYTES_MAX { self.sync() } else { Ok(()) });
        put.map_err(SnapshotError::io(&self.path))
    }

    fn sync(&mut self) -> io::Result<()> {
        self.unsynced = 0;
        self.file.flush()?;
        self.file.get_ref().sync_data()
    }
}
