//! Available mode: what a leader remembers of its merges (P34).

use crate::types::{NodeId, Position, Time, Vector};

/// The merges of a node that leads. They go on when it has to begin a greater epoch, as it follows no node in between (P34).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Merges {
    /// Another leader that is to be taken in.
    pub(super) meeting: Option<Meeting>,
    /// Another leader has asked for what is here.
    pub(super) handing_in: Option<HandingIn>,
    /// This node has merged, and the service is held until all that are heard have what came of it.
    pub(super) merged: bool,
    /// What is handed in must have been asked for since this record. It opened the first epoch that this node has led in since it last
    /// followed or merged, or settled anything later.
    pub(super) since: Position,
}

/// The elder waits for what the younger hands in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Meeting {
    pub(super) other: NodeId,
    pub(super) next_send: Time,
    /// Given up if nothing is heard of the other until then.
    pub(super) until: Time,
    /// Called off then, whatever is heard (P48).
    pub(super) comes_off_by: Time,
}

/// The younger has been asked for what the elder lacks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct HandingIn {
    pub(super) to: NodeId,
    pub(super) base: Vector,
    pub(super) next_send: Time,
    pub(super) until: Time,
}

impl Merges {
    pub(super) fn new(since: Position) -> Merges {
        Merges { meeting: None, handing_in: None, merged: false, since }
    }

    /// Whether another side is being taken in, or this one is handed in.
    pub(super) fn are_under_way(&self) -> bool {
        self.meeting.is_some() || self.handing_in.is_some()
    }

    /// What is handed in from now on must include this record.
    pub(super) fn hand_in_since(&mut self, record: Position) {
        self.since = record;
    }

    /// What must be true after every input (I11).
    pub(super) fn validate(&self, me: NodeId) {
        let Merges { meeting, handing_in, .. } = self;
        assert!(meeting.as_ref().is_none_or(|meeting| meeting.other > me), "takes its elder in (P34)");
        assert!(handing_in.as_ref().is_none_or(|handing| handing.to < me), "hands in to its younger (P34)");
    }

    /// When something is next to be said to the other side.
    pub(super) fn next_send(&self) -> Option<Time> {
        let handing_in = self.handing_in.as_ref().map(|handing| handing.next_send);
        handing_in.into_iter().chain(self.meeting.as_ref().map(|meeting| meeting.next_send)).min()
    }
}
