//! Where bad files go: nothing is thrown away that somebody may still want to look at.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::error::StorageError;
use super::files::Files;

pub const QUARANTINE_DIR: &str = "quarantine";

/// A new folder in the quarantine, made when the first file goes there.
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

    /// Notes a reason for people, before the first file comes.
    pub fn note(&mut self, why: &str) {
        writeln!(self.why, "{why}").expect("a text takes all that is written to it");
    }

    /// A copy of the file stays here. What is copied is durable when it returns.
    pub fn copy(&mut self, path: &Path) -> Result<(), StorageError> {
        let to = self.place(path)?;
        self.files.copy(path, &to)?;
        Ok(self.files.sync_dir_of(&to)?)
    }

    /// The file itself comes here.
    pub fn take(&mut self, path: &Path) -> Result<(), StorageError> {
        let to = self.place(path)?;
        self.files.rename(path, &to)?;
        self.files.sync_dir_of(&to)?;
        Ok(self.files.sync_dir_of(path)?)
    }

    /// The folder, if anything is in it.
    pub fn folder(self) -> Option<PathBuf> {
        self.folder
    }

    /// The file's new path, with a name that no other has there.
    fn place(&mut self, path: &Path) -> Result<PathBuf, StorageError> {
        let folder = match &self.folder {
            Some(folder) => folder.clone(),
            None => self.make()?,
        };
        let parent = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Ok(folder.join(format!("{parent}-{name}")))
    }

    /// Folders are numbered: a clock may be wrong, above all on a machine that damages files.
    fn make(&mut self) -> Result<PathBuf, StorageError> {
        self.files.make_dirs(&self.root)?;
        let last =
            self.files.names_if_there(&self.root)?.iter().filter_map(|name| name.parse::<u32>().ok()).max();
        let folder = self.root.join(format!("{:04}", last.map_or(1, |last| last.saturating_add(1))));
        self.files.make_dir(&folder)?;
        let why = self.files.create(&folder.join("why.txt"))?;
        why.write_at(self.why.as_bytes(), 0)?;
        why.sync()?;
        self.files.sync_dir(&self.root)?;
        self.files.sync_dir_of(&self.root)?;
        self.folder = Some(folder.clone());
        Ok(folder)
    }
}
