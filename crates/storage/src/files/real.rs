//! The machine's file system.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;
use std::{fmt, io};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// The mode of a node's directories: other users must not read its files.
pub const DIR_MODE: u32 = 0o700;
pub const FILE_MODE: u32 = 0o600;
/// The pause between two attempts to open a file while the limit of open files is reached.
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub struct Real;

/// When this process or the machine has reached its limit of open files, some files are closed sooner or later, usually
/// clients' connections. This error says nothing about the disk, so the program waits until it is over. Otherwise clients
/// could end a node by opening connections, because any error of the disk is final. Every operation that opens a file goes
/// through here.
fn patiently<T>(mut open: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match open() {
            // If the pause ends early, that costs one more attempt.
            Err(error) if has_too_many_open(&error) => std::thread::park_timeout(PAUSE),
            opened => return opened,
        }
    }
}

fn has_too_many_open(error: &io::Error) -> bool {
    let errno = error.raw_os_error();
    [Errno::MFILE, Errno::NFILE].iter().any(|too_many| errno == Some(too_many.raw_os_error()))
}

impl FileSystem for Real {
    fn open(&self, path: &Path, how: How) -> io::Result<Box<dyn Handle>> {
        let mut options = OpenOptions::new();
        match how {
            How::Read => options.read(true),
            How::Write => options.read(true).write(true),
            How::Create => options.read(true).write(true).create(true).truncate(true),
            How::CreateNew => options.read(true).write(true).create_new(true),
        };
        options.mode(FILE_MODE);
        Ok(Box::new(patiently(|| options.open(path))?))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        patiently(|| fs::read(path))
    }

    fn look(&self, path: &Path) -> io::Result<Look> {
        let metadata = fs::metadata(path)?;
        Ok(Look { is_dir: metadata.is_dir(), inode: metadata.ino() })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn make_dir(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().mode(DIR_MODE).create(path)
    }

    fn names(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        patiently(|| fs::read_dir(dir))?.map(|entry| Ok(entry?.file_name())).collect()
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        patiently(|| File::open(dir))?.sync_all()
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Lock>>> {
        let mut options = File::options();
        options.create(true).truncate(false).write(true).mode(FILE_MODE);
        let file = patiently(|| options.open(path))?;
        // The system releases the lock when the process ends in any way, so a crash leaves no lock behind.
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Box::new(file))),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn draw(&self) -> io::Result<u64> {
        getrandom::u64().map_err(|error| io::Error::other(error.to_string()))
    }
}

impl Handle for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, buffer, offset)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        FileExt::write_all_at(self, bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        // `fdatasync`: it covers the length if that has changed, and spares a write of the times of the file.
        self.sync_data()
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

impl Lock for File {}

// The operations that the machine and the simulation implement.

/// File operations. Names are durable only after `sync_dir` of their folder.
pub trait FileSystem: fmt::Debug + Send + Sync {
    fn open(&self, path: &Path, how: How) -> io::Result<Box<dyn Handle>>;
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
    fn look(&self, path: &Path) -> io::Result<Look>;
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty folder.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
    fn make_dir(&self, path: &Path) -> io::Result<()>;
    fn names(&self, dir: &Path) -> io::Result<Vec<OsString>>;
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Returns `None` if another process has the lock.
    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Lock>>>;
    /// A random number that no other disk has drawn.
    fn draw(&self) -> io::Result<u64>;
}

/// An open file. It stays open when its name is removed.
pub trait Handle: fmt::Debug + Send + Sync {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// The bytes, and the length if it has changed, are durable when this returns.
    fn sync(&self) -> io::Result<()>;
    fn size(&self) -> io::Result<u64>;
}

/// The lock is held until this value is dropped.
pub trait Lock: fmt::Debug + Send + Sync {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Opens a file for reading.
    Read,
    /// Opens an existing file for reading and writing.
    Write,
    /// Creates an empty file, or empties an existing one.
    Create,
    /// Creates a file, which must not exist.
    CreateNew,
}

/// The kind of the file at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    pub is_dir: bool,
    /// The file's inode number. A copy of the file has another one.
    /// A renamed file keeps its number.
    pub inode: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_open_files_are_waited_out_and_nothing_else_is() {
        for errno in [Errno::MFILE, Errno::NFILE] {
            let mut refusals = 3;
            let opened = patiently(|| {
                refusals -= 1;
                if refusals > 0 { Err(errno.into()) } else { Ok(refusals) }
            });
            assert_eq!(opened.ok(), Some(0), "{errno}");
        }
        let refused: io::Result<()> = patiently(|| Err(Errno::IO.into()));
        assert_eq!(refused.map_err(|error| error.raw_os_error()), Err(Some(Errno::IO.raw_os_error())));
    }
}
