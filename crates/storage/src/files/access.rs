//! The file operations of storage, and the errors that they report.
//!
//! Each method is one operation of the system, or a few. They do not sync by themselves unless they say so: the caller knows
//! which order must survive a crash.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::real::Real;
use super::real::{FileSystem, Handle, How, Lock};

/// A failed operation on a file.
#[derive(Debug)]
pub struct FileError {
    pub doing: &'static str,
    pub path: PathBuf,
    pub source: io::Error,
}

type Result<T> = std::result::Result<T, FileError>;

/// The file system that storage uses.
#[derive(Clone, Debug)]
pub struct Files(Arc<dyn FileSystem>);

impl Default for Files {
    /// The machine's file system.
    fn default() -> Files {
        Files(Arc::new(Real))
    }
}

impl Files {
    pub fn new(system: impl FileSystem + 'static) -> Files {
        Files(Arc::new(system))
    }

    pub fn create(&self, path: &Path) -> Result<Open> {
        self.open_as(path, How::Create, "create")
    }

    pub fn create_new(&self, path: &Path) -> Result<Open> {
        self.open_as(path, How::CreateNew, "create")
    }

    /// Opens an existing file for reading and writing.
    /// The file keeps its content: segments and promise files are rewritten in place.
    pub fn existing(&self, path: &Path) -> Result<Open> {
        self.open_as(path, How::Write, "open")
    }

    pub fn open(&self, path: &Path) -> Result<Open> {
        self.open_as(path, How::Read, "open")
    }

    fn open_as(&self, path: &Path, how: How, doing: &'static str) -> Result<Open> {
        let handle = self.0.open(path, how).map_err(failed(doing, path))?;
        Ok(Open { handle, path: path.to_path_buf() })
    }

    pub fn read(&self, path: &Path) -> Result<Vec<u8>> {
        self.0.read(path).map_err(failed("read", path))
    }

    /// Returns `None` if there is no such file.
    pub fn read_if_there(&self, path: &Path) -> Result<Option<Vec<u8>>> {
        if_there(self.read(path))
    }

    pub fn inode(&self, path: &Path) -> Result<u64> {
        Ok(self.0.look(path).map_err(failed("look at", path))?.inode)
    }

    /// Returns false if the path does not exist.
    pub fn is_dir(&self, path: &Path) -> Result<bool> {
        let look = self.0.look(path).map_err(failed("look at", path));
        Ok(if_there(look)?.is_some_and(|look| look.is_dir))
    }

    pub fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.0.rename(from, to).map_err(failed("rename", from))
    }

    pub fn remove(&self, path: &Path) -> Result<()> {
        self.0.remove_file(path).map_err(failed("remove", path))
    }

    /// Removes a file, or a folder with everything in it. A link is removed as a file, so nothing outside the folder goes
    /// with it.
    pub fn remove_all(&self, path: &Path) -> Result<()> {
        let Err(error) = self.remove(path) else {
            return Ok(());
        };
        if !self.is_dir(path)? {
            return Err(error);
        }
        for name in self.0.names(path).map_err(failed("list", path))? {
            self.remove_all(&path.join(name))?;
        }
        self.0.remove_dir(path).map_err(failed("remove", path))
    }

    /// Creates a folder and its parents. The folder may exist already: another process may create it at the same time. The
    /// names are not durable yet.
    pub fn make_dirs(&self, path: &Path) -> Result<()> {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        match (self.0.make_dir(path), parent) {
            (Ok(()), _) => Ok(()),
            (Err(error), _) if error.kind() == io::ErrorKind::AlreadyExists && self.is_dir(path)? => Ok(()),
            (Err(error), Some(parent)) if error.kind() == io::ErrorKind::NotFound => {
                self.make_dirs(parent)?;
                self.make_dir(path)
            }
            (Err(error), _) => Err(failed("create", path)(error)),
        }
    }

    /// Creates a folder, which must not exist.
    pub fn make_dir(&self, path: &Path) -> Result<()> {
        self.0.make_dir(path).map_err(failed("create", path))
    }

    /// Names that were created, changed or removed in the folder are durable when this returns.
    pub fn sync_dir(&self, path: &Path) -> Result<()> {
        self.0.sync_dir(path).map_err(failed("sync", path))
    }

    /// Makes the name `path` durable.
    pub fn sync_dir_of(&self, path: &Path) -> Result<()> {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        self.sync_dir(parent.unwrap_or(Path::new(".")))
    }

    /// The names in a folder, sorted, because the order of a file system is undefined. Names that are not UTF-8 were not
    /// created by this program, and are skipped.
    pub fn names(&self, dir: &Path) -> Result<Vec<String>> {
        let names = self.0.names(dir).map_err(failed("list", dir))?;
        let mut names: Vec<String> = names.into_iter().filter_map(|name| name.into_string().ok()).collect();
        names.sort();
        Ok(names)
    }

    /// Returns no names if there is no such folder.
    pub fn names_if_there(&self, dir: &Path) -> Result<Vec<String>> {
        Ok(if_there(self.names(dir))?.unwrap_or_default())
    }

    /// Copies a file. The copy is durable when this returns, except for its name.
    pub fn copy(&self, from: &Path, to: &Path) -> Result<()> {
        let copy = self.create(to)?;
        copy.write_at(&self.read(from)?, 0)?;
        copy.sync()
    }

    /// Returns `None` if another process has the lock.
    pub fn lock(&self, path: &Path) -> Result<Option<Box<dyn Lock>>> {
        self.0.lock(path).map_err(failed("lock", path))
    }

    /// A random number that is not zero: an incarnation of zero means that there is none.
    pub fn draw(&self) -> Result<u64> {
        loop {
            let drawn = self.0.draw();
            let drawn = drawn.map_err(failed("draw a random number from", Path::new("the system")))?;
            if drawn != 0 {
                return Ok(drawn);
            }
        }
    }
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FileError {
    move |source| FileError { doing, path: path.to_path_buf(), source }
}

fn if_there<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Err(error) if error.source.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

/// An open file, with its path for error messages.
#[derive(Debug)]
pub struct Open {
    handle: Box<dyn Handle>,
    path: PathBuf,
}

impl Open {
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn size(&self) -> Result<u64> {
        self.handle.size().map_err(failed("look at", &self.path))
    }

    pub fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.handle.write_all_at(bytes, offset).map_err(failed("write", &self.path))
    }

    /// The bytes, and the length if it has changed, are durable when this returns.
    pub fn sync(&self) -> Result<()> {
        self.handle.sync().map_err(failed("sync", &self.path))
    }

    /// The name is durable only after a `sync_dir`.
    pub fn rename(&mut self, files: &Files, to: &Path) -> Result<()> {
        files.rename(&self.path, to)?;
        self.path = to.to_path_buf();
        Ok(())
    }

    /// Reads the file from the beginning to the end, in pieces.
    pub fn stream(self) -> Stream {
        Stream { open: self, at: 0 }
    }
}

/// An open file that is read or written in order.
#[derive(Debug)]
pub struct Stream {
    open: Open,
    at: u64,
}

impl Stream {
    pub fn open(&self) -> &Open {
        &self.open
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.open.handle.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.open.handle.write_all_at(bytes, self.at)?;
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }

    // Writes are not buffered here. A flush makes nothing durable: `Open::sync` does.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
