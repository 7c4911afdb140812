//! The encoded form of the log's tail in memory. The same bytes go to the network and to the disk, so nothing is encoded
//! twice.
//!
//! ```text
//!  leader     record ─► encode ─┐                        ┌─► Job::Append ─► the disk
//!                               ├─► chunk ─► Bytes ──────┤
//!  follower   batch ─► receive ─┘                        └─► slice ─► appends, answers to pulls
//! ```
//!
//! `Bytes` are shared. This module copies a line only if it is sent together with lines of another chunk.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

use super::batch::{Encoded, LineEnd};
use super::line;
use super::meta::Boundary;
use crate::types::{Index, Record};

/// Follows the core's log: it starts at the same record, and gets every change of the log.
#[derive(Clone, Debug)]
pub struct Lines {
    /// The first line here comes after this record.
    base: Index,
    /// That record's checksum.
    chain: u32,
    chunks: VecDeque<Chunk>,
    /// Lines that a leader sent and the core has not yet appended.
    received: Encoded,
}

/// Lines in one buffer without a gap.
#[derive(Clone, Debug)]
struct Chunk {
    first: Index,
    bytes: Bytes,
    ends: Vec<LineEnd>,
}

impl Lines {
    pub fn new(boundary: &Boundary) -> Lines {
        let (base, chain) = (boundary.index(), boundary.chain);
        Lines { base, chain, chunks: VecDeque::new(), received: Encoded::default() }
    }

    /// Takes a received batch, so that its lines are reused when the core appends its records.
    /// Only the newest batch is kept. If the core does not append its records, the next batch replaces it.
    pub fn receive(&mut self, encoded: Encoded) {
        self.received = encoded;
    }

    /// The lines of records that the core has appended: for the disk, and for the followers.
    pub fn append(&mut self, records: &[Record]) -> Bytes {
        let Some(first) = records.first() else {
            return Bytes::new();
        };
        debug_assert_eq!(first.index(), self.last() + 1, "a log has no gap");
        let chunk = self.take_received(records).unwrap_or_else(|| self.encode(records));
        let bytes = chunk.bytes.clone();
        self.chunks.push_back(chunk);
        bytes
    }

    fn encode(&self, records: &[Record]) -> Chunk {
        let mut bytes = Vec::with_capacity(records.iter().map(|record| record.entry.size() + 64).sum());
        let mut ends = Vec::with_capacity(records.len());
        let mut chain = self.last_chain();
        for record in records {
            chain = line::encode(record, chain, &mut bytes);
            ends.push(LineEnd { at: bytes.len(), chain });
        }
        Chunk { first: records[0].index(), bytes: bytes.into(), ends }
    }

    /// The received lines of these same records, if they follow the last line here. The core may append only the end of a
    /// batch, because it has the beginning already. A position identifies one record only (P5), so positions are compared and
    /// not contents.
    fn take_received(&mut self, records: &[Record]) -> Option<Chunk> {
        let received = std::mem::take(&mut self.received);
        let first = records[0].index();
        let skipped = first.checked_sub(received.positions.first()?.index)? as usize;
        let positions = received.positions.get(skipped..skipped + records.len())?;
        let before = skipped.checked_sub(1).map(|at| received.ends[at]);
        let before = before.unwrap_or(LineEnd { at: 0, chain: received.before });
        // If the line before them has another checksum, the records are right, but their checksums are not those of this log.
        // Then the records are encoded again.
        let same = positions.iter().zip(records).all(|(position, record)| *position == record.position);
        if !same || before.chain != self.last_chain() {
            return None;
        }
        let ends = &received.ends[skipped..skipped + records.len()];
        let bytes = received.bytes.slice(before.at..ends[ends.len() - 1].at);
        let moved = |end: &LineEnd| LineEnd { at: end.at - before.at, ..*end };
        Some(Chunk { first, bytes, ends: ends.iter().map(moved).collect() })
    }

    /// Adds a line as it is on disk. It is known to follow the last one.
    pub(super) fn push_line(&mut self, line: &[u8], chain: u32, chunk: &mut Building) {
        chunk.bytes.extend_from_slice(line);
        chunk.bytes.extend_from_slice(b"\n");
        chunk.ends.push(LineEnd { at: chunk.bytes.len(), chain });
        if chunk.bytes.len() >= Building::BYTES {
            self.finish(chunk);
        }
    }

