//! How far what a message says may lie ahead of what this node knows (P50).

use super::node::Node;
use crate::protocol::messages::Message;
use crate::protocol::mutant::{self, Mutant};
use crate::types::{Epoch, INDEX_MOST, NUMBER_MOST};

/// Elections that a node can have missed: at one a second, of twelve days. Who has missed more hears of them in as many more
/// messages, and two to the power of 33 of them would have to be sent before no epoch is left.
const ELECTIONS_MISSED: u64 = 1 << 20;

/// Available mode: a disk that may have forgotten its epochs draws one up to 2^44 ahead, and so may a second one after it (P36).
const BEGINNINGS_MISSED: u64 = 1 << 45;

/// From here on nobody is believed to have drawn one: the rest is for elections.
const BEGINNINGS_END: u64 = 1 << 52;

impl Node {
    /// The greatest counter promised or heard of.
    pub(in crate::protocol) fn newest_counter(&self) -> u64 {
        self.promise().counter.max(self.seen.counter)
    }

    /// Whether there is an epoch above that one.
    pub(in crate::protocol) fn has_epochs_left(&self) -> bool {
        self.newest_counter() < NUMBER_MOST
    }

    /// Whether to listen to a message. One that names an epoch which is too far ahead brings this node as far as an epoch may be
    /// ahead, and says nothing else: repeated, it is within reach, and one made-up number uses up nothing (P50).
    pub(in crate::protocol) fn is_within_reach(&mut self, message: &Message) -> bool {
        let (newest, most) = (message.newest_epoch(), self.reach());
        if newest.counter > most && !mutant::is_on(Mutant::AnyEpochReaches) {
            self.seen = self.seen.max(Epoch::new(most, newest.leader));
            return false;
        }
        message.greatest_index() <= INDEX_MOST
    }

    fn reach(&self) -> u64 {
        let known = self.newest_counter();
        let elections = known + ELECTIONS_MISSED;
        let beginnings = if self.settings.is_available() { known + BEGINNINGS_MISSED } else { known };
        elections.max(beginnings.min(BEGINNINGS_END)).min(NUMBER_MOST)
    }
}
