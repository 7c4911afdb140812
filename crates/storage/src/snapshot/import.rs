//! A state from a peer: it is checked line by line while it is written, into a separate folder next to the chain.
//!
//! ```text
//!  pieces ─► Check ─► FileWriter ─► 7.tmp/… ─ finish ─► Incoming ─ Snapshots::install ─► the next generation
//! ```
//!
//! The lines are written as they come, before it is known whether the whole stream is good. That is safe, because the folder
//! has no meaning until `install` renames it. Each file is durable when its last line has come, and their names when `finish`
//! returns.

use std::io::{self, Read};
use std::path::PathBuf;

use crate::Boundary;
use crate::files::Stream;
use crate::snapshot::chain::{Piece, load};
use crate::snapshot::check::{Check, Head, Step, Trouble};
use crate::snapshot::disk::Unfinished;
use crate::snapshot::error::{SnapshotError, Why};
use crate::snapshot::names::Stretch;
use crate::snapshot::writer::FileWriter;

/// Far more than `CHAIN_FILES_MAX` and the files that are added during a merge. Each costs a file, however small.
const STREAM_FILES_MAX: usize = 1024;

/// Takes a stream in pieces of any size, in bounded memory. If it is dropped before the end, it removes the files that it
/// wrote. It cannot continue after an error, and then removes them, too.
#[derive(Debug)]
pub struct Importer {
    folder: Unfinished,
    chain: Vec<Piece>,
    check: Check,
    open: Option<(Head, FileWriter)>,
    failed: bool,
}

/// A state that is complete and durable but not in use yet. It is removed when this is dropped.
#[derive(Debug)]
pub struct Incoming {
    pub(super) folder: Unfinished,
    pub(super) chain: Vec<Piece>,
    boundary: Boundary,
}

impl Importer {
    pub(super) fn new(folder: Unfinished) -> Importer {
        Importer { folder, chain: Vec::new(), check: Check::default(), open: None, failed: false }
    }

    pub fn write(&mut self, mut bytes: &[u8]) -> Result<(), SnapshotError> {
        if self.failed {
            return Err(self.bad(Why::Unfinished));
        }
        let taken = self.take(&mut bytes);
        self.failed = taken.is_err();
        taken
    }

    /// The state is durable when this returns.
    pub fn finish(self) -> Result<Incoming, SnapshotError> {
        let newest = self.chain.last().map(|piece| piece.boundary.clone());
        match newest {
            // The stream must end between two files.
            Some(boundary) if self.check.is_untouched() && !self.failed => {
                self.folder.sync()?;
                Ok(Incoming { folder: self.folder, chain: self.chain, boundary })
            }
            _ => Err(self.bad(Why::Unfinished)),
        }
    }

    fn take(&mut self, bytes: &mut &[u8]) -> Result<(), SnapshotError> {
        loop {
            match self.check.advance(bytes) {
                Ok(None) => return Ok(()),
                Ok(Some(step)) => self.follow(step)?,
                Err(Trouble::Bad(why)) => return Err(self.bad(why)),
                Err(Trouble::Io(error)) => return Err(SnapshotError::io(&self.path())(error)),
            }
        }
    }

    fn follow(&mut self, step: Step) -> Result<(), SnapshotError> {
        match (step, self.open.take()) {
            (Step::Head(head), None) => {
                let expected = self.chain.last().map_or(0, |piece| piece.stretch.to);
                if head.from != expected {
                    return Err(self.bad(Why::NotAdjacent { expected }));
                }
                if self.chain.len() == STREAM_FILES_MAX {
                    return Err(self.bad(Why::TooManyFiles));
                }
                let writer = FileWriter::create(self.folder.files(), &self.path_of(&head), &head)?;
                self.open = Some((head, writer));
            }
            (Step::Row, Some((head, mut writer))) => {
                writer.row(self.check.row().line())?;
                self.open = Some((head, writer));
            }
            (Step::End, Some((head, writer))) => {
                self.chain.push(Piece::new(head, writer.finish()?));
                self.check = Check::default();
            }
            // `Check` gives the head first, then rows, then the end, so no stream leads here.
            (_, open) => {
                self.open = open;
                return Err(self.bad(Why::Head));
            }
        }
        Ok(())
    }

    fn bad(&self, why: Why) -> SnapshotError {
        SnapshotError::bad(&self.path(), self.check.line(), why)
    }

    /// The file that is being written; between files, the folder.
    fn path(&self) -> PathBuf {
        let folder = self.folder.path().to_path_buf();
        self.open.as_ref().map_or(folder, |(head, _)| self.path_of(head))
    }

    fn path_of(&self, head: &Head) -> PathBuf {
        let stretch = Stretch { from: head.from, to: head.boundary.index() };
        self.folder.path().join(stretch.file_name())
    }
}

impl Incoming {
    pub fn boundary(&self) -> &Boundary {
        &self.boundary
    }

    /// Every line of the state, in order: table, key, value.
    pub fn load<E: From<SnapshotError>>(
        &self,
        each: impl FnMut(&str, &str, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        load(self.folder.files(), self.folder.path(), &self.chain, each)
    }
}

// A state for a peer: the chain's files, one after the other, as they are on disk.

/// Keeps the files open, so later merges and installations do not affect it.
#[derive(Debug)]
pub struct Export {
    pub(super) boundary: Boundary,
    pub(super) bytes: u64,
    /// In reverse order: the next file is the last.
    pub(super) files: Vec<Stream>,
}

impl Export {
    pub fn boundary(&self) -> &Boundary {
        &self.boundary
    }

    /// The length in bytes.
    pub fn length(&self) -> u64 {
        self.bytes
    }
}

impl Read for Export {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(file) = self.files.last_mut() {
            let read = file.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            self.files.pop();
        }
        Ok(0)
    }
}
