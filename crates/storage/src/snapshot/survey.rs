//! The content of a directory of snapshots: the chain, bad files, and files to remove. This module changes nothing.

use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::chain::Piece;
use super::disk::UNFINISHED;
use super::error::{Flaw, SnapshotError, Why};
use super::names::{Generation, Stretch};
use crate::files::Files;

#[derive(Debug, Default)]
pub(super) struct Survey {
    pub generation: Generation,
    pub chain: Vec<Piece>,
    /// The files that the chain cannot use: bad files, and files that only bad files lead up to.
    pub bad: Vec<Flaw>,
    /// The leftovers of a crash. The chain has all of their content.
    pub leftovers: Vec<PathBuf>,
}

/// Reads every file of the chain in full, once.
pub(super) fn survey(files: &Files, dir: &Path) -> Result<Survey, SnapshotError> {
    let names_in_dir = files.names(dir)?;
    let mut generations: Vec<_> = names_in_dir.iter().filter_map(|name| Generation::named(name)).collect();
    generations.sort();
    let generation = generations.pop().unwrap_or_default();
    let mut survey = Survey { generation, ..Survey::default() };
    if generation != Generation::default() {
        survey.follow_chain(files, &generation.folder(dir))?;
    }
    let unfinished = names_in_dir.iter().filter(|name| name.ends_with(UNFINISHED));
    survey.leftovers.extend(unfinished.map(|name| dir.join(name)));
    if survey.bad.is_empty() {
        // The newer generation is complete, so an installation finished except for the removal of the older ones.
        survey.leftovers.extend(generations.iter().map(|old| old.folder(dir)));
    }
    Ok(survey)
}

impl Survey {
    /// From each state, follows the good file that leads farthest. So the result of a merge is preferred to its inputs, and
    /// if the result is bad, the inputs are used if they are still there.
    fn follow_chain(&mut self, files: &Files, folder: &Path) -> Result<(), SnapshotError> {
        let mut stretches: Vec<_> =
            files.names(folder)?.iter().filter_map(|name| Stretch::named(name)).collect();
        stretches.sort();
        while let Some(piece) = self.farthest(files, folder, &stretches)? {
            self.chain.push(piece);
        }
        for stretch in stretches {
            self.judge_other(folder, stretch);
        }
        Ok(())
    }

    fn farthest(
        &mut self,
        files: &Files,
        folder: &Path,
        stretches: &[Stretch],
    ) -> Result<Option<Piece>, SnapshotError> {
        let reached = self.chain.last().map_or(0, |piece| piece.stretch.to);
        for stretch in stretches.iter().rev().filter(|stretch| stretch.from == reached) {
            let path = folder.join(stretch.file_name());
            match Piece::read(files, &path, *stretch) {
                Ok(piece) => return Ok(Some(piece)),
                Err(error) => self.bad.push(flaw(error)?),
            }
        }
        Ok(None)
    }

    /// Classifies a file that may be in the chain or not.
    fn judge_other(&mut self, folder: &Path, stretch: Stretch) {
        let path = folder.join(stretch.file_name());
        if self.chain.iter().any(|piece| piece.stretch == stretch) {
            return;
        }
        if self.chain.iter().any(|piece| piece.stretch.covers(stretch)) {
            self.leftovers.push(path);
        } else if self.bad.iter().all(|flaw| flaw.path != path) {
            self.bad.push(Flaw { path, line: 0, why: Why::OutOfReach });
        }
    }
}

/// A file that the medium cannot read is a bad file, which the log or a peer can make up for. Any other error says nothing
/// about the file: the start fails instead of giving up a file that may be good.
fn flaw(error: SnapshotError) -> Result<Flaw, SnapshotError> {
    match error {
        SnapshotError::Bad(flaw) => Ok(flaw),
        SnapshotError::Io { path, error } if Errno::from_io_error(&error) == Some(Errno::IO) => {
            Ok(Flaw { path, line: 0, why: Why::Unreadable })
        }
        other => Err(other),
    }
}
