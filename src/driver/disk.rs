//! The way to the disk, and what is known to be there.

use super::transport::LogPacket;
use super::unsynced::Unsynced;
use crate::protocol::Seq;
use crate::storage::node::Encoder;
use crate::storage::{Disk, Job};
use crate::types::NodeId;

/// The loop's side of it.
#[derive(Debug)]
pub struct DiskEnd {
    pub encoder: Encoder,
    pub disk: Disk,
    pub durable: Seq,
    /// Promises up to here are durable, though something before them waits for room.
    pub promised: Seq,
    pub full: bool,
    /// Messages that wait for the writes they rely on.
    pub unsynced: Unsynced,
    /// Writes and appends of this round, given on together: what arrives together is synced together.
    pub jobs: Vec<(Seq, Job)>,
    pub appends: Vec<(NodeId, LogPacket)>,
}
