//! Merges files of a chain into one, in three steps. Only the first and the last step need the chain.
//!
//! ```text
//!  Snapshots::plan_merge ─► Merge ─ run ─► Merged ─► Snapshots::commit_merge
//!    with the lock                without it             with the lock
//! ```
//!
//! So snapshots are added and installed while a large merge runs. However the chain changes meanwhile, the result is either
//! put in the place of exactly its inputs, or dropped.

use std::sync::Arc;

use super::chain::Piece;
use super::check::Head;
use super::disk::{SnapshotFolder, Unfinished};
use super::error::SnapshotError;
use super::merging::Merging;
use super::names::{Generation, Stretch};
use super::reader::FileReader;
use super::writer::FileWriter;
use crate::files::Open;

/// The files to merge. No other merge is planned for them while this merge or its result exists.
#[derive(Debug)]
pub struct Merge {
    pub(super) room: SnapshotFolder,
    pub(super) generation: Generation,
    pub(super) inputs: Vec<Input>,
    pub(super) head: Head,
    pub(super) bytes: u64,
}

/// The file is already open: an installation may remove its name meanwhile.
#[derive(Debug)]
pub(super) struct Input {
    pub file: Open,
    pub stretch: Stretch,
    pub claim: Arc<()>,
}

/// A merge that is complete and durable, for `Snapshots::commit_merge`. Its file is removed when this is dropped.
#[derive(Debug)]
pub struct Merged {
    pub(super) generation: Generation,
    pub(super) file: Unfinished,
    pub(super) piece: Piece,
    pub(super) claims: Vec<Arc<()>>,
}

impl Merge {
    /// The number of bytes that it reads, and about the number that it writes. Callers should not wait for a large merge.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads and checks every input, so that a file which has become bad since does not get a new checksum.
    pub fn run(self) -> Result<Merged, SnapshotError> {
        let (mut readers, mut claims) = (Vec::new(), Vec::new());
        for Input { file, stretch, claim } in self.inputs {
            readers.push(FileReader::new(file, stretch)?);
            claims.push(claim);
        }
        let mut rows = Merging::new(readers)?;
        let file = Unfinished::file(&self.room);
        let mut writer = FileWriter::create(file.files(), file.path(), &self.head)?;
        let whole = self.head.from == 0;
        while let Some(row) = rows.advance()? {
            // A deletion is dropped only from a whole state, where no older file can have the key. Until then it must stay,
            // or the key would come back.
            if !whole || row.value().is_some() {
                writer.row(row.line())?;
            }
        }
        let piece = Piece::new(self.head, writer.finish()?);
        Ok(Merged { generation: self.generation, file, piece, claims })
    }
}
