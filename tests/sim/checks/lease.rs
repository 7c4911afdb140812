//! I4: no two nodes answer `/is_leader` with true at the same instant.

use eldest::types::NodeId;

use super::{Check, ensure};

#[derive(Debug, Default)]
pub struct Leases {
    /// A clock has left the drift bound, so nothing is promised any more.
    pub void: bool,
}

impl Leases {
    pub fn holders(&self, holders: &[NodeId]) -> Check {
        let alone = holders.len() <= 1 || self.void;
        ensure(alone, "I4 one lease at a time", || format!("{holders:?} all say that they lead"))
    }
}
