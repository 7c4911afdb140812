//! The invariants that no script may break.

use std::collections::{BTreeMap, BTreeSet};

use eldest::protocol::Event;
use eldest::store::Store;
use eldest::types::{Boot, Epoch, Index, NodeId, Position};

#[derive(Default)]
pub struct Referee {
    sure: BTreeSet<NodeId>,
    opened: BTreeMap<Epoch, Boot>,
    applied: BTreeMap<Index, Position>,
    states: BTreeMap<Index, u64>,
    /// A script has made the states differ on purpose.
    pub garbled: bool,
}

impl Referee {
    /// Notes whether a node answers `/is_leader` with true; returns what has changed.
    pub fn sure(&mut self, node: NodeId, sure: bool) -> Option<&'static str> {
        let changed = match sure {
            true => self.sure.insert(node),
            false => self.sure.remove(&node),
        };
        let text = if sure { "is_leader" } else { "is_leader no more" };
        changed.then_some(text)
    }

    /// No two nodes are sure to lead at the same moment (I4).
    pub fn only_one_is_sure(&self) {
        let sure = &self.sure;
        assert!(sure.len() < 2, "two are sure to lead (I4): {sure:?}");
    }

    /// An epoch is opened by one process only (I1).
    pub fn told(&mut self, boot: Boot, event: &Event) {
        if let Event::Opened { epoch } = *event {
            let first = *self.opened.entry(epoch).or_insert(boot);
            assert_eq!(first, boot, "{epoch} was opened twice (I1)");
        }
    }

    /// The record that is applied at an index is the same everywhere (I5).
    pub fn applied(&mut self, node: NodeId, at: Position) {
        let first = *self.applied.entry(at.index).or_insert(at);
        assert_eq!(first, at, "{node} applies another history (I5)");
    }

    /// The state after it is also the same, unless a script has garbled a record for one node.
    pub fn state(&mut self, node: NodeId, store: &Store) {
        let (index, digest) = (store.applied().index, store.digest());
        let first = *self.states.entry(index).or_insert(digest);
        let known = self.garbled || first == digest;
        assert!(known, "{node} has another state at {index} (I5)");
    }
}
