//! Where a record stands in the log, and in which history.

use std::fmt;

use super::Epoch;

/// A record's place in the log. The first record has index 1; zero is before it.
pub type Index = u64;

/// Epoch and index of a record: two logs that hold the same position agree on everything up to it (P5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    pub epoch: Epoch,
    pub index: Index,
}

impl Position {
    pub const ZERO: Position = Position { epoch: Epoch::ZERO, index: 0 };

    pub fn new(epoch: Epoch, index: Index) -> Position {
        Position { epoch, index }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.epoch, self.index)
    }
}
