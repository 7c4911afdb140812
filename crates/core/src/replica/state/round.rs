//! A round: the records and questions of one input.

use crate::protocol::Proposal;
use crate::types::{Index, RequestId};

#[derive(Clone, Debug, Default)]
pub(in crate::replica) struct Round {
    pub entries: Vec<Proposal>,
    pub bytes: usize,
    /// Reads, each with the record that its answer was judged by.
    pub reads: Vec<(RequestId, Index)>,
}

impl Round {
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.reads.is_empty()
    }
}
