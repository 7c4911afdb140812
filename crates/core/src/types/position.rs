//! Where a record stands in the log, and in which history.

use std::fmt;
use std::str::FromStr;

use super::{Epoch, Misspelt, number};

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

/// `7.1@12`
impl FromStr for Position {
    type Err = Misspelt;

    fn from_str(text: &str) -> Result<Position, Misspelt> {
        let (epoch, index) = text.split_once('@').ok_or(Misspelt)?;
        Ok(Position::new(epoch.parse()?, number(index).ok_or(Misspelt)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::NodeId;

    #[test]
    fn positions_are_read_back() {
        let at = Position::new(Epoch::new(7, NodeId(1)), 120);
        assert_eq!(at.to_string(), "7.1@120");
        assert_eq!("7.1@120".parse(), Ok(at));
        for wrong in
            ["", "7.1", "7@1", "7.1@", "7.n1@2", "7.1@-2", "9007199254740992.1@1", "7.1@9007199254740992"]
        {
            assert_eq!(wrong.parse::<Position>(), Err(Misspelt));
        }
    }
}
