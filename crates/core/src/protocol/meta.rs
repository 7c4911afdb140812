//! The summary of the records that the protocol must know even of a state whose log is gone: the disks that count (P9, P10), and
//! the owners that hold the service down, and until when (P22).

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::types::{
    ClusterId, Entry, Epoch, Format, Incarnation, Index, Members, NodeId, Owner, Position, Record, Span,
    Stamp, Vector,
};

/// A batch is shared, so that it goes to every follower and to the disk without a copy.
pub type Records = Arc<[Record]>;

/// The protocol's part of a snapshot (P26). The driver carries the store's part along with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SnapshotMeta {
    /// The last record that the snapshot includes.
    pub at: Position,
    /// That record's stamp: time goes on from there (P17).
    pub stamp: Stamp,
    /// The disks that count (P10).
    pub roster: Roster,
    /// The owners that hold the service down (P22).
    pub holds: Holds,
    /// The newest format of any record (P23).
    pub format: Format,
    /// Available mode: what the state includes (P31).
    pub vector: Option<Vector>,
}

impl SnapshotMeta {
    pub fn index(&self) -> Index {
        self.at.index
    }

    /// The greatest epoch that this meta names anywhere.
    pub fn newest_epoch(&self) -> Epoch {
        let noted = self.vector.as_ref().map(Vector::newest).unwrap_or_default();
        self.at.epoch.max(noted)
    }

    /// Extends the summary by one record.
    pub fn absorb(&mut self, record: &Record) {
        self.roster.absorb(record);
        self.holds.absorb(record);
        self.at = record.position;
        self.stamp = record.stamp;
        self.format = self.format.max(record.entry.format());
        absorb(&mut self.vector, record);
    }
}

/// Extends a vector by one record, if there is a vector (in available mode).
pub fn absorb(vector: &mut Option<Vector>, record: &Record) {
    if let Some(vector) = vector {
        vector.note(record.position);
        if let Entry::Settled { upto } = &record.entry {
            vector.settle(*upto);
        }
    }
}

/// The disk of a member, and the record that names it. Index zero: the disk founded the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Seat {
    pub incarnation: Incarnation,
    pub since: Index,
}

/// The id of the cluster, its members and the disks that count, as of some record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Roster {
    seats: BTreeMap<NodeId, Seat>,
    /// `None`: the log does not name the members, the topology file does (P43).
    belonging: Option<Arc<Belonging>>,
}

/// Shared, because every summary of the log has a copy of the roster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Belonging {
    cluster: ClusterId,
    members: Members,
    /// The newest record that names the members.
    since: Index,
}

impl Roster {
    pub fn seat(&self, node: NodeId) -> Option<Seat> {
        self.seats.get(&node).copied()
    }

    pub fn seats(&self) -> impl Iterator<Item = (NodeId, Seat)> + '_ {
        self.seats.iter().map(|(node, seat)| (*node, *seat))
    }

    /// The id of the cluster, if the log names it (P44).
    pub fn cluster(&self) -> ClusterId {
        self.belonging.as_ref().map_or(ClusterId::NONE, |belonging| belonging.cluster)
    }

    /// The members of the cluster. `None`: the log does not name them, the topology file does (P43).
    pub fn members(&self) -> Option<&Members> {
        self.belonging.as_ref().map(|belonging| &belonging.members)
    }

    /// The record that names the members.
    pub fn members_since(&self) -> Index {
        self.belonging.as_ref().map_or(0, |belonging| belonging.since)
    }

    pub fn is_member(&self, node: NodeId) -> bool {
        self.members().is_some_and(|members| members.iter().any(|member| member.id == node))
    }

    pub fn with_members(mut self, cluster: ClusterId, members: Option<Members>, since: Index) -> Roster {
        self.belonging = members.map(|members| Arc::new(Belonging { cluster, members, since }));
        self
    }

    /// Whether this disk is the one that the log names for that node.
    pub fn knows(&self, node: NodeId, incarnation: Incarnation) -> bool {
        self.seat(node).is_some_and(|seat| seat.incarnation == incarnation)
    }

    /// Applies a record to the roster. Returns whether the roster changed.
    pub fn absorb(&mut self, record: &Record) -> bool {
        match &record.entry {
            Entry::Lead { founding: Some(founding) } => {
                let seat = |incarnation| Seat { incarnation, since: 0 };
                self.seats = founding.founders.iter().map(|(node, inc)| (*node, seat(*inc))).collect();
                let (cluster, since) = (founding.cluster, record.index());
                let members = founding.members.clone();
                self.belonging = members.map(|members| Arc::new(Belonging { cluster, members, since }));
                true
            }
            Entry::Members { members } => {
                // A disk that leaves has no place in the roster to come back to: its acknowledgements no longer count in this
                // cluster.
                self.seats.retain(|node, _| members.iter().any(|member| member.id == *node));
                let (cluster, since, members) = (self.cluster(), record.index(), members.clone());
                self.belonging = Some(Arc::new(Belonging { cluster, members, since }));
                true
            }
            Entry::Rejoin { node, incarnation } => {
                // The record gives the place in the roster and leaves the vote as it is. In an old log no change of members took
                // the vote away before, and the disk votes at once (P10).
                let since = record.index();
                self.seats.insert(*node, Seat { incarnation: *incarnation, since });
                true
            }
            _ => false,
        }
    }
}

impl FromIterator<(NodeId, Seat)> for Roster {
    fn from_iter<I: IntoIterator<Item = (NodeId, Seat)>>(seats: I) -> Roster {
        Roster { seats: seats.into_iter().collect(), ..Roster::default() }
    }
}

/// Each owner's hold, with the cluster time at which it lapses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Holds {
    until: BTreeMap<Owner, Span>,
}

impl Holds {
    pub fn any(&self) -> bool {
        !self.until.is_empty()
    }

    pub fn held_by(&self, owner: Owner) -> bool {
        self.until.contains_key(&owner)
    }

    /// The cluster time at which that owner's hold lapses.
    pub fn until(&self, owner: Owner) -> Option<Span> {
        self.until.get(&owner).copied()
    }

    pub fn hold(&mut self, owner: Owner, until: Span) {
        self.until.insert(owner, until);
    }

    /// An owner whose hold has lapsed. A record lifts it, so that all nodes agree on the moment.
    pub fn lapsed(&self, cluster_now: Span) -> Option<Owner> {
        let mut holds = self.until.iter();
        holds.find(|(_, until)| **until <= cluster_now).map(|(owner, _)| *owner)
    }

    /// Every hold with the cluster time at which it lapses.
    pub fn iter(&self) -> impl Iterator<Item = (Owner, Span)> + '_ {
        self.until.iter().map(|(owner, until)| (*owner, *until))
    }

    /// Applies a record to the holds. Returns whether a hold changed.
    pub fn absorb(&mut self, record: &Record) -> bool {
        match &record.entry {
            Entry::ServiceDown { owner, ttl, .. } => {
                self.until.insert(*owner, record.stamp.cluster + *ttl);
                true
            }
            Entry::ServiceUp { owner } => self.until.remove(owner).is_some(),
            _ => false,
        }
    }
}

impl FromIterator<(Owner, Span)> for Holds {
    fn from_iter<I: IntoIterator<Item = (Owner, Span)>>(holds: I) -> Holds {
        Holds { until: holds.into_iter().collect() }
    }
}
