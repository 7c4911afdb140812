//! I7: a node sends the readers of its feed each record once and in order, and all nodes send the same about
//! it.

use std::collections::BTreeMap;

use eldest::replica::{Draft, FeedEvent, Kind};
use eldest::types::{Index, NodeId, Position};

use super::{Check, ensure};

const NAME: &str = "I7 the feed has no gap and no duplicate";

#[derive(Debug, Default)]
pub struct Told {
    /// The position up to which each process has sent records to its readers.
    upto: BTreeMap<(NodeId, u64), Position>,
    drafts: BTreeMap<Position, Vec<Draft>>,
    by_index: BTreeMap<Index, Position>,
    /// For each node, the number of merges that were called off for its readers and not for its operators
    /// yet.
    called_off: BTreeMap<NodeId, usize>,
}

impl Told {
    /// A process begins with this state.
    pub fn begins(&mut self, node: NodeId, life: u64, applied: Position) {
        self.upto.insert((node, life), applied);
    }

    pub fn told(&mut self, node: NodeId, life: u64, event: &FeedEvent, sides: bool) -> Check {
        let upto = self.upto.entry((node, life)).or_default();
        let before = *upto;
        match event {
            FeedEvent::Record { at, drafts, .. } => {
                *upto = *at;
                ensure(at.index == before.index + 1, NAME, || format!("{node} tells {at} after {before}"))?;
                let first = self.drafts.entry(*at).or_insert_with(|| drafts.clone());
                ensure(first == drafts, NAME, || format!("{node} tells {drafts:?} of {at}, not {first:?}"))?;
                let known = *self.by_index.entry(at.index).or_insert(*at);
                ensure(sides || known == *at, NAME, || format!("{node} tells {at}, others {known}"))
            }
            FeedEvent::Replaced { at, .. } => {
                *upto = *at;
                ensure(at.index >= before.index, NAME, || format!("{node} goes from {before} to {at}"))
            }
            FeedEvent::Passing(draft) => {
                *self.called_off.entry(node).or_default() += usize::from(draft.kind == Kind::MergeCalledOff);
                Ok(())
            }
        }
    }

    /// The log for people says that a merge is called off.
    pub fn called_off(&mut self, node: NodeId) -> Check {
        let told = self.called_off.remove(&node);
        ensure(told == Some(1), "P48 readers hear of it", || {
            format!("{node} calls a merge off, of which its readers hear {} times", told.unwrap_or_default())
        })
    }
}
