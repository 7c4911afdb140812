//! A file that gets its name only when all of it is durable.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::files::FILE_MODE;

/// The ending of a draft's name, which also has the file's name and the process id: `.NAME.PID.draft`.
pub const DRAFT: &str = ".draft";

/// A draft that is dropped before `keep` is removed.
#[derive(Debug)]
pub struct Draft {
    file: File,
    beside: PathBuf,
    path: PathBuf,
    kept: bool,
}

impl Draft {
    /// The draft is in the folder of the final file, because a rename does not cross file systems. Only the owner may read it.
    /// A draft that an earlier process with the same id has left is overwritten.
    pub fn begin(path: &Path) -> io::Result<Draft> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let beside =
            path.with_file_name(format!(".{}.{}{DRAFT}", name.to_string_lossy(), std::process::id()));
        let file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(FILE_MODE).open(&beside)?;
        Ok(Draft { file, beside, path: path.to_path_buf(), kept: false })
    }

    /// Makes the file durable, then gives it its name, then makes the name durable.
    pub fn keep(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.beside, &self.path)?;
        self.kept = true;
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.kept {
            // If the draft cannot be removed, its name is still one that no reader uses.
            let _ = fs::remove_file(&self.beside);
        }
    }
}
