//! Reads snapshots from outside: no lock is needed and no file is changed, so a node may use them meanwhile.

use std::io;
use std::path::{Path, PathBuf};

use super::chain::each_row;
use super::error::{Flaw, SnapshotError};
use super::survey::{Survey, survey};
use crate::Boundary;
use crate::files::Files;
use crate::types::Index;

/// A node that merges may remove files between the listing and the reading. It does so a few times a second at most, so if this
/// many attempts fail, there is another reason.
const ATTEMPTS_MAX: usize = 10;

/// The state that a node would find if it started here.
#[derive(Debug)]
pub struct Inspection {
    folder: PathBuf,
    survey: Survey,
}

/// A good file of the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainFile {
    pub path: PathBuf,
    pub from: Index,
    pub boundary: Boundary,
    pub lines: u64,
    pub bytes: u64,
}

/// Reads and checks every file of the chain in the directory.
pub fn inspect(dir: &Path) -> Result<Inspection, SnapshotError> {
    let mut attempts = 1;
    loop {
        match survey(&Files::default(), dir) {
            // A name from the listing is gone: the node has merged or installed meanwhile, so the listing is repeated.
            Err(SnapshotError::Io { error, .. })
                if error.kind() == io::ErrorKind::NotFound && attempts < ATTEMPTS_MAX =>
            {
                attempts += 1;
            }
            Err(error) => return Err(error),
            Ok(survey) => return Ok(Inspection { folder: survey.generation.folder(dir), survey }),
        }
    }
}

impl Inspection {
    pub fn newest(&self) -> Option<&Boundary> {
        self.survey.chain.last().map(|piece| &piece.boundary)
    }

    /// The files of the chain, the oldest first.
    pub fn chain(&self) -> impl Iterator<Item = ChainFile> + '_ {
        self.survey.chain.iter().map(|piece| ChainFile {
            path: self.folder.join(piece.stretch.file_name()),
            from: piece.stretch.from,
            boundary: piece.boundary.clone(),
            lines: piece.written.rows,
            bytes: piece.written.bytes,
        })
    }

    pub fn bad(&self) -> &[Flaw] {
        &self.survey.bad
    }

    /// The files that the next start removes.
    pub fn leftovers(&self) -> &[PathBuf] {
        &self.survey.leftovers
    }

    /// Every line of the newest good state in the form of a single file, with its newline.
    pub fn each_line<E: From<SnapshotError>>(
        &self,
        mut each: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        each_row(&Files::default(), &self.folder, &self.survey.chain, |row| each(row.line()))
    }
}
