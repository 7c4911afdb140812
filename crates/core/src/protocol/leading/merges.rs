//! Available mode: the memory of a leader about its merges (P34).

use crate::types::{NodeId, Position, Time, Vector};

/// The merges of a leader. They go on when the leader has to begin a greater epoch, because it follows no node in between (P34).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Merges {
    /// Another leader, whose side this leader is to merge.
    pub(super) meeting: Option<Meeting>,
    /// Another leader that has asked for the state of this side.
    pub(super) handing_in: Option<HandingIn>,
    /// This node has merged. It holds the service until every node that it hears has the merged state.
    pub(super) merged: bool,
    /// The data of another side must have been asked for since this record. It is the record that opened the first epoch in which this node
    /// has led since it last followed or merged, or the record of a later settlement.
    pub(super) since: Position,
}

/// The elder waits for the state that the younger sends.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Meeting {
    pub(super) other: NodeId,
    pub(super) next_send: Time,
    /// The meeting is given up at this time, unless the other leader is heard again before.
    pub(super) until: Time,
    /// The meeting is called off at this time, even if the other leader is heard (P48).
    pub(super) comes_off_by: Time,
}

/// The elder has asked the younger for what the elder lacks.
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

    /// Whether another side is being merged, or this side sends its state to another.
    pub(super) fn are_under_way(&self) -> bool {
        self.meeting.is_some() || self.handing_in.is_some()
    }

    /// From now on the state of another side is merged only if it was asked for since this record.
    pub(super) fn accept_states_since(&mut self, record: Position) {
        self.since = record;
    }

    /// Checks what must be true after every input (I11).
    pub(super) fn validate(&self, me: NodeId) {
        let Merges { meeting, handing_in, .. } = self;
        assert!(meeting.as_ref().is_none_or(|meeting| meeting.other > me), "takes its elder in (P34)");
        assert!(handing_in.as_ref().is_none_or(|handing| handing.to < me), "hands in to its younger (P34)");
    }

    /// The time of the next message to the other side.
    pub(super) fn next_send(&self) -> Option<Time> {
        let handing_in = self.handing_in.as_ref().map(|handing| handing.next_send);
        handing_in.into_iter().chain(self.meeting.as_ref().map(|meeting| meeting.next_send)).min()
    }
}
