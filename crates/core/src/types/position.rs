//! Positions in a log: epoch and index, the history that indexes belong to, and the bounds of such numbers.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use super::ids::NodeId;

/// Every JSON reader is exact up to this number. A counter that starts at one never reaches it: that would take a million
/// increments a second, for 285 years.
pub const NUMBER_MOST: u64 = (1 << 53) - 1;

/// Logs never go beyond this index. An index that a client names, plus any offset, stays far below `NUMBER_MOST`.
pub const INDEX_MOST: u64 = 1 << 52;

/// Parses a number that people and messages write. Returns `None` above `NUMBER_MOST`.
pub fn number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number| *number <= NUMBER_MOST)
}

/// A leader's term. Only node k may claim an epoch that ends in k, so an epoch has one leader by construction (P1). Counter
/// zero is before every epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Epoch {
    pub counter: u64,
    pub leader: NodeId,
}

impl Epoch {
    pub const ZERO: Epoch = Epoch { counter: 0, leader: NodeId::NONE };

    pub fn new(counter: u64, leader: NodeId) -> Epoch {
        Epoch { counter, leader }
    }

    pub fn is_zero(self) -> bool {
        self.counter == 0
    }
}

/// Epochs compare by counter. Within one counter the elder node's epoch is the greater, so that it wins a tie (P1).
impl Ord for Epoch {
    fn cmp(&self, other: &Epoch) -> Ordering {
        self.counter.cmp(&other.counter).then(other.leader.cmp(&self.leader))
    }
}

impl PartialOrd for Epoch {
    fn partial_cmp(&self, other: &Epoch) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.counter, self.leader.0)
    }
}

/// The error for text that is not an epoch or a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misspelt;

/// `7.1`
impl FromStr for Epoch {
    type Err = Misspelt;

    fn from_str(text: &str) -> Result<Epoch, Misspelt> {
        let (counter, leader) = text.split_once('.').ok_or(Misspelt)?;
        let counter = number(counter).ok_or(Misspelt)?;
        Ok(Epoch::new(counter, NodeId(leader.parse().map_err(|_| Misspelt)?)))
    }
}

/// A record's place in the log. The first record has index 1; zero is before it.
pub type Index = u64;

/// Epoch and index of a record. Two logs that have a record at the same position agree on everything up to it (P5).
/// Positions order by epoch, then by index: the greater of two log ends is the newer one (P6). The order is derived, so
/// the fields must stay in this order.
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

/// The history that indexes belong to. A cluster that restores the data of another cluster starts a new history: a revision
/// or a place in the feed that a client remembers from the other cluster is not valid in it (P60). Zero is the first history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct History(u32);

impl History {
    pub const FIRST: History = History(0);

    /// The history that begins with this restore. Restores are numbered at random.
    pub fn begun_by(restore: u64) -> History {
        // The mark stands in every revision and place that a client gets, so it is short. Zero is taken by the first
        // history.
        let folded = (restore ^ (restore >> 32)) as u32;
        History(folded.max(1))
    }

    pub fn is_first(self) -> bool {
        self == History::FIRST
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

/// Does not accept the text of the first history, which is never written.
impl FromStr for History {
    type Err = ();

    fn from_str(text: &str) -> Result<History, ()> {
        // `from_str_radix` alone would take `+f3a9c01` and upper case: two texts for one place.
        let digits = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let number = u32::from_str_radix(text, 16).map_err(drop)?;
        if text.len() == 8 && digits && number > 0 { Ok(History(number)) } else { Err(()) }
    }
}

#[cfg(test)]
mod number_tests {
    use super::*;

    #[test]
    fn numbers_end_where_readers_of_json_lose_count() {
        assert_eq!(number("9007199254740991"), Some(NUMBER_MOST));
        for wrong in ["9007199254740992", "18446744073709551615", "18446744073709551616", "-1", "", "1.0"] {
            assert_eq!(number(wrong), None, "{wrong}");
        }
    }
}

#[cfg(test)]
mod epoch_tests {
    use super::*;

    #[test]
    fn the_elder_wins_a_tie() {
        let elder = Epoch::new(7, NodeId(1));
        let younger = Epoch::new(7, NodeId(2));
        assert!(elder > younger);
        assert!(Epoch::new(8, NodeId(3)) > elder);
        assert!(Epoch::ZERO < younger);
    }
}

#[cfg(test)]
mod position_tests {
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

#[cfg(test)]
mod history_tests {
    use super::*;

    #[test]
    fn a_history_is_read_back() {
        for restore in [0, 1, 7, u64::MAX, 1 << 40] {
            let history = History::begun_by(restore);
            assert!(!history.is_first());
            assert_eq!(history.to_string().parse(), Ok(history));
        }
        for wrong in ["", "0", "00000000", "5f3a9c0", "5F3A9C01", "+f3a9c01", "5f3a9c011"] {
            assert_eq!(wrong.parse::<History>(), Err(()), "{wrong}");
        }
    }
}
