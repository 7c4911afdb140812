//! What every answer says about the node, kept where any thread reads it without asking the loop.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use crate::types::{Epoch, Index, NodeId};

/// Written by the loop alone. Each number is true by itself; together they may be a moment apart.
#[derive(Debug, Default)]
pub struct Pulse {
    /// Zero: nobody leads.
    leader: AtomicU64,
    counter: AtomicU64,
    epoch_leader: AtomicU64,
    applied: AtomicU64,
    advice: RwLock<Option<String>>,
}

impl Pulse {
    pub fn leader(&self) -> Option<NodeId> {
        match self.leader.load(Ordering::Relaxed) as u32 {
            0 => None,
            id => Some(NodeId(id)),
        }
    }

    pub fn epoch(&self) -> Epoch {
        let leader = self.epoch_leader.load(Ordering::Relaxed) as u32;
        Epoch::new(self.counter.load(Ordering::Relaxed), NodeId(leader))
    }

    pub fn applied(&self) -> Index {
        self.applied.load(Ordering::Relaxed)
    }

    /// Why nobody leads and what to do, if that is more than an election under way.
    pub fn advice(&self) -> Option<String> {
        self.advice.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn advise(&self, advice: Option<String>) {
        *self.advice.write().unwrap_or_else(PoisonError::into_inner) = advice;
    }

    pub(super) fn set(&self, leader: Option<NodeId>, epoch: Epoch, applied: Index) {
        self.leader.store(leader.map_or(0, |node| node.0.into()), Ordering::Relaxed);
        self.counter.store(epoch.counter, Ordering::Relaxed);
        self.epoch_leader.store(epoch.leader.0.into(), Ordering::Relaxed);
        self.applied.store(applied, Ordering::Relaxed);
    }
}
