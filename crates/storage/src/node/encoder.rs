//! What a replica says of its disk, as jobs: records become lines, states become boundaries and rows.

use std::sync::Arc;

use crate::batch::Encoded;
use crate::error::StorageError;
use crate::lines::Lines;
use crate::meta::Boundary;
use crate::node::load::SnapshotRows;
use crate::protocol::{Records, Seq, SnapshotMeta};
use crate::replica::{DiskWrite, SnapshotOrder};
use crate::snapshot::{Incoming, Rebase};
use crate::types::{Index, Position};
use crate::writer::{Job, Report};
use bytes::Bytes;

/// Follows the replica's log, so that each write can be given on as it stands on the disk.
#[derive(Debug)]
pub struct Encoder {
    lines: Lines,
    /// The files of the snapshot that came with the message being handled.
    incoming: Option<Incoming>,
}

impl Encoder {
    pub fn new(lines: Lines) -> Encoder {
        Encoder { lines, incoming: None }
    }

    /// The lines that came with the message that is handled next.
    pub fn receive(&mut self, lines: Encoded) {
        self.lines.receive(lines);
    }

    /// The snapshot that came with the message that is handled next, or none.
    pub fn bring(&mut self, incoming: Option<Incoming>) {
        self.incoming = incoming;
    }

    /// None if a snapshot is to be installed that nobody sent: a replica installs nothing but what it was brought.
    pub fn job(&mut self, write: DiskWrite) -> Option<Job> {
        Some(match write {
            DiskWrite::Vote(vote) => Job::Vote(vote),
            DiskWrite::Append(records) => {
                let lines = self.lines.append(&records);
                Job::Append { records, lines }
            }
            DiskWrite::Truncate { above } => {
                self.lines.truncate(above);
                Job::Truncate { above }
            }
            DiskWrite::Trim { upto } => {
                self.lines.trim(upto);
                Job::Trim { upto }
            }
            DiskWrite::Rebase(order, chain) => self.rebase(*order, chain),
            DiskWrite::Install => {
                let incoming = self.incoming.take()?;
                self.lines.reset(incoming.boundary());
                Job::Install(incoming)
            }
        })
    }

    fn rebase(&mut self, order: SnapshotOrder, chain: u32) -> Job {
        let boundary = Boundary { meta: order.meta.clone(), chain, origin: order.origin };
        self.lines.reset(&boundary);
        let whole = order.whole;
        Job::Rebase(Rebase { boundary, rows: Box::new(SnapshotRows(order)), whole })
    }

    /// What a log goes on from behind this record; none if the log does not know it any more.
    pub fn boundary(&self, meta: &SnapshotMeta, origin: Index) -> Option<Boundary> {
        let chain = self.lines.chain_at(meta.index())?;
        Some(Boundary { meta: meta.clone(), chain, origin })
    }

    /// The lines of these records as they stand in the log, and the checksum that they go on from.
    pub fn lines_after(&self, prev: Position, records: &Records) -> Option<(u32, Bytes)> {
        let chain = self.lines.chain_at(prev.index)?;
        if records.is_empty() {
            return Some((chain, Bytes::new()));
        }
        Some((chain, self.lines.slice(prev.index, records.len())?))
    }
}

// What is known of the disk.

/// What the writer last said. Each part stands for itself: nothing is lost if an older one is never looked at.
#[derive(Clone, Debug, Default)]
pub struct DiskState {
    pub durable: Seq,
    /// Promises up to here are, though something before them waits for room.
    pub promised: Seq,
    pub full: bool,
    pub failed: Option<Arc<StorageError>>,
}

impl DiskState {
    pub fn note(&mut self, report: Report) {
        match report {
            Report::Durable(seq) => self.durable = self.durable.max(seq),
            Report::Promised(seq) => self.promised = self.promised.max(seq),
            Report::Full(full) => self.full = full,
            Report::Failed(error) => self.failed = Some(Arc::new(error)),
        }
    }
}
