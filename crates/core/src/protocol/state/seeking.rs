//! What a node remembers while it has no leader: the answers to its questions, its claim, the claims of others.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::protocol::log::After;
use crate::protocol::messages::{Cause, Certificate, Claim, Condition, Standing, Term};
use crate::types::{Incarnation, Index, NodeId, Position, Span, Time};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Seeking {
    pub since: Time,
    /// The leader that was given up.
    pub suspected: Option<NodeId>,
    /// The number of the last asking, and when each recent one was sent.
    pub ask: u64,
    pub asked: VecDeque<(u64, Time)>,
    pub next_ask: Time,
    /// In which round each was last asked out of turn.
    pub asked_again: BTreeMap<NodeId, u64>,
    pub known: BTreeMap<NodeId, Known>,
    pub claim: Option<Claiming>,
    /// It led until a moment ago and only needs a greater counter (P28).
    pub incumbent: bool,
    pub as_heir: bool,
    /// It has handed over and leaves the field to its heir until then (P18).
    pub quiet_until: Time,
    /// Since when a majority would have this node (P4).
    pub winnable_since: Option<Time>,
    pub after_start: bool,
    /// Since when it has been told that it was removed, and by a record up to which one (P43).
    pub removed: Option<(Time, Index)>,
    /// Available mode: a leader was heard whose log lacks some of this one (P32).
    pub stands_apart: bool,
}

/// What a node has lately said of itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Known {
    pub standing: Standing,
    /// When it last answered a question of ours: only that proves both directions (P4).
    pub answered: Option<Time>,
    pub yes: bool,
    /// It passes over this node for a while (P20).
    pub held: bool,
}

/// What a node thinks of this one as a leader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Opinion {
    pub yes: bool,
    pub held: bool,
}

impl Seeking {
    pub fn new(now: Time, cause: Cause) -> Seeking {
        Seeking {
            since: now,
            suspected: None,
            ask: 0,
            asked: VecDeque::new(),
            next_ask: now,
            asked_again: BTreeMap::new(),
            removed: None,
            known: BTreeMap::new(),
            claim: None,
            incumbent: cause == Cause::GreaterEpoch,
            as_heir: false,
            quiet_until: Time::default(),
            winnable_since: None,
            after_start: cause == Cause::Started,
            stands_apart: false,
        }
    }

    pub fn answered_lately(&self, node: NodeId, now: Time, fresh: Span) -> Option<&Known> {
        let known = self.known.get(&node)?;
        let at = known.answered?;
        (at + fresh >= now).then_some(known)
    }

    pub fn hears(&self, now: Time, fresh: Span) -> BTreeSet<NodeId> {
        let known = self.known.keys().copied();
        known.filter(|node| self.answered_lately(*node, now, fresh).is_some()).collect()
    }
}

impl Seeking {
    pub fn note(&mut self, from: NodeId, standing: Standing, answer: Option<(Time, Opinion)>) {
        let before = self.known.get(&from);
        let (answered, Opinion { yes, held }) = match answer {
            Some((at, opinion)) => (Some(at), opinion),
            None => before.map_or((None, Opinion::default()), |known| {
                let Known { yes, held, .. } = *known;
                (known.answered, Opinion { yes, held })
            }),
        };
        let known = Known { standing, answered, yes, held };
        self.known.insert(from, known);
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Claiming {
    pub term: Term,
    pub condition: Condition,
    pub certificate: Option<Certificate>,
    /// This node's own promise, which must be on disk before it counts (P2).
    pub stored_by: After,
    pub approvals: BTreeMap<NodeId, Approval>,
    pub refused: BTreeSet<NodeId>,
    pub until: Time,
    pub next_send: Time,
    /// Asked, since the claim was last repeated, to send what is missing.
    pub pulling_from: Option<NodeId>,
    /// A majority has promised.
    pub won: bool,
    /// Available mode: who is waited for, and until when (P31).
    pub expected: BTreeSet<NodeId>,
    pub gathers_until: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Approval {
    pub incarnation: Incarnation,
    pub last: Position,
    /// On this node's clock: until then an older leader may rely on the approver (P11).
    pub lease_until: Time,
}

impl Claiming {
    pub fn deadline(&self) -> Time {
        self.until.min(self.next_send)
    }
}

/// A claim that this node may come to approve: once it suspects its leader too, or once those before
/// the candidate have had their turn (C28). Forgotten unless the candidate repeats it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pending {
    pub from: NodeId,
    pub claim: Claim,
    pub at: Time,
}
