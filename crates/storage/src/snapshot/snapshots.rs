//! The chain in use: files are added to it and merged in it, and it can be replaced.
//!
//! Every change takes effect at one rename: of a file into the generation, or of a folder to the next generation. The state in
//! memory changes only after it. If the rename fails, the chain is as it was.

use std::fmt;
use std::path::{Path, PathBuf};

use super::chain::{self, Piece};
use super::change::Change;
use super::check::Head;
use super::disk::{SnapshotFolder, Unfinished};
use super::error::{Flaw, SnapshotError, Why};
use super::import::Export;
use super::import::{Importer, Incoming};
use super::merge::{Input, Merge, Merged};
use super::names::{self, Generation};
use super::row::Row;
use super::survey::survey;
use super::tiers::{self, Size};
use super::writer::FileWriter;
use crate::Boundary;
use crate::files::{Files, Open};
use crate::types::Index;

/// The chain in use. Its directory has no other user.
#[derive(Debug)]
pub struct Snapshots {
    room: SnapshotFolder,
    generation: Generation,
    pub(super) chain: Vec<Piece>,
    /// Files that are bad or out of reach. Future files could need their names.
    bad: Vec<PathBuf>,
}

/// The findings at the start.
#[derive(Debug)]
pub struct Opening {
    /// The newest good state.
    pub newest: Option<Boundary>,
    /// The places where the chain ended too early. If there are any, newer states have existed.
    pub bad: Vec<Flaw>,
}

/// The rows of a frozen state. They are read from it while they are written to disk, and again if there was no room.
pub trait Rows: fmt::Debug + Send {
    /// All rows, or the changes since the newest snapshot; sorted by table and key.
    fn changes(&self, whole: bool) -> Box<dyn Iterator<Item = Change<'_>> + '_>;
}

/// The state at a boundary that no log leads to.
#[derive(Debug)]
pub struct Rebase {
    pub boundary: Boundary,
    pub rows: Box<dyn Rows>,
    /// The new state is unrelated to the one on disk.
    pub whole: bool,
}

impl Snapshots {
    /// Reads and checks every file of the chain, and removes the leftovers of a crash.
    pub fn open(files: &Files, dir: &Path) -> Result<(Snapshots, Opening), SnapshotError> {
        if !files.is_dir(dir)? {
            files.make_dirs(dir)?;
            files.sync_dir_of(dir)?;
        }
        let found = survey(files, dir)?;
        if !found.chain.is_empty() {
            // The process that gave these names may have died before they were durable. They must be durable before other files
            // are removed because of them.
            files.sync_dir(&found.generation.folder(dir))?;
            files.sync_dir(dir)?;
        }
        found.leftovers.iter().try_for_each(|path| files.remove_all(path))?;
        let bad = found.bad.iter().map(|flaw| flaw.path.clone()).collect();
        let room = SnapshotFolder::new(files, dir);
        let snapshots = Snapshots { room, generation: found.generation, chain: found.chain, bad };
        let opening = Opening { newest: snapshots.newest().cloned(), bad: found.bad };
        Ok((snapshots, opening))
    }

    /// Continues the chain with a state of another history. A merge of two sides changes some keys of a large state and its
    /// whole past; the files do not contain the past, so they stay, and the cost is that of the change. Only the boundary at
    /// the end is of the new history. If there is no chain to continue, this begins one. The state is durable when this
    /// returns.
    pub fn rebase(&mut self, rebase: &Rebase) -> Result<(), SnapshotError> {
        let Rebase { boundary, rows, whole } = rebase;
        let boundary = boundary.clone();
        match self.newest().map(Boundary::index) {
            Some(newest) if newest < boundary.index() && !whole => {
                self.add(newest, boundary, rows.changes(false))
            }
            // Indexes do not decrease when sides meet. If they did, only a new chain would take effect.
            _ => self.add_whole(Head { from: 0, boundary }, rows.changes(true)),
        }
    }

    pub fn newest(&self) -> Option<&Boundary> {
        self.chain.last().map(|piece| &piece.boundary)
    }

