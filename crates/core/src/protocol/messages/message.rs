//! What nodes say to each other. Every message is one-way; the transport may drop, repeat, reorder
//! and delay it. An answer is a message like any other.

use std::collections::BTreeSet;

use crate::protocol::log::{Records, SnapshotMeta};
use crate::types::{
    Boot, ClaimId, ClusterId, Digest, Epoch, Format, Incarnation, Index, NodeId, Position, Span, Vector,
};

/// A message with what every message carries about its sender.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Envelope {
    pub from: NodeId,
    pub to: NodeId,
    pub boot: Boot,
    pub incarnation: Incarnation,
    /// The sender's log has counted its disk: it is not let in a second time (P10).
    pub admitted: bool,
    /// Which cluster the sender's log is of, if it says so (P44).
    pub cluster: ClusterId,
    pub format: Format,
    pub message: Message,
}

/// An epoch together with the claim that it was approved for (P2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term {
    pub epoch: Epoch,
    pub claim: ClaimId,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// Leader to all: I lead; grant me a lease (P11); this is committed; this is who comes next.
    Heartbeat {
        term: Term,
        round: u64,
        lease: Span,
        commit: Index,
        heir: Option<NodeId>,
        /// The boundary whose digest it would like to see (P25).
        boundary: Index,
        /// Available mode: what the leader's log includes, for one who does not follow yet (P32).
        vector: Option<Vector>,
    },
    HeartbeatReply {
        epoch: Epoch,
        round: u64,
        /// The last position known to match this epoch's leader (P5).
        matched: Index,
        last: Position,
        full: bool,
        digest: Option<Checkpoint>,
        /// Available mode: what this log includes, for a leader who does not know yet where it stands (P33).
        vector: Option<Vector>,
    },
    /// Leader to one: these records follow `prev` (P5).
    Append {
        term: Term,
        prev: Position,
        records: Records,
        commit: Index,
    },
    Appended {
        epoch: Epoch,
        matched: Index,
    },
    /// I do not have `prev`; `hint` is my greatest position that could be yours.
    Gap {
        epoch: Epoch,
        prev: Position,
        hint: Position,
    },
    /// Leader to one that lags too far: a whole state (P26).
    Snapshot {
        term: Term,
        meta: SnapshotMeta,
    },
    /// You speak for an epoch below my promise (P2).
    Stale {
        promise: Term,
    },
    /// The answer to `Willing`: you do not belong to the cluster, by a committed record up to this one, and my log goes as far as
    /// this (P43).
    NotMember {
        /// The number of the question, which nobody knows but whoever was asked (P51).
        ask: u64,
        as_of: Index,
        last: Position,
    },
    /// I do not lead in this epoch, now or ever again (P16).
    Resigned {
        epoch: Epoch,
    },
    /// A leaderless node to all: would you have me? The dry run (P4).
    Willing {
        ask: u64,
        standing: Standing,
    },
    Opinion {
        ask: u64,
        yes: bool,
        /// The asker keeps dying and is passed over for a while (P20).
        held: bool,
        standing: Standing,
    },
    /// A candidate to all: promise me this epoch (P8).
    Claim(Claim),
    Approve {
        term: Term,
        last: Position,
        /// The longest that an older leader may still rely on me (P11).
        lease_left: Span,
    },
    Refuse {
        term: Term,
        promise: Epoch,
    },
    /// A candidate to one that approved it: send what follows this (P6).
    Pull {
        term: Term,
        after: Position,
    },
    Pulled {
        term: Term,
        prev: Position,
        records: Records,
    },
    /// The leader to its heir: my epoch has ended, at this position (P18).
    HandOver(Certificate),
    /// Available mode, a leader to every node outside its side: do you lead, or whom do you follow (P32)?
    Poll {
        term: Term,
        vector: Vector,
    },
    /// I am on another side: led by this one, or by nobody.
    Side {
        epoch: Epoch,
        leader: Option<NodeId>,
        vector: Vector,
    },
    /// The elder of two leaders to the younger: stop the service, and hand in what this does not include (P34).
    Meet {
        term: Term,
        vector: Vector,
    },
    /// The younger to the elder: everything of mine that `base` does not include (P34).
    Merge {
        epoch: Epoch,
        base: Vector,
        meta: SnapshotMeta,
    },
    /// The leader to one whose log it includes: everything that `base` does not include (P33).
    Override {
        term: Term,
        base: Vector,
        meta: SnapshotMeta,
    },
    /// The leader to a node whose state differs from the majority's (P25), or whose disk has forgotten something (P27).
    Odd {
        epoch: Epoch,
        incarnation: Incarnation,
        forgot: bool,
        /// The number of that node's own question, where it has asked (P51).
        ask: Option<u64>,
    },
}

/// What a node says of itself while leaders are made.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Standing {
    pub promise: Epoch,
    /// The greatest epoch that it has heard of: the next claim must beat it.
    pub seen: Epoch,
    pub last: Position,
    /// Who answered it lately (P4).
    pub hears: BTreeSet<NodeId>,
    /// How long it has been leaderless; zero if it follows or leads.
    pub seeking: Span,
    pub condition: Condition,
    /// Available mode: what its log includes (P31).
    pub vector: Option<Vector>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Condition {
    /// Never part of a cluster (P9).
    Blank,
    /// The same, and an operator has ordered that it forms one.
    Ordered,
    /// Its disk forgot something: neither votes nor counts (P10).
    Recovering,
    /// Fit, but passed over for a while (P20), or without room on its disk (P24).
    Held,
    Fit,
}

