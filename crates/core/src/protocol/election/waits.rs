//! Why nobody leads: whom a node waits for that looks for a leader, for people to see.

use crate::protocol::messages::Condition;
use crate::protocol::state::{Node, Role};
use crate::types::{NodeId, Time};

/// Without these no election can be won.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waits {
    /// The cluster has never been formed, and takes every node for that (P9).
    pub to_form: bool,
    /// Of them nothing is heard.
    pub silent: Vec<NodeId>,
    /// They are heard, and what they answer comes too late to count (P4).
    pub late: Vec<NodeId>,
    /// Their disks may have forgotten something, this node's perhaps, and without them no majority is left that could let them
    /// in again (P10, P27).
    pub doubted: Vec<NodeId>,
}

impl Node {
    /// None where a leader is known, an election is under way, or no majority is needed.
    pub fn waits_for(&self, now: Time) -> Option<Waits> {
        let Role::Seeking(seeking) = &self.role else {
            return None;
        };
        let doubted = self.doubted_majority(now);
        if self.settings.is_available() || (self.reaches_enough(now) && doubted.is_empty()) {
            return None;
        }
        let (fresh, patience) = (self.fresh(), self.settings.timing.dead_after);
        let excused = self.forming_without.clone().unwrap_or_default();
        let needed = self.other_voters().filter(|node| !excused.contains(node));
        let missing = needed.filter(|node| seeking.answered_lately(*node, now, fresh).is_none());
        let heard = |node: &NodeId| self.last_heard(*node).is_some_and(|at| at + patience >= now);
        let (late, silent) = missing.partition(heard);
        Some(Waits { to_form: self.is_blank(), silent, late, doubted })
    }

    /// The voters that wait to be let in, where all others together are no majority. Empty where they are one.
    fn doubted_majority(&self, now: Time) -> Vec<NodeId> {
        let Role::Seeking(seeking) = &self.role else {
            return Vec::new();
        };
        let fresh = self.fresh();
        let waits = |node: &NodeId| match *node == self.me() {
            true => !self.may_vote(),
            false => seeking
                .answered_lately(*node, now, fresh)
                .is_some_and(|known| known.standing.condition == Condition::Recovering),
        };
        let doubted: Vec<NodeId> = self.voters().filter(waits).collect();
        let rest = self.voters().count() - doubted.len();
        if rest < self.quorum() { doubted } else { Vec::new() }
    }

    fn reaches_enough(&self, now: Time) -> bool {
        let Role::Seeking(seeking) = &self.role else {
            return true;
        };
        if self.is_blank() {
            return self.founders_agree(&seeking.hears(now, self.fresh()));
        }
        self.reaches_majority(now)
    }
}
