//! What people and the feed learn of what the protocol does, and why. Nothing is decided by these.

use super::reasons::{Cause, Fault, Impasse, Objection};
use crate::types::{Epoch, Incarnation, Index, NodeId};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    Suspected {
        leader: NodeId,
        cause: Cause,
    },
    Claimed {
        epoch: Epoch,
    },
    /// This node leads, and its epoch is open.
    Opened {
        epoch: Epoch,
    },
    Following {
        epoch: Epoch,
    },
    SteppedDown {
        epoch: Epoch,
        cause: Cause,
    },
    Admitted {
        incarnation: Incarnation,
    },
    /// Another disk has this node's seat: this one neither votes nor leads (P10).
    Replaced {
        by: Incarnation,
    },
    /// This node, the elder of two leaders, asks the other for what it has written (P34).
    Met {
        other: NodeId,
    },
    /// Two sides are one: what the other had is merged, as of this index.
    Merged {
        with: NodeId,
        index: Index,
    },
    /// They do not become one, and both go on as before for a while (P48).
    Impasse {
        other: NodeId,
        why: Impasse,
    },
    /// The state was brought up to that of a side that includes it, as of this index.
    Overridden {
        index: Index,
    },
    /// A message without proof says what would end this node (P51).
    Accused {
        fault: Fault,
    },
    /// A node's log ends below what its disk has acknowledged (P27).
    Forgot {
        node: NodeId,
        kept: Index,
        end: Index,
    },
    /// States differ, and which one is odd cannot be told (P25).
    Diverged {
        index: Index,
    },
    /// This node would not approve that one now, and has told it so (P4).
    Declined {
        candidate: NodeId,
        why: Objection,
    },
    /// This node promises itself to the claim of an epoch (P8).
    Approved {
        epoch: Epoch,
    },
    /// It may yet: the claim is kept until its turn comes.
    Deferred {
        epoch: Epoch,
        why: Objection,
    },
    Refused {
        epoch: Epoch,
        why: Objection,
    },
    /// That node has promised itself to this node's claim.
    Backed {
        epoch: Epoch,
        by: NodeId,
    },
    TurnedDown {
        epoch: Epoch,
        by: NodeId,
    },
}
