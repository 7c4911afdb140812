//! The line that records how far the log is known to be durable (P27).
//!
//! `= <index> <checksum>`. The checksum covers the last record line's checksum and the marker without its own. Markers are
//! not part of the chain, so they are never sent to other disks.
//!
//! Without markers a bad line at the end of a log has two explanations: a write that a power failure cut short, or damage to
//! a record that was acknowledged. In the first case the line is cut, in the second the disk is doubtful (P27).
//!
//! A marker is written with the next batch, and not right after the records that it vouches for: it may exist only once
//! their sync has succeeded, and a separate sync for each marker would double the number of syncs.

use super::digits::{Cursor, hex8, push_decimal};
use crate::types::Index;

/// The maximum length of a marker, including its newline.
/// `= `, 20 digits, a blank, 8 digits and the newline.
pub const MARKER_BYTES_MAX: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marker {
    pub index: Index,
    pub crc: u32,
}

impl Marker {
    /// The checksum is derived from that of the record, so a marker fits one record of one history.
    pub fn new(index: Index, chain: u32) -> Marker {
        let mut text = hex8(chain).to_vec();
        text.extend_from_slice(b"= ");
        push_decimal(&mut text, index);
        Marker { index, crc: crc32fast::hash(&text) }
    }

    pub fn push(self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"= ");
        push_decimal(out, self.index);
        out.push(b' ');
        out.extend_from_slice(&hex8(self.crc));
        out.push(b'\n');
    }

    pub fn parse(line: &[u8]) -> Option<Marker> {
        let mut cursor = Cursor::new(line);
        cursor.take(b"= ")?;
        let index = cursor.decimal()?;
        cursor.take(b" ")?;
        let crc = cursor.hex8()?;
        cursor.rest().is_empty().then_some(Marker { index, crc })
    }

    /// A marker at the end of a line that has lost the newline before it.
    /// If damage joins the two lines, the marker must still be counted: otherwise the record before it would be taken for
    /// torn, although it was durable.
    pub fn at_end_of(line: &[u8]) -> Option<Marker> {
        let from = line.windows(2).rposition(|pair| pair == b"= ")?;
        Marker::parse(&line[from..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_survives_its_text() {
        let marker = Marker::new(20, 0xdead_beef);
        let mut text = Vec::new();
        marker.push(&mut text);
        let line = text.strip_suffix(b"\n").unwrap();
        assert_eq!(Marker::parse(line), Some(marker));
        assert_eq!(Marker::at_end_of(&[b"9 1.1 {\"a\":\"= 3\"}K", line].concat()), Some(marker));
        assert_eq!(marker.crc, crc32fast::hash(b"deadbeef= 20"));
        let mut longest = Vec::new();
        Marker::new(Index::MAX, 0).push(&mut longest);
        assert!(longest.len() <= MARKER_BYTES_MAX);
    }

    #[test]
    fn what_is_no_marker_is_none() {
        for text in ["", "=", "= 20", "= 20 deadbee", "= 20 deadbeef ", "= 020 deadbeef", "20 1.1 deadbeef"] {
            assert_eq!(Marker::parse(text.as_bytes()), None, "{text}");
        }
    }
}
