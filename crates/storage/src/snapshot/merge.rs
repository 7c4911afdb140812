//! Files of a chain becoming one, in three steps, so that only the first and the last need the chain.

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

/// What is to be merged. No other merge is planned for the same files while this or its result lives.
#[derive(Debug)]
pub struct Merge {
    pub(super) room: SnapshotFolder,
    pub(super) generation: Generation,
    pub(super) inputs: Vec<Input>,
    pub(super) head: Head,
    pub(super) bytes: u64,
}

/// Open already: an installation may remove the file's name while it is read.
#[derive(Debug)]
pub(super) struct Input {
    pub file: Open,
    pub stretch: Stretch,
    pub claim: Arc<()>,
}

/// A merge that is done and durable, to be handed to `Snapshots::commit_merge`. Dropped, it is gone.
#[derive(Debug)]
pub struct Merged {
    pub(super) generation: Generation,
    pub(super) file: Unfinished,
    pub(super) piece: Piece,
    pub(super) claims: Vec<Arc<()>>,
}

impl Merge {
    /// How much it reads, and about how much it writes: a large one is better not waited for.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads and checks every input, so that what has become bad since is not given a new checksum.
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
            if !whole || row.value().is_some() {
                writer.row(row.line())?;
            }
        }
        let piece = Piece::new(self.head, writer.finish()?);
        Ok(Merged { generation: self.generation, file, piece, claims })
    }
}
