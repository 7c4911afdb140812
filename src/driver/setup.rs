//! What a node is told before it starts.

use std::sync::Arc;

use super::transport::Wall;
use crate::protocol::Settings;
use crate::types::NodeId;
use crate::wire::{ClusterHead, Secret};

/// Everything that the loop and the transport need of the configuration.
#[derive(Clone, Debug)]
pub struct Setup {
    pub settings: Settings,
    pub cluster: ClusterHead,
    /// The whole topology, this node included, ascending by id.
    pub members: Vec<Member>,
    /// Records from one snapshot to the next.
    pub snapshot_every: u64,
    pub secret: Option<Secret>,
    pub wall: Arc<Wall>,
}

#[derive(Clone, Debug)]
pub struct Member {
    pub id: NodeId,
    pub name: String,
    pub host: String,
    pub port: u16,
}

impl Member {
    /// `http://host:port`, brackets around an IPv6 address.
    pub fn url(&self) -> String {
        format!("http://{}", self.authority())
    }

    pub fn authority(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

impl Setup {
    pub fn member(&self, id: NodeId) -> Option<&Member> {
        self.members.iter().find(|member| member.id == id)
    }

    pub fn others(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| member.id != self.settings.me)
    }
}
