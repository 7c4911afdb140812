//! What a node says of itself and of the cluster.

use serde::Serialize;

use crate::types::Index;

#[derive(Clone, Debug, Serialize)]
pub struct Status {
    pub cluster: String,
    pub mode: &'static str,
    pub node: NodeStatus,
    pub role: &'static str,
    pub leader: Option<LeaderStatus>,
    pub epoch: String,
    pub commit_index: Index,
    pub applied_index: Index,
    pub last_index: Index,
    pub snapshot_id: u64,
    pub digest: String,
    /// How large the state is, and how large clients may make it while this node leads.
    pub state_bytes: u64,
    pub state_bytes_most: u64,
    pub admitted: bool,
    /// Another disk counts under this node's id (P10).
    pub replaced: bool,
    pub heir: Option<u32>,
    pub service_down: bool,
    pub disk_full: bool,
    /// What tells it from another of the same name. Null before it is formed, and in available mode.
    pub cluster_id: Option<String>,
    /// What an operator should look at, if there is something.
    pub remark: Option<String>,
    pub members: Vec<MemberStatus>,
}

#[derive(Clone, Debug, Serialize)]
pub struct NodeStatus {
    pub id: u32,
    pub name: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct LeaderStatus {
    pub id: u32,
    pub url: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct MemberStatus {
    pub id: u32,
    pub name: String,
    pub url: String,
    /// Null where this node cannot know it.
    pub role: Option<&'static str>,
    pub reachable: bool,
    /// What this node as the leader knows to be on the member's disk; null on a follower.
    pub match_index: Option<Index>,
    pub lag: Option<u64>,
    pub last_heard_ms: Option<u64>,
    /// Why calls from or to it are refused, if they are.
    pub trouble: Option<String>,
    /// False while it learns what the cluster has.
    pub votes: bool,
}
