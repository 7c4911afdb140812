//! Who belongs to the cluster, and where each is to be called: as the log says, and before it does as the topology file says.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::member::Member;
use crate::types::{ClusterId, Members, NodeId};

/// What is known now. Looked at by every thread, changed by the loop.
#[derive(Debug)]
pub struct Directory {
    /// The topology file's.
    founders: Vec<Member>,
    known: RwLock<Arc<Known>>,
    /// Who has called and is not where this node's log has it, or no member at all: the log may be the one that lags, and an answer
    /// must find its way.
    strangers: Mutex<BTreeMap<NodeId, Member>>,
}

/// More have never been on their way into one cluster at once.
const STRANGERS_MOST: usize = 16;

#[derive(Clone, Debug)]
pub struct Known {
    /// Which cluster this is, if the log says so.
    pub cluster: ClusterId,
    /// Ascending by id.
    pub members: Vec<Member>,
}

impl Known {
    pub fn member(&self, id: NodeId) -> Option<&Member> {
        self.members.iter().find(|member| member.id == id)
    }

    pub fn voters(&self) -> usize {
        self.members.iter().filter(|member| member.votes).count()
    }
}

impl Directory {
    pub fn new(founders: Vec<Member>) -> Directory {
        let known = Known { cluster: ClusterId::NONE, members: founders.clone() };
        Directory { founders, known: RwLock::new(Arc::new(known)), strangers: Mutex::default() }
    }

    /// A node has called that says it is at this address.
    pub fn meet(&self, id: NodeId, at: &str) {
        if self.known().member(id).is_some_and(|member| member.authority() == at) {
            return;
        }
        let mut strangers = self.strangers.lock().unwrap_or_else(PoisonError::into_inner);
        if strangers.get(&id).is_some_and(|stranger| stranger.authority() == at) {
            return;
        }
        let Some(stranger) = Member::at(id, &format!("node-{}", id.0), at) else {
            return;
        };
        let most = STRANGERS_MOST + self.known().members.len();
        if strangers.len() < most || strangers.contains_key(&id) {
            strangers.insert(id, stranger);
        }
    }

    /// Where a member may be: where it belongs, where the topology file has it, where it says that it is.
    pub fn places(&self, id: NodeId) -> Vec<Member> {
        let founder = self.founders.iter().find(|founder| founder.id == id).cloned();
        let all = [self.known().member(id).cloned(), founder, self.stranger(id)];
        let mut places: Vec<Member> = Vec::new();
        for place in all.into_iter().flatten() {
            if places.iter().all(|other| other.authority() != place.authority()) {
                places.push(place);
            }
        }
        places
    }

    pub fn stranger(&self, id: NodeId) -> Option<Member> {
        self.strangers.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    pub fn known(&self) -> Arc<Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The log has gone on, or back.
    pub fn follow(&self, cluster: ClusterId, members: &Members) {
        let place = |member: &crate::types::Member| {
            let by_file = self.founders.iter().find(|founder| founder.id == member.id && !member.pinned);
            let by_log = || Member::at(member.id, &member.name, &member.address);
            let found = by_file.cloned().or_else(by_log);
            if found.is_none() {
                tracing::error!(node = member.id.0, address = %member.address, "the log's address of it is none");
            }
            found.map(|found| Member { votes: member.votes, ..found })
        };
        let members = members.iter().filter_map(place).collect();
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(Known { cluster, members });
        self.strangers.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Where the topology file and the log name different nodes: the log is right, and people should hear of it (P43).
    pub fn disagreement(&self) -> Option<String> {
        let known = self.known();
        let ids = |members: &[Member]| -> Vec<NodeId> { members.iter().map(|member| member.id).collect() };
        let (file, log) = (ids(&self.founders), ids(&known.members));
        let list = |ids: &[NodeId]| -> String {
            ids.iter().map(|id| id.0.to_string()).collect::<Vec<_>>().join(", ")
        };
        (known.cluster.is_known() && file != log).then(|| {
            format!(
                "the topology file names the nodes {}, the cluster has {}: the cluster is right. \
                 Change the file to match, or the cluster by `eldest members add` and `remove`",
                list(&file),
                list(&log)
            )
        })
    }
}
