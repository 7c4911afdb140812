//! Names that last: nothing is seen under its name before it is whole and durable, and nothing unfinished stays.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::error::SnapshotError;
use crate::files::Files;

/// What ends so is unfinished: removed at the next start, whatever it is.
pub(super) const UNFINISHED: &str = ".tmp";

/// The directory of all snapshots, with a number for each file that is begun in it.
#[derive(Clone, Debug)]
pub(super) struct SnapshotFolder {
    files: Files,
    dir: PathBuf,
    /// Several may be under way at once, and only one process has the directory.
    last: Arc<AtomicU64>,
}

impl SnapshotFolder {
    pub fn new(files: &Files, dir: &Path) -> SnapshotFolder {
        SnapshotFolder { files: files.clone(), dir: dir.to_path_buf(), last: Arc::default() }
    }

    pub fn files(&self) -> &Files {
        &self.files
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

/// A file or folder that is removed again unless it is given its name.
#[derive(Debug)]
pub(super) struct Unfinished {
    files: Files,
    path: PathBuf,
    named: bool,
}

impl Unfinished {
    /// A path to write to; nothing is there yet.
    pub fn file(room: &SnapshotFolder) -> Unfinished {
        let number = room.last.fetch_add(1, Ordering::Relaxed) + 1;
        let path = room.dir.join(format!("{number}{UNFINISHED}"));
        Unfinished { files: room.files.clone(), path, named: false }
    }

    pub fn folder(room: &SnapshotFolder) -> Result<Unfinished, SnapshotError> {
        let folder = Unfinished::file(room);
        folder.files.make_dir(&folder.path)?;
        Ok(folder)
    }

    pub fn files(&self) -> &Files {
        &self.files
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Of a folder: the names in it are durable when it returns.
    pub fn sync(&self) -> Result<(), SnapshotError> {
        Ok(self.files.sync_dir(&self.path)?)
    }

    /// The name is durable when it returns.
    pub fn name(mut self, path: &Path) -> Result<(), SnapshotError> {
        self.files.rename(&self.path, path)?;
        self.named = true;
        Ok(self.files.sync_dir_of(path)?)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.named {
            // What cannot be removed now is removed at the next start.
            let _ = self.files.remove_all(&self.path);
        }
    }
}
