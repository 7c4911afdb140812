//! A state that continues from another history: the changes are added to the existing chain.
//!
//! A merge of two sides changes some keys of a large state and its whole past. The files do not contain the past, so they stay,
//! and the cost is that of the change. Only the boundary at the end is of the new history.

use std::fmt;

use super::change::Change;
use super::check::Head;
use super::error::SnapshotError;
use super::snapshots::Snapshots;
use crate::Boundary;

/// The rows of a frozen state. They are read when they are written, and again if there was no room.
pub trait Rows: fmt::Debug + Send {
    /// All rows, or the changes since the newest snapshot; sorted by table and key.
    fn changes(&self, whole: bool) -> Box<dyn Iterator<Item = Change<'_>> + '_>;
}

/// The state at a boundary that no log leads to.
#[derive(Debug)]
pub struct Rebase {
    pub boundary: Boundary,
    pub rows: Box<dyn Rows>,
    /// The new state is unrelated to the one on disk.
    pub whole: bool,
}

impl Snapshots {
    /// The state is durable when this returns. If there is no chain to continue, it begins one.
    pub fn rebase(&mut self, rebase: &Rebase) -> Result<(), SnapshotError> {
        let Rebase { boundary, rows, whole } = rebase;
        let boundary = boundary.clone();
        match self.newest().map(Boundary::index) {
            Some(newest) if newest < boundary.index() && !whole => {
                self.add(newest, boundary, rows.changes(false))
            }
            // Indexes do not decrease when sides meet. If they did, only a new chain would take effect.
            _ => self.add_whole(Head { from: 0, boundary }, rows.changes(true)),
        }
    }
}
