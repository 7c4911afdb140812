//! Keeps the messages that one node passes on to another in order.
//!
//! A node numbers the messages that it passes on. It waits for each answer only so long, and then tells its client that the message was
//! sent. But the message may still be on its way, and arrive after a newer one. So each message carries the highest number that its node
//! has given up on. A node that has read this drops every message up to that number, even if another caller still waits for it. That one
//! is told that nobody there has got it.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use crate::types::NodeId;

/// How many processes of one node are told apart. A message that outlives so many restarts is not dropped.
const RUNS_MOST: usize = 16;

/// Travels with each message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// A random number for the process: each one counts from 1.
    pub run: u64,
    pub number: u64,
    /// The highest number that the sender has given up on, or 0.
    pub given_up: u64,
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x} {} {}", self.run, self.number, self.given_up)
    }
}

/// Counts the messages that this process passes on.
#[derive(Debug)]
pub struct Sent {
    run: u64,
    last: u64,
    given_up: BTreeMap<NodeId, u64>,
}

impl Sent {
    pub fn new(run: u64) -> Sent {
        Sent { run, last: 0, given_up: BTreeMap::new() }
    }

    /// Numbers the next message. It has the same number at every node.
    pub fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    pub fn stamp(&self, number: u64, to: NodeId) -> Stamp {
        let given_up = self.given_up.get(&to).copied().unwrap_or_default();
        // A later message may have been given up first.
        Stamp { run: self.run, number, given_up: given_up.min(number - 1) }
    }

    /// The node did not answer: it may hand the message on at any time, or never.
    pub fn give_up(&mut self, number: u64, to: NodeId) {
        let newest = self.given_up.entry(to).or_default();
        *newest = number.max(*newest);
    }
}

/// Remembers what another node has given up on. Each of its processes counts for itself, so that a stray one silences nobody.
#[derive(Debug, Default)]
pub struct Heard {
    /// By run, the oldest first.
    given_up: VecDeque<(u64, u64)>,
}

impl Heard {
    /// Returns whether to hand the message on, and remembers what it says of older ones.
    pub fn takes(&mut self, stamp: Stamp) -> bool {
        match self.given_up.iter_mut().find(|(run, _)| *run == stamp.run) {
            Some((_, given_up)) => {
                *given_up = stamp.given_up.max(*given_up);
                stamp.number > *given_up
            }
            None => {
                if self.given_up.len() == RUNS_MOST {
                    self.given_up.pop_front();
                }
                self.given_up.push_back((stamp.run, stamp.given_up));
                stamp.number > stamp.given_up
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: NodeId = NodeId(2);

    fn stamp(run: u64, number: u64, given_up: u64) -> Stamp {
        Stamp { run, number, given_up }
    }

    #[test]
    fn a_message_says_what_its_node_was_left_out_of() {
        let mut sent = Sent::new(7);
        assert_eq!([sent.number(), sent.number(), sent.number()], [1, 2, 3]);
        sent.give_up(2, PEER);
        sent.give_up(1, PEER);
        assert_eq!(sent.stamp(3, PEER), stamp(7, 3, 2));
        assert_eq!(sent.stamp(3, NodeId(3)), stamp(7, 3, 0), "another node has answered");
        assert_eq!(sent.stamp(2, PEER), stamp(7, 2, 1), "no message gives itself up");
    }

    #[test]
    fn what_comes_after_it_was_given_up_is_dropped() {
        let mut heard = Heard::default();
        assert!(heard.takes(stamp(7, 2, 0)));
        assert!(heard.takes(stamp(7, 1, 0)), "two senders may overtake each other");
        assert!(heard.takes(stamp(7, 5, 3)));
        assert!(!heard.takes(stamp(7, 3, 0)));
        assert!(heard.takes(stamp(7, 4, 0)), "its sender still waits for it");
    }

    #[test]
    fn each_process_counts_for_itself() {
        let mut heard = Heard::default();
        assert!(heard.takes(stamp(7, 9, 8)));
        assert!(heard.takes(stamp(8, 1, 0)));
        assert!(!heard.takes(stamp(7, 8, 0)));
        assert!(heard.takes(stamp(7, 10, 0)), "the other one may be a stray");
        for run in 9..9 + RUNS_MOST as u64 {
            assert!(heard.takes(stamp(run, 1, 0)));
        }
        assert_eq!(heard.given_up.len(), RUNS_MOST);
    }
}
