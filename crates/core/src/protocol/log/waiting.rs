//! Client calls whose verdict is still open: refused must mean never applied (P15, I8).

use std::collections::BTreeMap;

use crate::types::{Epoch, Index, RequestId};

/// Writes that reached this node's log, by the index that will decide them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Waiting {
    writes: BTreeMap<Index, (Epoch, RequestId)>,
}

impl Waiting {
    pub fn add(&mut self, index: Index, epoch: Epoch, request: RequestId) -> Option<RequestId> {
        self.writes.insert(index, (epoch, request)).map(|(_, before)| before)
    }

    /// The first write at or below `upto`, with the epoch it was written in.
    pub fn take(&mut self, upto: Index) -> Option<(Index, Epoch, RequestId)> {
        let entry = self.writes.first_entry().filter(|entry| *entry.key() <= upto)?;
        let (index, (epoch, request)) = entry.remove_entry();
        Some((index, epoch, request))
    }

    pub fn drain(&mut self) -> impl Iterator<Item = RequestId> {
        std::mem::take(&mut self.writes).into_values().map(|(_, request)| request)
    }
}
