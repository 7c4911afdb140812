//! A batch from the network: the same lines as on the sender's disk.
//!
//! The receiver checks each line and then keeps the bytes: `Lines` hands the same bytes to the disk and to other nodes, and
//! nothing is encoded twice. So a record has the same line on every node, and two logs can be compared by one checksum.

use std::fmt;

use bytes::Bytes;

use super::line::{self, LineError};
use super::text::lines;
use crate::types::{Position, Record};

/// Records together with the lines that they were read from.
#[derive(Clone, Debug)]
pub struct Batch {
    pub records: Vec<Record>,
    pub encoded: Encoded,
}

/// Checked lines, one per record, without anything between them.
#[derive(Clone, Debug, Default)]
pub struct Encoded {
    pub(super) bytes: Bytes,
    /// The checksum that the first line is chained to.
    pub(super) before: u32,
    pub(super) ends: Vec<LineEnd>,
    pub(super) positions: Vec<Position>,
}

/// The end of a line, behind its newline, and the line's checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineEnd {
    pub at: usize,
    pub chain: u32,
}

/// A batch that cannot come from a leader's log. No part of it may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchError {
    pub offset: usize,
    pub error: LineError,
}

impl fmt::Display for BatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {} of the batch: {}", self.offset, self.error)
    }
}

impl std::error::Error for BatchError {}

/// Reads lines that follow a line with the checksum `chain`. Their indexes are contiguous, and their epochs never decrease.
/// The sender says what `chain` is. `Lines::append` compares it with the log here, and does not use these bytes if they
/// differ.
pub fn decode_all(bytes: Bytes, chain: u32) -> Result<Batch, BatchError> {
    let mut records: Vec<Record> = Vec::new();
    let mut encoded = Encoded { before: chain, ..Encoded::default() };
    let mut at = chain;
    // Lines that are taken are written and sent on as they are, and found again by their ends. So nothing may stand between them.
    let mut end = 0;
    for line in lines(&bytes) {
        let fail = |error| BatchError { offset: line.offset, error };
        if line.offset != end {
            return Err(fail(LineError::Field("line")));
        }
        if !line.ended {
            return Err(fail(LineError::Field("end")));
        }
        let (record, crc) = line::decode(line.text, at).map_err(fail)?;
        let follows = records.last().is_none_or(|last| follows(last.position, record.position));
        if !follows {
            return Err(fail(LineError::Order(record.position)));
        }
        (at, end) = (crc, line.end());
        encoded.ends.push(LineEnd { at: line.end(), chain: crc });
        encoded.positions.push(record.position);
        records.push(record);
    }
    if end != bytes.len() {
        return Err(BatchError { offset: end, error: LineError::Field("line") });
    }
    encoded.bytes = bytes;
    Ok(Batch { records, encoded })
}

/// The order in every log: indexes without a gap, and epochs that never decrease.
pub fn follows(before: Position, next: Position) -> bool {
    before.index.checked_add(1) == Some(next.index) && next.epoch >= before.epoch
}
