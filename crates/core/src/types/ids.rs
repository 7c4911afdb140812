//! Identities: nodes, boots of their processes, incarnations of their disks, the cluster and its members; and text that is
//! shared, never copied.

use std::fmt;
use std::sync::Arc;

/// Text that is shared, never copied: the same bytes go to disk and to every peer.
pub type Text = Arc<str>;

/// A node's index in the topology. Of two nodes, the one with the lower index is the elder. Zero means no node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// One life of a disk. It is drawn when a data directory is created, and again when the directory is found doubtful. Zero means
/// no disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(pub u64);

/// One life of a process, drawn at random at each start. Zero means no process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Boot(pub u64);

/// Distinguishes two processes that claim the same epoch (P2). Zero means no claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClaimId(pub u64);

/// The driver's id for a client's call. The core returns it with the verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

impl NodeId {
    pub const NONE: NodeId = NodeId(0);
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n{}", self.0)
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "i{:x}", self.0)
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", self.0)
    }
}

/// The identity of the cluster. It is drawn when the cluster is formed, so that two clusters of one name can be distinguished.
/// Zero means that it is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterId(pub u128);

/// A node of the cluster, as the log records it (P43).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Member {
    pub id: NodeId,
    /// For people.
    pub name: Text,
    /// `host:port`. A node whose topology file gives this member another address uses that one.
    pub address: Text,
    /// An operator has set the address by a command, so it takes precedence over every topology file.
    pub pinned: bool,
    /// A new member first learns, and votes once it has caught up.
    pub votes: bool,
}

/// Sorted by id; shared, never changed in place.
pub type Members = Arc<[Member]>;

impl ClusterId {
    pub const NONE: ClusterId = ClusterId(0);

    pub fn is_known(self) -> bool {
        self != ClusterId::NONE
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl Member {
    /// A member that votes, at the address in the topology file.
    pub fn founder(id: NodeId) -> Member {
        Member { id, name: format!("n{}", id.0).into(), address: "".into(), pinned: false, votes: true }
    }
}
