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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types;

    fn member(id: u32) -> Member {
        Member::at(NodeId(id), &format!("node-{id}"), &format!("10.0.0.{id}:9000")).expect("an address")
    }

    /// A cluster of three by its topology file.
    fn directory() -> Directory {
        Directory::new([1, 2, 3].map(member).to_vec())
    }

    fn logged(id: u32, address: &str, pinned: bool) -> types::Member {
        let name = format!("node-{id}").into();
        types::Member { id: NodeId(id), name, address: address.into(), pinned, votes: id < 3 }
    }

    fn authority(member: Option<Member>) -> Option<String> {
        member.map(|member| member.authority())
    }

    #[test]
    fn there_is_room_for_as_many_strangers_as_members_and_some_more() {
        let directory = directory();
        let ids = || (100..200).map(NodeId);
        ids().for_each(|id| directory.meet(id, "10.0.1.1:9000"));
        let known = ids().filter(|id| directory.stranger(*id).is_some()).count();
        assert_eq!(known, STRANGERS_MOST + 3);
        // A known stranger may move, although there is no room.
        directory.meet(NodeId(100), "10.0.1.2:9000");
        assert_eq!(authority(directory.stranger(NodeId(100))).as_deref(), Some("10.0.1.2:9000"));
        directory.meet(NodeId(100), "no address");
        assert_eq!(authority(directory.stranger(NodeId(100))).as_deref(), Some("10.0.1.2:9000"));
    }

    #[test]
    fn a_member_where_it_belongs_is_no_stranger() {
        let directory = directory();
        directory.meet(NodeId(2), "10.0.0.2:9000");
        assert!(directory.stranger(NodeId(2)).is_none());
        directory.meet(NodeId(2), "10.0.9.2:9000");
        assert!(directory.stranger(NodeId(2)).is_some());
    }

    /// The log's address, then the file's, then what the node says itself; each once.
    #[test]
    fn a_member_is_looked_for_where_it_may_be() {
        let directory = directory();
        directory.follow(ClusterId(7), &[logged(2, "10.0.5.2:9000", true)].into_iter().collect());
        directory.meet(NodeId(2), "10.0.9.2:9000");
        let places = |id| -> Vec<String> {
            directory.places(NodeId(id)).iter().map(|place| place.authority()).collect()
        };
        assert_eq!(places(2), ["10.0.5.2:9000", "10.0.0.2:9000", "10.0.9.2:9000"]);
        directory.meet(NodeId(3), "10.0.0.3:9000");
        assert_eq!(places(3), ["10.0.0.3:9000"]);
        assert_eq!(places(4), [""; 0]);
    }

    #[test]
    fn the_file_says_where_a_member_is_unless_an_operator_has_said_it() {
        let directory = directory();
        let log = [
            logged(1, "10.0.5.1:9000", false),
            logged(2, "10.0.5.2:9000", true),
            logged(4, "10.0.5.4:9000", false),
            logged(5, "nowhere", false),
        ];
        directory.meet(NodeId(9), "10.0.9.9:9000");
        directory.follow(ClusterId(7), &log.into_iter().collect());
        let known = directory.known();
        let shown = |member: &Member| (member.authority(), member.votes);
        let shown: Vec<(String, bool)> = known.members.iter().map(shown).collect();
        let at = |authority: &str, votes| (authority.to_string(), votes);
        assert_eq!(shown, [at("10.0.0.1:9000", true), at("10.0.5.2:9000", true), at("10.0.5.4:9000", false)]);
        assert_eq!(known.voters(), 2);
        assert!(directory.stranger(NodeId(9)).is_none(), "who has called is forgotten");
    }

    #[test]
    fn people_hear_of_a_file_that_names_other_nodes() {
        let directory = directory();
        let log = |ids: &[u32]| ids.iter().map(|id| logged(*id, "10.0.5.1:9000", true)).collect();
        assert_eq!(directory.disagreement(), None);
        directory.follow(ClusterId(7), &log(&[1, 2, 3]));
        assert_eq!(directory.disagreement(), None);
        directory.follow(ClusterId(7), &log(&[1, 2, 4]));
        let told = directory.disagreement().expect("they differ");
        assert!(told.contains("names the nodes 1, 2, 3, the cluster has 1, 2, 4"), "{told}");
        // Before the log names a cluster the file is all there is.
        directory.follow(ClusterId::NONE, &log(&[1, 2, 4]));
        assert_eq!(directory.disagreement(), None);
    }
}
