//! The rank of a candidate is how many others come before it (P4, P21).

use crate::protocol::messages::{Condition, Standing};
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::state::{Node, Seeking};
use crate::types::{Index, NodeId};

/// Ready nodes first, each group by index. The unready and the held come last but are not shut out.
type Turn = (bool, NodeId);

impl Node {
    /// How many nodes come before `candidate`, as far as this one knows.
    pub(in crate::protocol) fn rank_of(
        &self,
        candidate: NodeId,
        seeking: &Seeking,
        condition: Condition,
    ) -> u64 {
        let newest = self.newest_index(seeking);
        let turn = self.turn_of(candidate, condition, self.last_of(candidate, seeking), newest);
        let before = self.voters().filter(|node| {
            *node != candidate
                && self.may_come_first(*node, seeking)
                && self.known_turn(*node, seeking, newest) < turn
        });
        before.count() as u64
    }

    fn known_turn(&self, node: NodeId, seeking: &Seeking, newest: Index) -> Turn {
        let condition = match seeking.known.get(&node) {
            _ if node == self.me() => self.condition(),
            Some(known) => known.standing.condition,
            None => Condition::Fit,
        };
        self.turn_of(node, condition, self.last_of(node, seeking), newest)
    }

    fn turn_of(&self, node: NodeId, condition: Condition, last: Option<Index>, newest: Index) -> Turn {
        let lag = newest.saturating_sub(last.unwrap_or(newest));
        let unready = lag > self.settings.limits.ready_lag && !mutant::is_on(Mutant::UnreadyFirst);
        let held = condition == Condition::Held || self.peers.is_on_hold(node, self.mono());
        (unready || held, node)
    }

    fn last_of(&self, node: NodeId, seeking: &Seeking) -> Option<Index> {
        match node == self.me() {
            true => Some(self.log.last().index),
            false => seeking.known.get(&node).map(|known| known.standing.last.index),
        }
    }

    fn newest_index(&self, seeking: &Seeking) -> Index {
        let known = seeking.known.values().map(|known| known.standing.last.index);
        known.max().unwrap_or(0).max(self.log.last().index)
    }

    /// Whether that node may still claim before others do: it lives as far as we know, may vote, and
    /// is not known to sit on the wrong side of a cut.
    fn may_come_first(&self, node: NodeId, seeking: &Seeking) -> bool {
        if node == self.me() {
            return self.may_lead() && !self.full;
        }
        if self.peers.is_refused(node) {
            return false;
        }
        let (now, fresh) = (self.mono(), self.fresh());
        match seeking.answered_lately(node, now, fresh) {
            Some(known) => self.may_win(&known.standing),
            // Not heard yet: given the benefit of the doubt for as long as an answer may take.
            None => seeking.suspected != Some(node) && now < seeking.since + fresh,
        }
    }

    fn may_win(&self, standing: &Standing) -> bool {
        if self.settings.is_available() {
            return self.is_of_one_history(standing.vector.as_ref());
        }
        let settled = standing.seeking > self.fresh();
        // It has just answered this node: so it hears this one at least.
        let others = standing.hears.iter().filter(|node| **node != self.me()).count();
        let alone = others + 2 < self.quorum();
        standing.condition != Condition::Recovering && !(settled && alone)
    }
}
