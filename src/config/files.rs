//! Files that an operator names. They are read as a whole, up to a bound.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::WrongFile;

/// A hundred nodes and every key with its comment take 30 kB. A longer file is some other file.
pub const CONFIG_MOST: usize = 1 << 20;

/// A secret is one line.
pub const SECRET_MOST: usize = 4096;

#[derive(Debug)]
pub struct File {
    pub path: PathBuf,
    pub text: Result<String, WrongFile>,
}

impl File {
    pub fn read(path: PathBuf, most: usize) -> File {
        let text = read(&path, most);
        File { path, text }
    }
}

pub fn read(path: &Path, most: usize) -> Result<String, WrongFile> {
    let unreadable = |error: std::io::Error| WrongFile::Unreadable { why: error.to_string() };
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(most as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() > most {
        return Err(WrongFile::TooLong { most });
    }
    let text = String::from_utf8(bytes).map_err(|_| WrongFile::NotText)?;
    // Some editors begin a file with this mark, and no parser here accepts it.
    Ok(text.strip_prefix('\u{feff}').map(str::to_string).unwrap_or(text))
}
