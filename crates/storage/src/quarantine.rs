//! Bad files are moved to the quarantine: a file that people may still want to look at is not deleted.
//!
//! No program reads the quarantine, and no program empties it. A file is copied here if the repair rewrites or replaces it, and
//! moved here otherwise.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::error::StorageError;
use super::files::Files;

pub const QUARANTINE_DIR: &str = "quarantine";

/// A new folder in the quarantine. It is created for its first file.
#[derive(Debug)]
pub struct Quarantine {
    files: Files,
    root: PathBuf,
    folder: Option<PathBuf>,
    why: String,
}

impl Quarantine {
    pub fn new(files: &Files, dir: &Path) -> Quarantine {
        Quarantine { files: files.clone(), root: dir.join(QUARANTINE_DIR), folder: None, why: String::new() }
    }

    /// Notes a reason for people. Reasons are written with the first file, so later ones are lost.
    pub fn note(&mut self, why: &str) {
        writeln!(self.why, "{why}").expect("writing to a String cannot fail");
    }

    /// Keeps a copy of the file here. The copy is durable when this returns.
    /// The caller may change the original only after that.
    pub fn copy(&mut self, path: &Path) -> Result<(), StorageError> {
        let to = self.place(path)?;
        self.files.copy(path, &to)?;
        Ok(self.files.sync_dir_of(&to)?)
    }

    /// Moves the file here.
    pub fn take(&mut self, path: &Path) -> Result<(), StorageError> {
        let to = self.place(path)?;
        self.files.rename(path, &to)?;
        self.files.sync_dir_of(&to)?;
        Ok(self.files.sync_dir_of(path)?)
    }

    /// The folder, if a file was added to it.
    pub fn folder(self) -> Option<PathBuf> {
        self.folder
    }

    /// The file's new path, with a name that is unique in the folder.
    fn place(&mut self, path: &Path) -> Result<PathBuf, StorageError> {
        let folder = match &self.folder {
            Some(folder) => folder.clone(),
            None => self.make()?,
        };
        let parent = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Ok(folder.join(format!("{parent}-{name}")))
    }

    /// Folders are numbered and not dated, because a clock may be wrong, above all on a machine that damages files.
    fn make(&mut self) -> Result<PathBuf, StorageError> {
        self.files.make_dirs(&self.root)?;
        let last =
            self.files.names_if_there(&self.root)?.iter().filter_map(|name| name.parse::<u32>().ok()).max();
        let folder = self.root.join(format!("{:04}", last.map_or(1, |last| last.saturating_add(1))));
        self.files.make_dir(&folder)?;
        // The reason is synced before the first file comes, so no crash leaves a file without one.
        let why = self.files.create(&folder.join("why.txt"))?;
        why.write_at(self.why.as_bytes(), 0)?;
        why.sync()?;
        self.files.sync_dir(&self.root)?;
        self.files.sync_dir_of(&self.root)?;
        self.folder = Some(folder.clone());
        Ok(folder)
    }
}
