//! The states of one node on disk: a chain of sorted text files, each with what changed since the one before.
//!
//! A snapshot falls due every few writes, so its cost must be that of the change and not that of the store. Hence
//! `Snapshots::add` writes one small file, the first of a chain is a whole state, and merges in the background
//! keep the chain short. A file never changes after it got its name.
//!
//! ```text
//!  00000002/                                                      a generation: one chain
//!    00000000000000000000-00000000000000004000.snap               a whole state, at index 4000
//!    00000000000000004000-00000000000000004800.snap               what changed up to 4800, merged
//!    00000000000000004800-00000000000000004810.snap               what changed up to 4810
//!  7.tmp                                                          unfinished; removed at the next start
//!
//!  eldest-snapshot 1 from=4800 {"epoch":[7,1],"index":4810,…}     the first line: up to where it leads
//!  doc "greeting" {"text":"hello"}                                a value
//!  user "ann\n" -                                                 a deletion
//!  end 2 9c1f03aa                                                 lines, crc32 of every byte before its digits
//! ```
//!
//! The chain is found, not recorded: from 0, always the good file that leads farthest. So a merge takes effect by
//! the name of its result, and its inputs, wherever a crash left them, are covered and go at the next start. A
//! chain that replaces another is put together in a folder of its own, which takes effect by getting the next
//! number. There is nothing to be changed in place, and so nothing to be torn.
//!
//! A bad file ends the chain; what comes before is a good older state, and what comes after is out of reach. Both
//! are reported, neither is deleted: they are set aside, as `.bad`, when the chain goes on without them.
//!
//! Caveats: after a failed sync of a folder the disk may know more than `Snapshots`. As everywhere in storage, a
//! refusal other than a full disk is fatal to the node.

mod chain;
mod check;
mod disk;
mod error;
mod export;
mod import;
mod inspect;
mod merge;
mod merging;
mod names;
mod reader;
mod rebase;
mod row;
mod survey;
#[cfg(test)]
mod tests;
mod tiers;
mod writer;

use std::borrow::Cow;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

pub use error::{Flaw, SnapshotError, Why};
pub use export::Export;
pub use import::{Importer, Incoming};
pub use inspect::{ChainFile, Inspection, inspect};
pub use merge::{Merge, Merged};
pub use rebase::{Rebase, Rows};
pub use tiers::CHAIN_FILES_MAX;

use crate::storage::Boundary;
use crate::types::Index;
use chain::Piece;
use check::Head;
use disk::{Unfinished, remove, sync_folder, sync_folder_of};
use merge::Input;
use names::Generation;
use row::Row;
use survey::survey;
use tiers::Size;
use writer::Writer;

/// The chain in use. Its directory has no other user.
#[derive(Debug)]
pub struct Snapshots {
    dir: PathBuf,
    generation: Generation,
    chain: Vec<Piece>,
    /// Bad or out of reach, in the way of files that are yet to come.
    bad: Vec<PathBuf>,
    /// As if the disk had no room.
    #[cfg(test)]
    pub(in crate::storage) starved: bool,
}

/// What was found at the start.
#[derive(Debug)]
pub struct Opening {
    /// The newest good state.
    pub newest: Option<Boundary>,
    /// Where the chain ended too early. If there is anything, newer states have existed.
    pub bad: Vec<Flaw>,
}

/// A key's new value, or its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change<'a> {
    /// A short word: a lowercase letter, then these, digits and underscores; not `end`.
    pub table: &'a str,
    pub key: Cow<'a, str>,
    /// One line of JSON.
    pub value: Option<Cow<'a, str>>,
}

impl Snapshots {
    /// Reads and checks every file of the chain, and removes what a crash left behind.
    pub fn open(dir: &Path) -> Result<(Snapshots, Opening), SnapshotError> {
        if !dir.exists() {
            fs::create_dir_all(dir).map_err(SnapshotError::io(dir))?;
            sync_folder_of(dir)?;
        }
        let found = survey(dir)?;
        found.leftovers.iter().try_for_each(|path| remove(path))?;
        let bad = found.bad.iter().map(|flaw| flaw.path.clone()).collect();
        let dir = dir.to_path_buf();
        let snapshots = Snapshots {
            dir,
            generation: found.generation,
            chain: found.chain,
            bad,
            #[cfg(test)]
            starved: false,
        };
        let opening = Opening { newest: snapshots.newest().cloned(), bad: found.bad };
        Ok((snapshots, opening))
    }

    pub fn newest(&self) -> Option<&Boundary> {
        self.chain.last().map(|piece| &piece.boundary)
    }

    /// Every line of the newest state, in order: table, key, value.
    pub fn load<E: From<SnapshotError>>(
        &self,
        each: impl FnMut(&str, &str, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        chain::load(&self.folder(), &self.chain, each)
    }

    /// Adds what has changed since the newest state, or a whole state if `since` is zero, which then replaces the
    /// chain; durable when it returns. Changes are sorted by table and key, each key once.
    pub fn add<'a>(
        &mut self,
        since: Index,
        boundary: Boundary,
        changes: impl IntoIterator<Item = Change<'a>>,
    ) -> Result<(), SnapshotError> {
        let (to, newest) = (boundary.index(), self.newest().map_or(0, Boundary::index));
        if to <= newest || (since != 0 && since != newest) {
            return Err(SnapshotError::NotOnTop { since, to, newest });
        }
        let head = Head { from: since, boundary };
        if since == 0 { self.add_whole(head, changes) } else { self.add_changes(head, changes) }
    }

