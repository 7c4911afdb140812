//! Every change of a file goes through here, so that a test can stop the world between any two of them.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::error::StorageError;

type Result<T> = std::result::Result<T, StorageError>;

/// Told to tests before and after every change.
#[cfg(test)]
macro_rules! seen {
    ($($event:tt)*) => { super::watch::tell(super::watch::Event::$($event)*) };
}

#[cfg(not(test))]
macro_rules! seen {
    ($($event:tt)*) => {};
}

/// A file opened for reading and writing, with its name for what is said about it.
#[derive(Debug)]
pub struct Open {
    file: File,
    path: PathBuf,
}

impl Open {
    pub fn create(path: &Path) -> Result<Open> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(true).open(path);
        let file = file.map_err(StorageError::io("create", path))?;
        seen!(Changed);
        Ok(Open { file, path: path.to_path_buf() })
    }

    pub fn existing(path: &Path) -> Result<Open> {
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file = file.map_err(StorageError::io("open", path))?;
        Ok(Open { file, path: path.to_path_buf() })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn size(&self) -> Result<u64> {
        let metadata = self.file.metadata().map_err(StorageError::io("look at", &self.path))?;
        Ok(metadata.len())
    }

    pub fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        #[cfg(test)]
        super::watch::tear(&self.file, bytes, offset);
        self.file.write_all_at(bytes, offset).map_err(StorageError::io("write", &self.path))?;
        seen!(Changed);
        Ok(())
    }

    /// The bytes, and the length if that has changed, are on disk when this returns.
    pub fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(StorageError::io("sync", &self.path))?;
        seen!(Synced(&self.path));
        Ok(())
    }

    /// The name is durable only after a `sync_dir`.
    pub fn rename(&mut self, to: &Path) -> Result<()> {
        rename(&self.path, to)?;
        self.path = to.to_path_buf();
        Ok(())
    }
}

pub fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).map_err(StorageError::io("rename", from))?;
    seen!(Changed);
    Ok(())
}

pub fn remove(path: &Path) -> Result<()> {
    fs::remove_file(path).map_err(StorageError::io("remove", path))?;
    seen!(Changed);
    Ok(())
}

pub fn make_dir(path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(StorageError::io("create", path))?;
    seen!(Changed);
    Ok(())
}

/// Names that were made, changed or removed in the directory are on disk when this returns.
pub fn sync_dir(path: &Path) -> Result<()> {
    let synced = File::open(path).and_then(|dir| dir.sync_all());
    synced.map_err(StorageError::io("sync", path))?;
    seen!(SyncedDir(path));
    Ok(())
}

pub fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(StorageError::io("read", path))
}

/// None if there is no such file.
pub fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>> {
    match read(path) {
        Err(StorageError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}

/// Names in a directory, sorted; none if there is no such directory.
pub fn names(dir: &Path) -> Result<Vec<String>> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(StorageError::io("list", dir))?,
    };
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let names: std::io::Result<Vec<String>> = entries.map(|entry| entry.map(name)).collect();
    let mut names = names.map_err(StorageError::io("list", dir))?;
    names.sort();
    Ok(names)
}

/// A copy that is durable, apart from its name.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    let copy = Open::create(to)?;
    copy.write_at(&read(from)?, 0)?;
    copy.sync()
}
