//! What the protocol itself must know of a state whose log is gone.

use super::roster::Roster;
use super::service::Holds;
use crate::types::{Format, Index, Position, Record, Stamp};

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
    }
}
