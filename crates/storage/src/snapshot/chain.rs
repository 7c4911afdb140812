//! The files that make up one state, the oldest first: a whole state, then the changes since.

use std::path::Path;
use std::sync::Arc;

use super::check::Head;
use super::error::SnapshotError;
use super::merging::Merging;
use super::names::Stretch;
use super::reader::FileReader;
use super::row::Row;
use super::writer::WrittenFile;
use crate::Boundary;
use crate::files::Files;

/// A file of the chain. It was good when it was last read or written, and is never changed.
#[derive(Debug)]
pub(super) struct Piece {
    pub stretch: Stretch,
    pub boundary: Boundary,
    pub written: WrittenFile,
    /// Shared with the merge that reads the file, while there is one. A merge that is dropped at any point releases its files
    /// by itself.
    pub claim: Arc<()>,
}

impl Piece {
    pub fn new(head: Head, written: WrittenFile) -> Piece {
        let stretch = Stretch { from: head.from, to: head.boundary.index() };
        Piece { stretch, boundary: head.boundary, written, claim: Arc::default() }
    }

    /// Reads the whole file.
    pub fn read(files: &Files, path: &Path, stretch: Stretch) -> Result<Piece, SnapshotError> {
        let mut reader = FileReader::open(files, path, stretch)?;
        while reader.advance()? {}
        let written = WrittenFile { rows: reader.rows(), bytes: reader.bytes() };
        Ok(Piece::new(reader.head().clone(), written))
    }

    pub fn is_claimed(&self) -> bool {
        Arc::strong_count(&self.claim) > 1
    }
}

/// Every line of the state at the end of the chain. All files are opened before the first line is read: a merge that removes
/// a name after that does not matter. Deletions are left out, because the first file is a whole state.
pub(super) fn each_row<E: From<SnapshotError>>(
    files: &Files,
    folder: &Path,
    chain: &[Piece],
    mut each: impl FnMut(&Row) -> Result<(), E>,
) -> Result<(), E> {
    let open =
        |piece: &Piece| FileReader::open(files, &folder.join(piece.stretch.file_name()), piece.stretch);
    let readers: Result<Vec<_>, _> = chain.iter().map(open).collect();
    let mut rows = Merging::new(readers?)?;
    while let Some(row) = rows.advance()? {
        if row.value().is_some() {
            each(row)?;
        }
    }
    Ok(())
}

pub(super) fn load<E: From<SnapshotError>>(
    files: &Files,
    folder: &Path,
    chain: &[Piece],
    mut each: impl FnMut(&str, &str, &str) -> Result<(), E>,
) -> Result<(), E> {
    each_row(files, folder, chain, |row| match row.value() {
        Some(value) => each(row.table(), row.key(), value),
        None => Ok(()),
    })
}
