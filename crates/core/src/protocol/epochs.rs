//! Which epochs a node has heard of, and which of them are over; how far ahead of that others may speak (P2, P16, P50).

use super::mutant::{self, Mutant};
use crate::types::{Epoch, NUMBER_MOST, NodeId};

/// Elections that a node can have missed: at one a second, of twelve days. Who has missed more hears of them in as many more
/// messages, and two to the power of 33 of them would have to be sent before no epoch is left.
const ELECTIONS_MISSED: u64 = 1 << 20;

/// Available mode: a disk that may have forgotten its epochs draws one up to 2^44 ahead, and so may a second one after it (P36).
const BEGINNINGS_MISSED: u64 = 1 << 45;

/// From here on nobody is believed to have drawn one: the rest is for elections.
const BEGINNINGS_END: u64 = 1 << 52;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Epochs {
    newest: Epoch,
    over: Epoch,
}

impl Epochs {
    /// A process never leads, and never follows itself, in an epoch of a life before (P2).
    pub fn after_start(promise: Epoch, me: NodeId) -> Epochs {
        let own = promise.leader == me && !mutant::is_on(Mutant::SameEpochTwice);
        Epochs { newest: promise, over: if own { promise } else { Epoch::ZERO } }
    }

    /// The greatest epoch promised or heard of: the next claim must beat it.
    pub fn newest(&self) -> Epoch {
        self.newest
    }

    pub fn hear_of(&mut self, epoch: Epoch) {
        self.newest = self.newest.max(epoch);
    }

    /// By its own leader's word it is over, and so is each before it (P16, P18).
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

    /// Whether there is an epoch above every one heard of.
    pub fn has_more(&self) -> bool {
        self.newest.counter < NUMBER_MOST
    }

    /// Whether to listen to a message that names this epoch. One that is too far ahead brings this node as far as an epoch may be ahead, and
    /// says nothing else: repeated, it is within reach, and one made-up number uses up nothing (P50).
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