    /// Every line of the newest state, in order: table, key, value.
    pub fn load<E: From<SnapshotError>>(
        &self,
        each: impl FnMut(&str, &str, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        chain::load(self.files(), &self.folder(), &self.chain, each)
    }

    /// Adds the changes since the newest state, or a whole state if `since` is zero, which then replaces the chain. It is
    /// durable when this returns. Changes are sorted by table and key, each key once.
    pub fn add<'a>(
        &mut self,
        since: Index,
        boundary: Boundary,
        changes: impl IntoIterator<Item = Change<'a>>,
    ) -> Result<(), SnapshotError> {
        let (to, newest) = (boundary.index(), self.newest().map_or(0, Boundary::index));
        // A gap in the chain would be found only at the next start, as a file out of reach.
        if to <= newest || (since != 0 && since != newest) {
            return Err(SnapshotError::NotOnTop { since, to, newest });
        }
        let head = Head { from: since, boundary };
        if since == 0 { self.add_whole(head, changes) } else { self.add_changes(head, changes) }
    }

    /// The next merge, if one is due. It runs without the chain. Each file is in one merge at most at a time. The files are
    /// opened here, because an installation may remove their names before the merge runs.
    pub fn plan_merge(&self) -> Result<Option<Merge>, SnapshotError> {
        let size = |piece: &Piece| Size { bytes: piece.written.bytes, claimed: piece.is_claimed() };
        let sizes: Vec<_> = self.chain.iter().map(size).collect();
        let Some(due) = tiers::due(&sizes) else {
            return Ok(None);
        };
        let pieces = &self.chain[due];
        let inputs = pieces.iter().map(|piece| self.input(piece)).collect::<Result<Vec<_>, _>>()?;
        let boundary = pieces[pieces.len() - 1].boundary.clone();
        let head = Head { from: pieces[0].stretch.from, boundary };
        let bytes = pieces.iter().map(|piece| piece.written.bytes).sum();
        Ok(Some(Merge { room: self.room.clone(), generation: self.generation, inputs, head, bytes }))
    }

    /// Replaces the inputs by the result. Returns false, and changes nothing, if another chain was installed.
    pub fn commit_merge(&mut self, merged: Merged) -> Result<bool, SnapshotError> {
        let Merged { generation, file, piece, claims } = merged;
        let inside = |other: &Piece| piece.stretch.covers(other.stretch);
        let inputs = self.chain.iter().filter(|other| inside(other)).count();
        // The claims keep other merges away from the inputs, so only another chain in the place of this one can have changed
        // them.
        if generation != self.generation || inputs != claims.len() {
            return Ok(false);
        }
        self.set_aside()?;
        file.name(&self.path(&piece))?;
        let first = self.chain.iter().position(inside).unwrap_or(0);
        // The result is durable under its name. Until the inputs are gone, a start prefers it because it leads farther.
        let replaced: Vec<_> = self.chain.splice(first..first + inputs, [piece]).collect();
        for input in replaced {
            // An input that stays is covered by the result, and is removed at the next start.
            let _ = self.files().remove(&self.path(&input));
        }
        Ok(true)
    }

    /// The newest state as bytes for a peer. Returns `None` if there is no state yet.
    pub fn export(&self) -> Result<Option<Export>, SnapshotError> {
        let Some(boundary) = self.newest().cloned() else {
            return Ok(None);
        };
        let bytes = self.chain.iter().map(|piece| piece.written.bytes).sum();
        let files = self.chain.iter().rev().map(|piece| Ok(self.open_file(piece)?.stream()));
        let files = files.collect::<Result<_, SnapshotError>>()?;
        Ok(Some(Export { boundary, bytes, files }))
    }

    /// Receives a state from a peer. The chain is not affected until the state is installed.
    pub fn importer(&self) -> Result<Importer, SnapshotError> {
        Ok(Importer::new(Unfinished::folder(&self.room)?))
    }