    /// The next merge, if one is due. It runs without the chain; at most one on each file at a time.
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
        Ok(Some(Merge { dir: self.dir.clone(), generation: self.generation, inputs, head, bytes }))
    }

    /// Puts the result in the place of its inputs. Says whether it did: not if another chain was installed.
    pub fn commit_merge(&mut self, merged: Merged) -> Result<bool, SnapshotError> {
        let Merged { generation, file, piece, claims } = merged;
        let inside = |other: &Piece| piece.stretch.covers(other.stretch);
        let inputs = self.chain.iter().filter(|other| inside(other)).count();
        if generation != self.generation || inputs != claims.len() {
            return Ok(false);
        }
        self.set_aside()?;
        file.name(&self.path(&piece))?;
        let first = self.chain.iter().position(inside).unwrap_or(0);
        let replaced: Vec<_> = self.chain.splice(first..first + inputs, [piece]).collect();
        for input in replaced {
            // One that stays is covered by the result, and goes at the next start.
            let _ = fs::remove_file(self.path(&input));
        }
        Ok(true)
    }

    /// The newest state as bytes for a peer; none if there is no state yet.
    pub fn export(&self) -> Result<Option<Export>, SnapshotError> {
        let Some(boundary) = self.newest().cloned() else {
            return Ok(None);
        };
        let bytes = self.chain.iter().map(|piece| piece.written.bytes).sum();
        let files = self.chain.iter().rev().map(|piece| self.open_file(piece)).collect::<Result<_, _>>()?;
        Ok(Some(Export { boundary, bytes, files }))
    }

    /// For a state from a peer. The chain does not know of it until it is installed.
    pub fn importer(&self) -> Result<Importer, SnapshotError> {
        Ok(Importer::new(Unfinished::folder(&self.dir)?))
    }

    /// Replaces the chain, durably. Whether what comes is newer is for the caller to know.
    pub fn install(&mut self, incoming: Incoming) -> Result<(), SnapshotError> {
        self.replace(incoming.folder, incoming.chain)
    }

    fn add_whole<'a>(
        &mut self,
        head: Head,
        changes: impl IntoIterator<Item = Change<'a>>,
    ) -> Result<(), SnapshotError> {
        let folder = Unfinished::folder(&self.dir)?;
        let name = names::Stretch { from: 0, to: head.boundary.index() }.file_name();
        let changes = changes.into_iter().filter(|change| change.value.is_some());
        let piece = write(&folder.path().join(name), head, changes)?;
        sync_folder(folder.path())?;
        self.replace(folder, vec![piece])
    }

    fn add_changes<'a>(
        &mut self,
        head: Head,
        changes: impl IntoIterator<Item = Change<'a>>,
    ) -> Result<(), SnapshotError> {
        let file = Unfinished::file(&self.dir);
        let piece = write(file.path(), head, changes)?;
        self.set_aside()?;
        file.name(&self.path(&piece))?;
        self.chain.push(piece);
        Ok(())
    }

    /// A folder with a durable chain gets the next number, and the one before goes.
    fn replace(&mut self, folder: Unfinished, chain: Vec<Piece>) -> Result<(), SnapshotError> {
        let generation = self.generation.next();
        folder.name(&generation.folder(&self.dir))?;
        let old = self.folder();
        (self.generation, self.chain, self.bad) = (generation, chain, Vec::new());
        // What stays has a smaller number, and goes at the next start.
        let _ = fs::remove_dir_all(old);
        Ok(())
    }

    /// Nothing bad is overwritten, nor reached again by a chain that has gone on differently.
    fn set_aside(&mut self) -> Result<(), SnapshotError> {
        if self.bad.is_empty() {
            return Ok(());
        }
        while let Some(path) = self.bad.last() {
            fs::rename(path, path.with_extension("snap.bad")).map_err(SnapshotError::io(path))?;
            self.bad.pop();
        }
        sync_folder(&self.folder())
    }

    fn folder(&self) -> PathBuf {
        self.generation.folder(&self.dir)
    }

    fn path(&self, piece: &Piece) -> PathBuf {
        self.folder().join(piece.stretch.file_name())
    }

    fn open_file(&self, piece: &Piece) -> Result<File, SnapshotError> {
        let path = self.path(piece);
        File::open(&path).map_err(SnapshotError::io(&path))
    }

    fn input(&self, piece: &Piece) -> Result<Input, SnapshotError> {
        let (file, path) = (self.open_file(piece)?, self.path(piece));
        Ok(Input { file, path, stretch: piece.stretch, claim: piece.claim.clone() })
    }
}

/// Writes a file, durable but for its name.
fn write<'a>(
    path: &Path,
    head: Head,
    changes: impl IntoIterator<Item = Change<'a>>,
) -> Result<Piece, SnapshotError> {
    let mut writer = Writer::create(path, &head)?;
    let (mut row, mut previous) = (Row::default(), Row::default());
    for change in changes {
        let memory = std::mem::replace(&mut previous, row).recycle();
        let encoded = Row::encode(&change, memory);
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
