//! What a node is told before it starts.

use std::sync::Arc;

use super::directory::{Directory, Known};
use super::member::Member;
use super::wall::Wall;
use crate::protocol::Settings;
use crate::types::NodeId;
use crate::wire::{ClusterHead, Secret};

/// Everything that the loop and the transport need of the configuration.
#[derive(Debug)]
pub struct Setup {
    pub settings: Settings,
    pub cluster: ClusterHead,
    /// Who belongs to the cluster, this node included.
    pub directory: Directory,
    /// Records from one snapshot to the next.
    pub snapshot_every: u64,
    pub secret: Option<Secret>,
    pub wall: Arc<Wall>,
}

impl Setup {
    pub fn known(&self) -> Arc<Known> {
        self.directory.known()
    }

    pub fn member(&self, id: NodeId) -> Option<Member> {
        self.known().member(id).cloned()
    }

    pub fn others(&self) -> Vec<Member> {
        let known = self.known();
        known.members.iter().filter(|member| member.id != self.settings.me).cloned().collect()
    }
}
