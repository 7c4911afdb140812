//! A writer that also computes the checksum of everything written. State transfers and backups end with the same last line
//! as a snapshot, so the same script checks all three.

use std::io::{self, Write};

use crc32fast::Hasher;

pub struct Summing<W> {
    pub out: W,
    pub crc: Hasher,
}

impl<W> Summing<W> {
    pub fn new(out: W) -> Summing<W> {
        Summing { out, crc: Hasher::new() }
    }
}

impl<W: Write> Summing<W> {
    /// Writes the last line: the number of lines between it and the head, and the crc32 of every byte before its digits.
    pub fn end(&mut self, lines: u64) -> io::Result<()> {
        write!(self, "end {lines} ")?;
        let crc = self.crc.clone().finalize();
        writeln!(self, "{crc:08x}")?;
        self.flush()
    }
}

impl<W: Write> Write for Summing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.crc.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
