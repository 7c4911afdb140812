//! What the protocol itself must know of a state whose log is gone.

use super::roster::Roster;
use super::service::Holds;
use crate::types::{Entry, Format, Index, Position, Record, Stamp, Vector};

/// The protocol's part of a snapshot (P26). The store's part travels with it, in the driver's hands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SnapshotMeta {
    /// The last record that the snapshot includes.
    pub at: Position,
    /// That record's stamp: time goes on from there (P17).
    pub stamp: Stamp,
    /// Whose disks count (P10).
    pub roster: Roster,
    /// Who holds the service down (P22).
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

    /// Goes on by one record.
    pub fn absorb(&mut self, record: &Record) {
        self.roster.absorb(record);
        self.holds.absorb(record);
        self.at = record.position;
        self.stamp = record.stamp;
        self.format = self.format.max(record.entry.format());
        absorb(&mut self.vector, record);
    }
}

/// A history goes on by one record, where histories are told apart at all.
pub(super) fn absorb(vector: &mut Option<Vector>, record: &Record) {
    if let Some(vector) = vector {
        vector.note(record.position);
        if let Entry::Settled { upto } = &record.entry {
            vector.settle(*upto);
        }
    }
}
