//! I1: at most one leader per epoch, counting two processes of one node as two.

use std::collections::BTreeMap;

use eldest::types::{Boot, Epoch, NodeId};

use super::{Check, ensure};

#[derive(Debug, Default)]
pub struct Epochs {
    leaders: BTreeMap<Epoch, (NodeId, Boot)>,
}

impl Epochs {
    pub fn leads(&mut self, epoch: Epoch, node: NodeId, boot: Boot) -> Check {
        let known = *self.leaders.entry(epoch).or_insert((node, boot));
        ensure(known == (node, boot), "I1 one leader per epoch", || {
            format!("epoch {epoch} is led by {known:?} and by {:?}", (node, boot))
        })
    }

    /// The number of epochs that were led, which is the number of changes of leader.
    pub fn count(&self) -> usize {
        self.leaders.len()
    }
}
