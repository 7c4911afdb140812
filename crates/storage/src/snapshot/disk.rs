//! Durable names: a file gets its name only when it is complete and durable, and unfinished files are removed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::error::SnapshotError;
use crate::files::Files;

/// The ending of unfinished names. Files and folders with it are removed at the next start.
pub(super) const UNFINISHED: &str = ".tmp";

/// The directory of all snapshots, with a counter of the files that are begun in it.
#[derive(Clone, Debug)]
pub(super) struct SnapshotFolder {
    files: Files,
    dir: PathBuf,
    /// Several files may be in progress at once, but only one process uses the directory. The count begins again with each
    /// process, which is safe because `Snapshots::open` removes unfinished files before the first is begun.
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

/// A file or folder that is removed unless it is given its name.
#[derive(Debug)]
pub(super) struct Unfinished {
    files: Files,
    path: PathBuf,
    named: bool,
}

impl Unfinished {
    /// A path to write to. The file does not exist yet.
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

    /// For a folder: the names in it are durable when this returns.
    pub fn sync(&self) -> Result<(), SnapshotError> {
        Ok(self.files.sync_dir(&self.path)?)
    }

    /// The name is durable when this returns. The content must be durable before: otherwise a crash could leave a bad file
    /// under a good name, and the chain would end there.
    pub fn name(mut self, path: &Path) -> Result<(), SnapshotError> {
        self.files.rename(&self.path, path)?;
        // Set before the sync: from here on the temporary name is gone, and there is nothing to remove.
        self.named = true;
        Ok(self.files.sync_dir_of(path)?)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.named {
            // A file that cannot be removed now is removed at the next start.
            let _ = self.files.remove_all(&self.path);
        }
    }
}