impl Condition {
    pub fn is_blank(self) -> bool {
        matches!(self, Condition::Blank | Condition::Ordered)
    }
}

/// A request for a promise (P8).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Claim {
    pub term: Term,
    /// Grows while the candidate pulls: a claim that makes progress is given more time.
    pub last: Position,
    pub condition: Condition,
    pub certificate: Option<Certificate>,
    /// Available mode: what the candidate's log includes (P31).
    pub vector: Option<Vector>,
}

/// The end of an epoch by its own leader's word (P18).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Certificate {
    pub epoch: Epoch,
    pub heir: NodeId,
    pub last: Position,
}

impl Certificate {
    fn newest_epoch(self) -> Epoch {
        self.epoch.max(self.last.epoch)
    }
}

/// The digest of the applied state at a boundary (P25).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Checkpoint {
    pub index: Index,
    pub digest: Digest,
}

impl Message {
    /// What sides say to each other: nobody has anything of the kind to say in safe mode.
    pub fn is_of_sides(&self) -> bool {
        matches!(
            self,
            Message::Poll { .. }
                | Message::Side { .. }
                | Message::Meet { .. }
                | Message::Merge { .. }
                | Message::Override { .. }
        )
    }

    /// The greatest epoch that is named anywhere in it.
    pub fn newest_epoch(&self) -> Epoch {
        let of_vector = |vector: &Option<Vector>| vector.as_ref().map(Vector::newest).unwrap_or_default();
        match self {
            Message::Heartbeat { term, vector, .. } => term.epoch.max(of_vector(vector)),
            Message::HeartbeatReply { epoch, last, vector, .. } => {
                (*epoch).max(last.epoch).max(of_vector(vector))
            }
            Message::Append { term, prev, .. } | Message::Pulled { term, prev, .. } => {
                term.epoch.max(prev.epoch)
            }
            Message::Appended { epoch, .. } | Message::Resigned { epoch } | Message::Odd { epoch, .. } => {
                *epoch
            }
            Message::Gap { epoch, prev, hint } => (*epoch).max(prev.epoch).max(hint.epoch),
            Message::Snapshot { term, meta } => term.epoch.max(meta.newest_epoch()),
            Message::Stale { promise } => promise.epoch,
            Message::NotMember { last, .. } => last.epoch,
            Message::Willing { standing, .. } | Message::Opinion { standing, .. } => {
                let Standing { promise, seen, last, vector, .. } = standing;
                (*promise).max(*seen).max(last.epoch).max(of_vector(vector))
            }
            Message::Claim(claim) => {
                let certified = claim.certificate.map(Certificate::newest_epoch).unwrap_or_default();
                claim.term.epoch.max(claim.last.epoch).max(certified).max(of_vector(&claim.vector))
            }
            Message::Approve { term, last, .. } => term.epoch.max(last.epoch),
            Message::Refuse { term, promise } => term.epoch.max(*promise),
            Message::Pull { term, after } => term.epoch.max(after.epoch),
            Message::HandOver(certificate) => certificate.newest_epoch(),
            Message::Poll { term, vector } | Message::Meet { term, vector } => {
                term.epoch.max(vector.newest())
            }
            Message::Side { epoch, vector, .. } => (*epoch).max(vector.newest()),
            Message::Merge { epoch, base, meta } => (*epoch).max(base.newest()).max(meta.newest_epoch()),
            Message::Override { term, base, meta } => term.epoch.max(base.newest()).max(meta.newest_epoch()),
        }
    }

    /// The greatest index of a record that a log here may come to hold because of it.
    pub fn greatest_index(&self) -> Index {
        let of_meta = |meta: &SnapshotMeta| {
            let noted = meta.vector.as_ref().map_or(0, Vector::highest);
            meta.index().max(noted)
        };
        match self {
            Message::Append { prev, records, .. } | Message::Pulled { prev, records, .. } => {
                records.last().map_or(prev.index, |record| prev.index.max(record.index()))
            }
            Message::Snapshot { meta, .. } | Message::Merge { meta, .. } | Message::Override { meta, .. } => {
                of_meta(meta)
            }
            _ => 0,
        }
    }

    /// The epoch that the sender speaks for, where the message binds one.
    pub fn epoch(&self) -> Option<Epoch> {
        match self {
            Message::Heartbeat { term, .. }
            | Message::Append { term, .. }
            | Message::Snapshot { term, .. }
            | Message::Override { term, .. }
            | Message::Approve { term, .. }
            | Message::Pull { term, .. }
            | Message::Pulled { term, .. } => Some(term.epoch),
            Message::HeartbeatReply { epoch, .. } | Message::Appended { epoch, .. } => Some(*epoch),
            Message::Claim(claim) => Some(claim.term.epoch),
            _ => None,
        }
    }
}
