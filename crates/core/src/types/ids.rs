//! Who: nodes, their lives and disks, the cluster and its members; and text that is shared, never copied.

use std::fmt;
use std::sync::Arc;

/// The same bytes go to disk and to every peer.
pub type Text = Arc<str>;

/// A node's index in the topology. Lower is elder. Zero is nobody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// One life of a disk: drawn when a data directory is made, and again when it is found doubtful.
/// Zero is no disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(pub u64);

/// One life of a process: drawn at random at each start. Zero is no process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Boot(pub u64);

/// Tells apart two processes that claim the same epoch (P2). Zero is no claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClaimId(pub u64);

/// The driver's own name for a client's call, given back with the verdict.
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

/// Which cluster this is: drawn when it is formed, so that two of one name are told apart. Zero is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterId(pub u128);

/// A node of the cluster, as the log has it (P43).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Member {
    pub id: NodeId,
    /// For people.
    pub name: Text,
    /// `host:port`. A node whose topology file gives this one another address calls that.
    pub address: Text,
    /// An operator has said by a command where it is: that counts for more than any topology file.
    pub pinned: bool,
    /// One that has been added learns first, and votes once it has caught up.
    pub votes: bool,
}

/// Ascending by id; shared, never changed in place.
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
    /// One that votes, wherever the topology file says that it is.
    pub fn founder(id: NodeId) -> Member {
        Member { id, name: format!("n{}", id.0).into(), address: "".into(), pinned: false, votes: true }
    }
}
