//! A node that leads is the receiver of what a leader decides.

use super::leading::Leading;
use super::node::{Node, Role};
use super::progress::Progress;
use crate::types::NodeId;

/// A node that leads, with what its role remembers. Its methods decide and change nothing: the node does what follows.
#[derive(Clone, Copy, Debug)]
pub struct Leader<'a> {
    pub node: &'a Node,
    pub leading: &'a Leading,
}

impl Node {
    pub(in crate::protocol) fn as_leader(&self) -> Option<Leader<'_>> {
        self.leading().map(|leading| Leader { node: self, leading })
    }

    /// Once the first record of its epoch is committed (P6).
    pub(in crate::protocol) fn as_open_leader(&self) -> Option<Leader<'_>> {
        self.as_leader().filter(|leader| leader.leading.opened)
    }

    pub(in crate::protocol) fn leading(&self) -> Option<&Leading> {
        match &self.role {
            Role::Leading(leading) => Some(leading),
            _ => None,
        }
    }

    pub(in crate::protocol) fn leading_mut(&mut self) -> Option<&mut Leading> {
        match &mut self.role {
            Role::Leading(leading) => Some(leading),
            _ => None,
        }
    }

    /// How far that node is, if this one leads.
    pub(in crate::protocol) fn follower_mut(&mut self, node: NodeId) -> Option<&mut Progress> {
        self.leading_mut()?.progress.get_mut(&node)
    }
}
