//! What a node is told before it starts.

use std::sync::Arc;

use super::directory::{Directory, Known};
use super::member::Member;
use super::notices::Notices;
use super::wall::Wall;
use crate::protocol::Settings;
use crate::storage::node::backup::Home;
use crate::types::NodeId;
use crate::wire::{ClusterHead, Secrets};
use eldest_tls::NodeTls;

/// Everything that the loop and the transport need of the configuration.
#[derive(Debug)]
pub struct Setup {
    pub settings: Settings,
    pub cluster: ClusterHead,
    /// Who belongs to the cluster, this node included.
    pub directory: Directory,
    /// Records from one snapshot to the next.
    pub snapshot_every: u64,
    pub secret: Option<Arc<Secrets>>,
    pub tls: Option<Tls>,
    pub notices: Notices,
    pub wall: Arc<Wall>,
}

/// A node that speaks TLS.
#[derive(Clone, Debug)]
pub struct Tls {
    pub certificates: Arc<NodeTls>,
    /// Whether nodes call each other by TLS: not before all of them understand it.
    pub dials: bool,
    /// Whether who calls without TLS is answered, too.
    pub takes_plain: bool,
}

impl Setup {
    /// Where a node is called: `https://host:port`, or `http://` while the nodes do not speak TLS among each other.
    pub fn url(&self, member: &Member) -> String {
        let scheme = if self.dialling().is_some() { "https" } else { "http" };
        format!("{scheme}://{}", member.authority())
    }

    /// The certificates with which nodes are called, if they are called by TLS.
    pub fn dialling(&self) -> Option<&Arc<NodeTls>> {
        self.tls.as_ref().filter(|tls| tls.dials).map(|tls| &tls.certificates)
    }

    /// As a backup names the cluster and this node.
    pub fn home(&self) -> Home {
        let known = self.known().cluster;
        Home {
            cluster: self.cluster.name.clone(),
            cluster_id: known.is_known().then(|| known.to_string()),
            mode: self.cluster.mode.clone(),
            node: self.settings.me.0,
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
