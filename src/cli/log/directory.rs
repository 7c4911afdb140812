//! The argument that says whose log.

use std::path::{Path, PathBuf};

use crate::cli::exit::Failure;

#[derive(Clone, Debug, clap::Args)]
pub struct Directory {
    /// The node's data directory, or the log directory in it
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

impl Directory {
    /// A directory that is not there holds no log, which is not the same as an empty one.
    pub fn existing(&self) -> Result<&Path, Failure> {
        match std::fs::metadata(&self.directory) {
            Ok(found) if found.is_dir() => Ok(&self.directory),
            Ok(_) => Err(Failure::file(&self.directory)(std::io::ErrorKind::NotADirectory.into())),
            Err(error) => Err(Failure::file(&self.directory)(error)),
        }
    }
}