    /// Replaces the chain, durably. The caller decides whether the new state is newer. The core never installs one that ends
    /// at or below its commit index (P26).
    pub fn install(&mut self, incoming: Incoming) -> Result<(), SnapshotError> {
        self.replace(incoming.folder, incoming.chain)
    }

    pub(super) fn add_whole<'a>(
        &mut self,
        head: Head,
        changes: impl IntoIterator<Item = Change<'a>>,
    ) -> Result<(), SnapshotError> {
        let folder = Unfinished::folder(&self.room)?;
        let name = names::Stretch { from: 0, to: head.boundary.index() }.file_name();
        // A whole state has no deletions (`Why::DeletionInWhole`).
        let changes = changes.into_iter().filter(|change| change.value.is_some());
        let piece = write(self.files(), &folder.path().join(name), head, changes)?;
        folder.sync()?;
        self.replace(folder, vec![piece])
    }

    fn add_changes<'a>(
        &mut self,
        head: Head,
        changes: impl IntoIterator<Item = Change<'a>>,
    ) -> Result<(), SnapshotError> {
        let file = Unfinished::file(&self.room);
        let piece = write(self.files(), file.path(), head, changes)?;
        self.set_aside()?;
        file.name(&self.path(&piece))?;
        self.chain.push(piece);
        Ok(())
    }

    /// Gives a folder with a durable chain the next number, and removes the folder before.
    fn replace(&mut self, folder: Unfinished, chain: Vec<Piece>) -> Result<(), SnapshotError> {
        let generation = self.generation.next();
        folder.name(&generation.folder(self.room.dir()))?;
        let old = self.folder();
        (self.generation, self.chain, self.bad) = (generation, chain, Vec::new());
        // A folder that stays has a smaller number, and is removed at the next start.
        let _ = self.files().remove_all(&old);
        Ok(())
    }

    /// Bad files are renamed, so that they are neither overwritten nor reached again by a chain that has continued differently.
    fn set_aside(&mut self) -> Result<(), SnapshotError> {
        if self.bad.is_empty() {
            return Ok(());
        }
        while let Some(path) = self.bad.last() {
            self.room.files().rename(path, &path.with_extension("snap.bad"))?;
            self.bad.pop();
        }
        Ok(self.files().sync_dir(&self.folder())?)
    }

    fn files(&self) -> &Files {
        self.room.files()
    }

    fn folder(&self) -> PathBuf {
        self.generation.folder(self.room.dir())
    }

    fn path(&self, piece: &Piece) -> PathBuf {
        self.folder().join(piece.stretch.file_name())
    }

    fn open_file(&self, piece: &Piece) -> Result<Open, SnapshotError> {
        Ok(self.files().open(&self.path(piece))?)
    }

    fn input(&self, piece: &Piece) -> Result<Input, SnapshotError> {
        Ok(Input { file: self.open_file(piece)?, stretch: piece.stretch, claim: piece.claim.clone() })
    }
}

/// Writes a file. It is durable except for its name.
fn write<'a>(
    files: &Files,
    path: &Path,
    head: Head,
    changes: impl IntoIterator<Item = Change<'a>>,
) -> Result<Piece, SnapshotError> {
    let mut writer = FileWriter::create(files, path, &head)?;
    let (mut row, mut previous) = (Row::default(), Row::default());
    for change in changes {
        let memory = std::mem::replace(&mut previous, row).recycle();
        let encoded = Row::encode(&change, memory);
        // The first row is above the default one, whose table is empty.
        let above = |row: &Row| row.place() > previous.place();
        row = match encoded {
            Ok(row) if above(&row) => row,
            Ok(_) => return Err(unfit(&change, Why::Order)),
            Err(why) => return Err(unfit(&change, why)),
        };
        writer.row(row.line())?;
    }
    Ok(Piece::new(head, writer.finish()?))
}

fn unfit(change: &Change<'_>, why: Why) -> SnapshotError {
    SnapshotError::Unfit { table: change.table.to_string(), key: change.key.to_string(), why }
}
