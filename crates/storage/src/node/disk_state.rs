//! What is known of the disk.

use std::sync::Arc;

use crate::error::StorageError;
use crate::protocol::Seq;
use crate::writer::Report;

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
