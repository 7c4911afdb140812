//! I5 in available mode: states at the same position are identical, whether the node got there by records, by
//! a merge or by a state transfer.

use std::collections::BTreeMap;

use eldest::types::{NodeId, Position};

use super::{Check, ensure};

#[derive(Debug, Default)]
pub struct Positions {
    digests: BTreeMap<Position, (u64, NodeId)>,
}

impl Positions {
    pub fn reached(&mut self, node: NodeId, at: Position, digest: u64) -> Check {
        let (known, first) = *self.digests.entry(at).or_insert((digest, node));
        ensure(known == digest, "I5 same position, same state", || {
            format!("at {at} {node} has {digest:x}, {first} had {known:x}")
        })
    }
}
