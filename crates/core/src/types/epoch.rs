//! The epoch of a leader, and the order that makes the elder win.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use super::{NodeId, number};

/// A term of office. Only node k may claim an epoch that ends in k, so an epoch has one leader by
/// construction (P1). Counter zero is before every epoch.
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

/// By counter; within one counter the elder's epoch is the greater, so that it wins a tie (P1).
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

/// What is not written like an epoch or a position.
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

#[cfg(test)]
mod tests {
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
