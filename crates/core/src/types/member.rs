//! Which cluster this is, and who belongs to it.

use std::fmt;
use std::sync::Arc;

use super::{NodeId, Text};

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
