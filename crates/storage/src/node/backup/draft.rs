//! A file that gets its name when all of it is on the disk, and never before.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::files::FILE_MODE;

/// What a draft is called besides its name and its process: `.NAME.PID.draft`.
pub const DRAFT: &str = ".draft";

/// Dropped before it is kept, nothing is left of it.
#[derive(Debug)]
pub struct Draft {
    file: File,
    beside: PathBuf,
    path: PathBuf,
    kept: bool,
}

impl Draft {
    /// Beside the file that it is to be: a rename does not cross file systems. Nobody else may read it.
    pub fn begin(path: &Path) -> io::Result<Draft> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let beside =
            path.with_file_name(format!(".{}.{}{DRAFT}", name.to_string_lossy(), std::process::id()));
        let file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(FILE_MODE).open(&beside)?;
        Ok(Draft { file, beside, path: path.to_path_buf(), kept: false })
    }

    /// It is durable, then it has its name, then the name is.
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
            // Where it cannot be removed it still has no name that anybody reads.
            let _ = fs::remove_file(&self.beside);
        }
    }
}
