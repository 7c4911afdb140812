//! Names that last: nothing is seen under its name before it is whole and durable, and nothing unfinished stays.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::error::SnapshotError;

/// What ends so is unfinished: removed at the next start, whatever it is.
pub(super) const UNFINISHED: &str = ".tmp";

/// Several may be under way at once in one process, and only one process has the directory.
static LAST: AtomicU64 = AtomicU64::new(0);

/// A file or folder that is removed again unless it is given its name.
#[derive(Debug)]
pub(super) struct Unfinished {
    path: PathBuf,
    named: bool,
}

impl Unfinished {
    /// A path to write to; nothing is there yet.
    pub fn file(dir: &Path) -> Unfinished {
        let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        Unfinished { path: dir.join(format!("{number}{UNFINISHED}")), named: false }
    }

    pub fn folder(dir: &Path) -> Result<Unfinished, SnapshotError> {
        let folder = Unfinished::file(dir);
        fs::create_dir(&folder.path).map_err(SnapshotError::io(&folder.path))?;
        Ok(folder)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name is durable when it returns.
    pub fn name(mut self, path: &Path) -> Result<(), SnapshotError> {
        fs::rename(&self.path, path).map_err(SnapshotError::io(path))?;
        self.named = true;
        sync_folder_of(path)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.named {
            // What cannot be removed now is removed at the next start.
            let _ = remove(&self.path);
        }
    }
}

/// A file, or a folder with all that is in it.
pub(super) fn remove(path: &Path) -> Result<(), SnapshotError> {
    let is_folder = fs::symlink_metadata(path).map_err(SnapshotError::io(path))?.is_dir();
    let removed = if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    removed.map_err(SnapshotError::io(path))
}

/// The names in a folder, in order. What is not UTF-8 is not ours.
pub(super) fn names(folder: &Path) -> Result<Vec<String>, SnapshotError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(SnapshotError::io(folder))? {
        names.extend(entry.map_err(SnapshotError::io(folder))?.file_name().into_string());
    }
    names.sort();
    Ok(names)
}

/// Makes the names in a folder durable.
pub(super) fn sync_folder(folder: &Path) -> Result<(), SnapshotError> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(SnapshotError::io(folder))
}

/// Makes the name `path` durable.
pub(super) fn sync_folder_of(path: &Path) -> Result<(), SnapshotError> {
    let here = Path::new(".");
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    sync_folder(parent.unwrap_or(here))
}
