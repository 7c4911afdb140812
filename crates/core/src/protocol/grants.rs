//! Leases between a leader and its followers (P11): which leaders may still rely on this node, and how long
//! this node may rely on the others.

use std::collections::BTreeMap;

use super::mutant::{self, Mutant};
use super::settings::Timing;
use crate::types::{Epoch, Incarnation, NodeId, Span, Time};

/// The leases that this node has granted. Until a grant ends, its leader may answer `/is_leader` with `true`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GivenLeases {
    /// The grants by the epoch of the leader; one process leads in an epoch.
    given: BTreeMap<Epoch, Grant>,
    /// The grants of the process before, which this process does not know, end by this time.
    unknown_until: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Grant {
    to: Incarnation,
    until: Time,
}

impl GivenLeases {
    /// `granted`: this disk has promised something before, so it may have granted `lease`. A disk that has promised nothing has
    /// granted nothing.
    pub fn after_start(now: Time, granted: bool, lease: Span) -> GivenLeases {
        let forgotten = match granted && !mutant::is_on(Mutant::RestartForgetsGrants) {
            true => lease,
            false => Span::ZERO,
        };
        GivenLeases { given: BTreeMap::new(), unknown_until: now + forgotten }
    }

    pub fn grant(&mut self, epoch: Epoch, to: Incarnation, now: Time, lease: Span) {
        self.given.retain(|_, grant| grant.until > now);
        let grant = self.given.entry(epoch).or_insert(Grant { to, until: now });
        grant.until = grant.until.max(now + lease);
    }

    /// That node has ended its lease itself, on this disk: no leader relies on these grants any more. Another disk of
    /// the same node may still be in use.
    pub fn void(&mut self, leader: NodeId, on: Incarnation) {
        let any = mutant::is_on(Mutant::GrantsEndWithNewDisk);
        self.given.retain(|epoch, grant| epoch.leader != leader || (grant.to != on && !any));
    }

    /// The leader of that epoch has ended the epoch and its leases.
    pub fn void_epoch(&mut self, epoch: Epoch) {
        if let Some(grant) = self.given.get(&epoch).copied() {
            self.void(epoch.leader, grant.to);
        }
    }

    /// The longest time for which any leader may still rely on this node.
    pub fn longest(&self, now: Time) -> Span {
        let latest = self.given.values().map(|grant| grant.until).max().unwrap_or_default();
        latest.max(self.unknown_until).since(now)
    }

    /// The longest time for which a leader may still rely on this node, unless that leader is the candidate on that same disk.
    pub fn left(&self, candidate: NodeId, on: Incarnation, now: Time) -> Span {
        let any = mutant::is_on(Mutant::GrantsEndWithNewDisk);
        let its_own = |epoch: &Epoch, grant: &Grant| epoch.leader == candidate && (grant.to == on || any);
        let others = self.given.iter().filter(|(epoch, grant)| !its_own(epoch, grant));
        let latest = others.map(|(_, grant)| grant.until).max().unwrap_or_default();
        latest.max(self.unknown_until).since(now)
    }
}

/// The time until which a leader may rely on a beat that it sent at `sent`. The lease is shortened by twice the drift
/// bound, because the leader's clock may be slow and the follower's fast.
pub fn relied_until(sent: Time, timing: &Timing) -> Time {
    sent + timing.lease.shortened(2 * timing.drift_percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: Incarnation = Incarnation(7);
    const OTHER: Incarnation = Incarnation(8);
    const LEASE: Span = Span::millis(300);

    #[test]
    fn a_grant_to_the_candidate_itself_does_not_bind() {
        let mut grants = GivenLeases::after_start(Time(0), true, LEASE);
        let late = Time(10_000_000);
        grants.grant(Epoch::new(4, NodeId(1)), DISK, late, Span::millis(200));
        assert_eq!(grants.left(NodeId(2), OTHER, late), Span::millis(200));
        assert_eq!(grants.left(NodeId(1), DISK, late), Span::ZERO);
        grants.void(NodeId(1), DISK);
        assert_eq!(grants.left(NodeId(2), OTHER, late), Span::ZERO);
    }

    #[test]
    fn another_disk_of_the_candidate_is_another_leader() {
        let mut grants = GivenLeases::after_start(Time(0), false, LEASE);
        let (epoch, now) = (Epoch::new(4, NodeId(1)), Time(5));
        grants.grant(epoch, DISK, now, Span::millis(200));
        assert_eq!(grants.left(NodeId(1), OTHER, now), Span::millis(200));
        grants.void(NodeId(1), OTHER);
        assert_eq!(grants.left(NodeId(2), OTHER, now), Span::millis(200));
        grants.void_epoch(epoch);
        assert_eq!(grants.left(NodeId(2), OTHER, now), Span::ZERO);
    }

    #[test]
    fn a_restarted_node_answers_with_the_greatest_lease() {
        let grants = GivenLeases::after_start(Time(5), true, LEASE);
        assert_eq!(grants.left(NodeId(2), DISK, Time(5)), LEASE);
    }
}
