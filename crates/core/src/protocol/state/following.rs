//! What a node remembers of the leader that it follows.

use crate::protocol::messages::Objection;
use crate::types::{Epoch, Index, NodeId, Position, Span, Time};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Following {
    /// The leader of the promised epoch, or the candidate that the promise was given to.
    pub leader: NodeId,
    pub epoch: Epoch,
    pub heard: Time,
    /// Given while the candidate has not opened its epoch: how long we wait for it (P8).
    pub tentative: Option<Tentative>,
    /// The last index known to match this epoch's leader (P5).
    pub matched: Index,
    pub heir: Option<NodeId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tentative {
    pub until: Time,
    pub progress: Position,
}

impl Following {
    pub fn new(epoch: Epoch, now: Time, tentative: Option<Tentative>) -> Following {
        Following { leader: epoch.leader, epoch, heard: now, tentative, matched: 0, heir: None }
    }

    /// What whoever follows has against all others (P58).
    pub fn objection(&self) -> Objection {
        match self.tentative {
            Some(_) => Objection::Awaits { candidate: self.leader },
            None => Objection::Follows { leader: self.leader },
        }
    }

    /// When it is given up if nothing is heard of it.
    pub fn deadline(&self, woke_at: Time, patience: Span) -> Time {
        match self.tentative {
            Some(tentative) => tentative.until,
            None => self.heard.max(woke_at) + patience,
        }
    }
}
