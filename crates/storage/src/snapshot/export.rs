//! A state on its way to a peer: the chain's files, one after the other, as they are on disk.

use std::io::{self, Read};

use crate::Boundary;
use crate::files::Stream;

/// Holds the files open: merges and installations that come later do not matter to it.
#[derive(Debug)]
pub struct Export {
    pub(super) boundary: Boundary,
    pub(super) bytes: u64,
    /// The next one last.
    pub(super) files: Vec<Stream>,
}

impl Export {
    pub fn boundary(&self) -> &Boundary {
        &self.boundary
    }

    /// In bytes.
    pub fn length(&self) -> u64 {
        self.bytes
    }
}

impl Read for Export {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(file) = self.files.last_mut() {
            let read = file.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            self.files.pop();
        }
        Ok(0)
    }
}
