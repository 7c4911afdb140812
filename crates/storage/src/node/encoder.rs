//! Turns a replica's disk writes into jobs: records become lines, states become boundaries and rows.

use std::sync::Arc;

use bytes::Bytes;

use crate::batch::Encoded;
use crate::error::StorageError;
use crate::lines::Lines;
use crate::meta::Boundary;
use crate::node::states::SnapshotRows;
use crate::protocol::{Records, Seq, SnapshotMeta};
use crate::replica::{DiskWrite, SnapshotOrder};
use crate::snapshot::{Incoming, Rebase};
use crate::types::{Index, Position};
use crate::writer::{Job, Report};

/// Follows the replica's log, so that each write can be passed on in the form that it has on the disk.
/// Every write of the replica must pass here, in order: the checksum of a line depends on all lines before it.
#[derive(Debug)]
pub struct Encoder {
    lines: Lines,
    /// The files of the snapshot that arrived with the current message.
    incoming: Option<Incoming>,
}

impl Encoder {
    pub fn new(lines: Lines) -> Encoder {
        Encoder { lines, incoming: None }
    }

    /// Takes the lines that arrived with the next message.
    pub fn receive(&mut self, lines: Encoded) {
        self.lines.receive(lines);
    }

    /// Takes the snapshot that arrived with the next message, if there is one. A snapshot that the replica did not install is
    /// dropped, and its files are removed with it.
    pub fn bring(&mut self, incoming: Option<Incoming>) {
        self.incoming = incoming;
    }

    /// Returns `None` if a snapshot is to be installed without its files. This does not happen: a replica only installs a
    /// snapshot that it received.
    pub fn job(&mut self, write: DiskWrite) -> Option<Job> {
        Some(match write {
            DiskWrite::Vote(vote) => Job::Vote(vote),
            DiskWrite::Append(records) => {
                // The same bytes are sent to followers by `lines_after`.
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

    /// The boundary after the last record of `meta`. Returns `None` if the log no longer has that record: then its checksum is
    /// not known, and no snapshot can be taken there.
    pub fn boundary(&self, meta: &SnapshotMeta, origin: Index) -> Option<Boundary> {
        let chain = self.lines.chain_at(meta.index())?;
        Some(Boundary { meta: meta.clone(), chain, origin })
    }

    /// The lines of these records as the log has them, and the checksum that they are chained to.
    pub fn lines_after(&self, prev: Position, records: &Records) -> Option<(u32, Bytes)> {
        let chain = self.lines.chain_at(prev.index)?;
        if records.is_empty() {
            return Some((chain, Bytes::new()));
        }
        Some((chain, self.lines.slice(prev.index, records.len())?))
    }
}

// The known state of the disk.

/// The writer's last reports. The parts are independent: skipping an older value loses nothing.
#[derive(Clone, Debug, Default)]
pub struct DiskState {
    pub durable: Seq,
    /// The promises up to here are durable, even if a job before them waits for room.
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