    pub(super) fn finish(&mut self, chunk: &mut Building) {
        let Building { bytes, ends } = std::mem::take(chunk);
        if !ends.is_empty() {
            self.chunks.push_back(Chunk { first: self.last() + 1, bytes: bytes.freeze(), ends });
        }
    }

    pub fn last(&self) -> Index {
        self.chunks.back().map_or(self.base, Chunk::last)
    }

    fn last_chain(&self) -> u32 {
        self.chunks.back().map_or(self.chain, |chunk| chunk.ends[chunk.ends.len() - 1].chain)
    }

    /// The checksum of the line at `index`, which may also be the index of the base. `None` if the log begins later or ends
    /// earlier.
    pub fn chain_at(&self, index: Index) -> Option<u32> {
        if index == self.base {
            return Some(self.chain);
        }
        self.chunk(index).map(|chunk| chunk.ends[(index - chunk.first) as usize].chain)
    }

    /// The lines of `count` records above `above`. They are not copied if they arrived together. `None` if any of them is not
    /// here.
    pub fn slice(&self, above: Index, count: usize) -> Option<Bytes> {
        let upto = above.checked_add(count as u64)?;
        if above < self.base || upto > self.last() {
            return None;
        }
        if count == 0 {
            return Some(Bytes::new());
        }
        let first = self.chunk(above + 1)?;
        if upto <= first.last() {
            return Some(first.part(above, upto));
        }
        let from = self.chunks.partition_point(|chunk| chunk.last() <= above);
        let touched = self.chunks.range(from..).take_while(|chunk| chunk.first <= upto);
        let parts: Vec<Bytes> = touched.map(|chunk| chunk.part(above, upto)).collect();
        let mut whole = BytesMut::with_capacity(parts.iter().map(Bytes::len).sum());
        parts.iter().for_each(|part| whole.extend_from_slice(part));
        Some(whole.freeze())
    }

    fn chunk(&self, index: Index) -> Option<&Chunk> {
        let at = self.chunks.partition_point(|chunk| chunk.last() < index);
        self.chunks.get(at).filter(|chunk| chunk.first <= index && index > self.base)
    }

    pub fn truncate(&mut self, above: Index) {
        let kept = self.chunks.partition_point(|chunk| chunk.first <= above);
        self.chunks.truncate(kept);
        if let Some(chunk) = self.chunks.back_mut().filter(|chunk| chunk.last() > above) {
            chunk.ends.truncate((above + 1 - chunk.first) as usize);
            chunk.bytes.truncate(chunk.ends[chunk.ends.len() - 1].at);
        }
    }

    /// Drops the lines up to `upto`. Lines that share a buffer with later ones stay in memory until those are dropped.
    pub fn trim(&mut self, upto: Index) {
        let upto = upto.min(self.last());
        if let Some(chain) = self.chain_at(upto) {
            (self.base, self.chain) = (upto, chain);
            let gone = self.chunks.partition_point(|chunk| chunk.last() <= upto);
            self.chunks.drain(..gone);
        }
    }

    pub fn reset(&mut self, boundary: &Boundary) {
        *self = Lines::new(boundary);
    }
}

/// A chunk that grows line by line.
#[derive(Debug, Default)]
pub(super) struct Building {
    bytes: BytesMut,
    ends: Vec<LineEnd>,
}

impl Building {
    /// Long enough for few chunks, and short enough that a partly trimmed chunk does not keep much memory.
    const BYTES: usize = 1 << 20;
}

impl Chunk {
    fn last(&self) -> Index {
        self.first + self.ends.len() as u64 - 1
    }

    /// The part of this chunk above `above` and up to `upto`.
    fn part(&self, above: Index, upto: Index) -> Bytes {
        let end = |index: Index| match index.checked_sub(self.first) {
            Some(at) => self.ends[(at as usize).min(self.ends.len() - 1)].at,
            None => 0,
        };
        self.bytes.slice(end(above)..end(upto))
    }
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
