//! The epochs that a node has heard of, those that are over, and the bound on how far ahead a message may name one (P2, P16, P50).

use super::mutant::{self, Mutant};
use crate::types::{Epoch, NUMBER_MOST, NodeId};

/// Elections that a node can have missed: twelve days of one election a second. A node that has missed more learns of them from several
/// messages. It would take 2^33 such messages to use up all epochs.
const ELECTIONS_MISSED: u64 = 1 << 20;

/// Available mode: a disk that may have forgotten its epochs draws one up to 2^44 ahead, and so may a second disk after it (P36).
const BEGINNINGS_MISSED: u64 = 1 << 45;

/// From this number on no epoch counts as drawn: the rest of the numbers is for elections.
const BEGINNINGS_END: u64 = 1 << 52;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Epochs {
    newest: Epoch,
    over: Epoch,
}

impl Epochs {
    /// A process never leads, and never follows itself, in an epoch of an earlier boot (P2).
    pub fn after_start(promise: Epoch, me: NodeId) -> Epochs {
        let own = promise.leader == me && !mutant::is_on(Mutant::SameEpochTwice);
        Epochs { newest: promise, over: if own { promise } else { Epoch::ZERO } }
    }

    /// The greatest epoch promised or heard of: the next claim must be greater.
    pub fn newest(&self) -> Epoch {
        self.newest
    }

    pub fn hear_of(&mut self, epoch: Epoch) {
        self.newest = self.newest.max(epoch);
    }

    /// The leader of this epoch has ended it. So this epoch is over, and so is each epoch before it (P16, P18).
    pub fn end(&mut self, epoch: Epoch) {
        self.over = self.over.max(epoch);
    }

    pub fn is_over(&self, epoch: Epoch) -> bool {
        epoch <= self.over
    }

    /// The next counter above every epoch promised or heard of (P2).
    pub fn next_counter(&self) -> u64 {
        (self.newest.counter + 1).min(NUMBER_MOST)
    }

    /// Whether there is an epoch above every epoch that this node has heard of.
    pub fn has_more(&self) -> bool {
        self.newest.counter < NUMBER_MOST
    }

    /// Whether to handle a message that names this epoch. If the epoch is too far ahead, this node raises the newest epoch it has heard of
    /// to the bound, and ignores the rest of the message. A repeated message comes within reach, and one invented number does not use up
    /// the epochs (P50).
    pub fn reach(&mut self, named: Epoch, is_available: bool) -> bool {
        let known = self.newest.counter;
        let beginnings = if is_available { known + BEGINNINGS_MISSED } else { known };
        let most = (known + ELECTIONS_MISSED).max(beginnings.min(BEGINNINGS_END)).min(NUMBER_MOST);
        let within = named.counter <= most || mutant::is_on(Mutant::AnyEpochReaches);
        if !within {
            self.hear_of(Epoch::new(most, named.leader));
        }
        within
    }
}
