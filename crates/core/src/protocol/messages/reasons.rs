//! Why something happens, or does not.

use crate::types::{Epoch, Index, NodeId};

/// Why a node does not approve a candidate, or not yet (P58).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Objection {
    /// Its disk does not count, or another one has its seat (P10).
    MayNotVote,
    /// It has nothing, and knows better than to found a cluster with that one now (P9).
    MayNotFound,
    /// What the candidate has is no part of its history (P34).
    OtherHistory,
    Leads,
    /// It hears that leader.
    Follows {
        leader: NodeId,
    },
    /// It has promised itself to that candidate, whose epoch is not open.
    Awaits {
        candidate: NodeId,
    },
    /// It claims itself, and comes first.
    ClaimsItself,
    /// It has just failed or handed over, and keeps quiet for a moment.
    Quiet,
    /// So many others come before the candidate, and have a moment each.
    NotItsTurn {
        before: u64,
    },
    /// It has promised itself to that epoch, or to a greater one (P2).
    Promised {
        epoch: Epoch,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    Started,
    Silence,
    Refused,
    NewProcess,
    Resigned,
    NoMajority,
    Stuck,
    HandedOver,
    GreaterEpoch,
    NoDecision,
    /// It goes on in a new epoch that begins with two sides merged (P34).
    Merged,
    Odd,
    /// Another disk has its seat (P10).
    Replaced,
}

/// Why two sides do not become one (P48).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Impasse {
    /// The other side was heard, and handed in nothing that could be taken.
    NothingComes,
    /// What this side has to hand in is more than a node takes.
    TooLarge { bytes: u64, most: u64 },
    /// The journal of conflicts would have more entries than it may, or more text.
    JournalFull { entries: usize, bytes: usize },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// A record that this binary cannot read (P23).
    UnknownFormat { index: Index },
    /// This state differs from the majority's: start again with a new incarnation (P25).
    Odd,
    /// This disk ends below what it has acknowledged to its leader: start again with a new incarnation (P27).
    Forgot,
    /// This node has been removed from the cluster, by a record up to this one (P43).
    Removed { as_of: Index },
    /// A leader asked to truncate what is committed: no history of this protocol does (I2).
    CommittedConflict { index: Index },
}
