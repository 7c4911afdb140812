//! What a replica shows to whoever looks at it. Nothing changes.

use super::answer::{LeaseTimes, Opinion, View};
use super::state::Replica;
use crate::protocol::IsLeader;
use crate::types::{LeaseName, NodeId, Now, Span, Time};

impl Replica {
    /// Checked against the lease at the moment of asking.
    pub fn is_leader(&self, now: Time) -> bool {
        self.core.is_leader(now)
    }

    pub fn whether_leader(&self, now: Time) -> IsLeader {
        self.core.whether_leader(now)
    }

    /// The committed state as it is shown to a reader.
    pub fn view(&self, now: Time) -> View {
        let store = self.committed().clone();
        let index = store.applied().index;
        let leader = self.core.leader();
        let age_ms = if leader == Some(self.me()) { 0 } else { now.since(self.led_at).0 / 1000 };
        View { store, leader, epoch: self.core.vote().promise.epoch, index, age_ms }
    }

    /// Would this node approve that one now? Nothing changes.
    pub fn opinion(&self, candidate: NodeId) -> Opinion {
        let known = self.core.is_member(candidate);
        let approved = known && self.core.opinion_of(candidate);
        let reason = match (approved, self.core.leader()) {
            _ if !known => "no member has that index",
            (true, _) => "this node would approve it now",
            (false, Some(leader)) if leader == self.me() => "this node leads",
            (false, Some(_)) => "this node follows a leader that it does not suspect",
            (false, None) => "this node may not vote, or waits for another candidate",
        };
        Opinion { approved, reason }
    }

    /// Calls that want a role which somebody else has.
    pub fn waiting_for_roles(&self) -> usize {
        self.roles.waiters.waiting()
    }

    /// How long each lease has left, and how many wait for it. None on a node that does not lead.
    pub fn lease_times(&self, now: Now, names: &[LeaseName]) -> Option<LeaseTimes> {
        let times = |name: &LeaseName| -> (Option<Span>, usize) { self.roles.times(name, now.mono) };
        self.roles.leads().then(|| LeaseTimes { wall: now.wall, times: names.iter().map(times).collect() })
    }
}
