//! A state that goes on from another history: what has changed by that, on top of the chain that is there.
//!
//! A merge of two sides changes some keys of a large state and its whole past. The files say nothing of the past, so they
//! stay, and the cost is that of the change; only the boundary at the end is of the new history.

use std::fmt;

use super::change::Change;
use super::check::Head;
use super::error::SnapshotError;
use super::snapshots::Snapshots;
use crate::Boundary;

/// The rows of a frozen state. They are asked for when they are written, and again if there was no room.
pub trait Rows: fmt::Debug + Send {
    /// Everything, or what has changed since the newest snapshot; sorted by table and key.
    fn changes(&self, whole: bool) -> Box<dyn Iterator<Item = Change<'_>> + '_>;
}

/// The state as of a boundary that no log leads to.
#[derive(Debug)]
pub struct Rebase {
    pub boundary: Boundary,
    pub rows: Box<dyn Rows>,
    /// What is on disk has nothing to do with it.
    pub whole: bool,
}

impl Snapshots {
    /// Durable when it returns. Without a chain to go on from it begins one.
    pub fn rebase(&mut self, rebase: &Rebase) -> Result<(), SnapshotError> {
        let Rebase { boundary, rows, whole } = rebase;
        let boundary = boundary.clone();
        match self.newest().map(Boundary::index) {
            Some(newest) if newest < boundary.index() && !whole => {
                self.add(newest, boundary, rows.changes(false))
            }
            // Indexes do not go down where sides meet; if they did, only a new chain would take effect.
            _ => self.add_whole(Head { from: 0, boundary }, rows.changes(true)),
        }
    }
}
