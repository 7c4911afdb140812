//! What a node is told before it starts.

use std::sync::Arc;

use super::directory::{Directory, Known};
use super::member::Member;
use super::wall::Wall;
use crate::protocol::Settings;
use crate::types::{ClusterId, Members, NodeId};
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
    /// The log says who belongs to the cluster. If the topology file says something else, people are told.
    pub fn follow(&self, cluster: ClusterId, members: &Members) {
        let told = self.directory.disagreement();
        self.directory.follow(cluster, members);
        let now = self.directory.disagreement();
        if let Some(remark) = now.as_ref().filter(|_| now != told) {
            tracing::warn!("{remark}");
        }
    }

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
