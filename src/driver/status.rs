//! A node's own view of itself and of the cluster.

use serde::Serialize;

use super::clock;
use super::engine::Engine;
use super::setup::Member;
use crate::protocol::{Mode, RoleName};
use crate::types::{Index, NodeId};

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
    pub admitted: bool,
    pub heir: Option<u32>,
    pub service_down: bool,
    pub disk_full: bool,
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
}

impl Engine {
    pub fn status(&self) -> Status {
        let setup = &self.setup;
        let (core, store) = (&self.core, self.states.committed());
        let name = setup.member(self.me()).map(|member| member.name.clone()).unwrap_or_default();
        let leader = core.leader().and_then(|leader| setup.member(leader));
        let applied_index = store.applied().index;
        Status {
            cluster: setup.cluster.name.clone(),
            mode: mode_name(setup.settings.mode),
            node: NodeStatus { id: self.me().0, name },
            role: role_name(core.role_name()),
            leader: leader.map(|member| LeaderStatus { id: member.id.0, url: member.url() }),
            epoch: core.vote().promise.epoch.to_string(),
            // A snapshot holds what is committed, also where the log starts further back.
            commit_index: core.commit_index().max(applied_index),
            applied_index,
            last_index: core.last().index,
            snapshot_id: self.snapshot_id(),
            digest: format!("{:016x}", store.digest()),
            admitted: core.is_admitted(),
            heir: core.heir().map(|node| node.0),
            service_down: core.service_is_down(),
            disk_full: self.disk_full,
            members: setup.members.iter().map(|member| self.member(member)).collect(),
        }
    }

    /// The newest boundary that has a finished snapshot.
    fn snapshot_id(&self) -> u64 {
        self.snapshot_index.saturating_sub(self.origin) / self.setup.snapshot_every
    }

    fn member(&self, member: &Member) -> MemberStatus {
        let (id, me) = (member.id, self.me());
        let heard = self.core.last_heard(id).map(|at| clock::now().mono.since(at).0 / 1000);
        let matched = self.core.matched_by(id);
        MemberStatus {
            id: id.0,
            name: member.name.clone(),
            url: member.url(),
            role: self.role_of(id),
            reachable: id == me || self.network.is_reachable(id),
            match_index: matched,
            lag: matched.map(|matched| self.core.last().index.saturating_sub(matched)),
            last_heard_ms: if id == me { Some(0) } else { heard },
            trouble: self.network.trouble(id),
        }
    }

    fn role_of(&self, id: NodeId) -> Option<&'static str> {
        match self.core.leader() {
            _ if id == self.me() => Some(role_name(self.core.role_name())),
            Some(leader) if leader == id => Some("leader"),
            // A leader knows who follows it: whoever answers its beats.
            Some(leader) if leader == self.me() && self.network.is_reachable(id) => Some("follower"),
            _ => None,
        }
    }
}

fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Safe => "safe",
        Mode::Available => "available",
    }
}

fn role_name(role: RoleName) -> &'static str {
    match role {
        RoleName::Candidate => "candidate",
        RoleName::Follower => "follower",
        RoleName::Leader => "leader",
        RoleName::Stopped => "stopped",
    }
}
