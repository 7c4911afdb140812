//! The operations themselves, as a machine or a simulation does them.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::Path;

/// The operations themselves. Names are durable only after `sync_dir` of the folder they are in.
pub trait FileSystem: fmt::Debug + Send + Sync {
    fn open(&self, path: &Path, how: How) -> io::Result<Box<dyn Handle>>;
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
    fn look(&self, path: &Path) -> io::Result<Look>;
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// One that is empty.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
    fn make_dir(&self, path: &Path) -> io::Result<()>;
    fn names(&self, dir: &Path) -> io::Result<Vec<OsString>>;
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// None if somebody else holds it.
    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Lock>>>;
    /// A number by chance, which no other disk has drawn.
    fn draw(&self) -> io::Result<u64>;
}

/// An open file. It stays open when its name goes.
pub trait Handle: fmt::Debug + Send + Sync {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// The bytes, and the length if that has changed, are on disk when this returns.
    fn sync(&self) -> io::Result<()>;
    fn size(&self) -> io::Result<u64>;
}

/// Held for as long as it lives.
pub trait Lock: fmt::Debug + Send + Sync {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// To read it.
    Read,
    /// To read and write one that is there.
    Write,
    /// Empty, in place of what is there.
    Create,
    /// There is none of that name.
    CreateNew,
}

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    pub is_dir: bool,
    /// The file's number, which a copy of it does not have.
    pub inode: u64,
}
