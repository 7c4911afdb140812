//! Leases between a leader and its followers (P11): who may still rely on this node, and how long
//! this node may rely on the others.

use std::collections::BTreeMap;

use super::mutant::{self, Mutant};
use super::settings::Timing;
use crate::types::{NodeId, Span, Time};

/// What this node has granted. Until a grant ends its leader may answer `/is_leader` with `true`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Grants {
    until: BTreeMap<NodeId, Time>,
    /// A restarted node has forgotten its grants: the greatest that it may have given.
    forgotten_until: Time,
}

impl Grants {
    /// `granted`: whether this disk has ever promised anything. One that has not has granted nothing.
    pub fn after_start(now: Time, granted: bool, timing: &Timing) -> Grants {
        let forgotten = match granted && !mutant::is_on(Mutant::RestartForgetsGrants) {
            true => timing.lease,
            false => Span::ZERO,
        };
        Grants { until: BTreeMap::new(), forgotten_until: now + forgotten }
    }

    pub fn grant(&mut self, leader: NodeId, until: Time) {
        let held = self.until.entry(leader).or_insert(until);
        *held = (*held).max(until);
    }

    /// That leader's process is dead, or has ended its lease itself: nobody relies on the grant.
    pub fn void(&mut self, leader: NodeId) {
        self.until.remove(&leader);
    }

    /// The longest that a leader other than `candidate` may still rely on this node.
    pub fn left(&self, candidate: NodeId, now: Time) -> Span {
        let others = self.until.iter().filter(|(leader, _)| **leader != candidate);
        let latest = others.map(|(_, until)| *until).max().unwrap_or_default();
        latest.max(self.forgotten_until).since(now)
    }
}

/// How long a leader may rely on a beat that it sent at `sent`: shortened by twice the drift bound,
/// so that its clock may be slow and the follower's fast.
pub fn relied_until(sent: Time, timing: &Timing) -> Time {
    sent + timing.lease.shortened(2 * timing.drift_percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_to_the_candidate_itself_does_not_bind() {
        let timing = Timing::lan();
        let mut grants = Grants::after_start(Time(0), true, &timing);
        let late = Time(10_000_000);
        grants.grant(NodeId(1), late + Span::millis(200));
        assert_eq!(grants.left(NodeId(2), late), Span::millis(200));
        assert_eq!(grants.left(NodeId(1), late), Span::ZERO);
        grants.void(NodeId(1));
        assert_eq!(grants.left(NodeId(2), late), Span::ZERO);
    }

    #[test]
    fn a_restarted_node_answers_with_the_greatest_lease() {
        let timing = Timing::lan();
        let grants = Grants::after_start(Time(5), true, &timing);
        assert_eq!(grants.left(NodeId(2), Time(5)), timing.lease);
    }
}
