//! Whose disks count: for each node the incarnation that the log last let in (P9, P10).

use std::collections::BTreeMap;

use crate::types::{Entry, Incarnation, Index, NodeId, Record};

/// A disk that the log has let in, and by which record. Index zero: it founded the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Seat {
    pub incarnation: Incarnation,
    pub since: Index,
}

/// The seats as of some record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Roster {
    seats: BTreeMap<NodeId, Seat>,
}

impl Roster {
    pub fn seat(&self, node: NodeId) -> Option<Seat> {
        self.seats.get(&node).copied()
    }

    pub fn seats(&self) -> impl Iterator<Item = (NodeId, Seat)> + '_ {
        self.seats.iter().map(|(node, seat)| (*node, *seat))
    }

    /// Whether this disk is the one that the log knows.
    pub fn knows(&self, node: NodeId, incarnation: Incarnation) -> bool {
        self.seat(node).is_some_and(|seat| seat.incarnation == incarnation)
    }

    /// Whether this disk may be counted once `commit` is committed. A rejoining disk does not count
    /// for its own `rejoin` record: that one must be committed without it (P10).
    pub fn counts(&self, node: NodeId, incarnation: Incarnation, commit: Index) -> bool {
        self.seat(node).is_some_and(|seat| seat.incarnation == incarnation && seat.since <= commit)
    }

    /// Takes in a record; says whether it changed a seat.
    pub fn absorb(&mut self, record: &Record) -> bool {
        match &record.entry {
            Entry::Lead { founders: Some(founders) } => {
                let seat = |incarnation| Seat { incarnation, since: 0 };
                self.seats = founders.iter().map(|(node, inc)| (*node, seat(*inc))).collect();
                true
            }
            Entry::Rejoin { node, incarnation } => {
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
        Roster { seats: seats.into_iter().collect() }
    }
}
