//! I5: states that have applied the same index are identical. I7: nothing is applied twice.

use std::collections::BTreeMap;

use eldest::types::{Index, NodeId};

use super::{Check, ensure};

#[derive(Debug, Default)]
pub struct Applied {
    digests: BTreeMap<Index, (u64, NodeId)>,
    effects: BTreeMap<u128, Index>,
}

impl Applied {
    pub fn state(&mut self, node: NodeId, index: Index, digest: u64) -> Check {
        let (known, first) = *self.digests.entry(index).or_insert((digest, node));
        ensure(known == digest, "I5 states are identical", || {
            format!("at index {index} {node} has {digest:x}, {first} had {known:x}")
        })
    }

    /// A call took effect at this index. On every other node it must take effect at the same index.
    pub fn effect(&mut self, key: u128, index: Index) -> Check {
        let known = *self.effects.entry(key).or_insert(index);
        ensure(known == index, "I7 applied once", || {
            format!("call {key} took effect at {known} and at {index}")
        })
    }
}
