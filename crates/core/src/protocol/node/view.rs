//! The view of a node for its callers, and the conditions that must hold at all times.

use super::{Node, RoleName, RoleState, Yielded};
use crate::protocol::leading::Leading;
use crate::protocol::log::Log;
use crate::protocol::messages::{Condition, Envelope, Impasse, IsLeader, Message, Refusal, Vote};
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::seeking::Waits;
use crate::protocol::settings::Settings;
use crate::protocol::succession::Contender;
use crate::types::{Boot, Entry, Epoch, Incarnation, Index, Members, NodeId, Now, Position, Stamp, Time};

// The view of a node in any role.
impl Node {
    pub fn settings(&self) -> &Settings {
        &self.core.settings
    }

    pub fn incarnation(&self) -> Incarnation {
        self.core.incarnation
    }

    pub fn boot(&self) -> Boot {
        self.core.boot
    }

    pub fn log(&self) -> &Log {
        self.core.log()
    }

    pub fn last(&self) -> Position {
        self.core.last()
    }

    pub fn commit_index(&self) -> Index {
        self.core.journal.commit()
    }

    pub fn vote(&self) -> Vote {
        self.core.journal.vote()
    }

    /// Whether a snapshot is being written to disk that will replace log and state (P26).
    pub fn is_installing(&self) -> bool {
        self.core.journal.disk().is_installing()
    }

    /// Whether the newest promise of this node is on disk.
    pub fn promise_is_durable(&self) -> bool {
        let disk = self.core.journal.disk();
        disk.is_met(disk.vote())
    }

    pub fn service_is_down(&self) -> bool {
        self.core.service_is_down()
    }

    /// Whether the service is held for a merge, and no write is in flight any more.
    pub fn is_at_rest(&self) -> bool {
        self.core.is_at_rest()
    }

    /// The merges that do not succeed, and the reasons, as far as this node knows.
    pub fn impasses(&self) -> impl Iterator<Item = (NodeId, &Impasse)> {
        self.core.impasses.iter()
    }

    pub fn envelope(&self, to: NodeId, message: Message) -> Envelope {
        self.core.envelope(to, message)
    }
}

// The members of the cluster, and the disks that count.
impl Node {
    pub fn members(&self) -> &Members {
        self.core.members()
    }

    pub fn is_member(&self, node: NodeId) -> bool {
        self.core.is_member(node)
    }

    pub fn is_voter(&self, node: NodeId) -> bool {
        self.core.is_voter(node)
    }

    pub fn quorum(&self) -> usize {
        self.core.quorum()
    }

    pub fn replaced_by(&self) -> Option<Incarnation> {
        self.core.replaced_by()
    }

    /// Whether this disk counts, by its own log. In available mode no decision counts disks.
    pub fn is_admitted(&self) -> bool {
        self.core.settings.is_available() || (self.core.own_vote_count() == 1 && self.core.has_seat())
    }

    /// Whether that node's disk counts, for this node as a leader or as a follower (P10).
    pub fn counts(&self, node: NodeId) -> bool {
        match &self.role {
            _ if node == self.core.me() => self.is_admitted(),
            RoleState::Leading(leading) => leading.peer_counts(&self.core, node),
            _ => self.core.peer_counts(node),
        }
    }

    /// The time at which this node last heard that node, if it ever did.
    pub fn last_heard(&self, node: NodeId) -> Option<Time> {
        self.core.last_heard(node)
    }
}

// The leader, as far as this node knows.
impl Node {
    pub fn role_name(&self) -> RoleName {
        match &self.role {
            _ if self.core.stopped => RoleName::Stopped,
            RoleState::Seeking(_) => RoleName::Candidate,
            RoleState::Following(_) => RoleName::Follower,
            RoleState::Leading(_) => RoleName::Leader,
        }
    }

    /// The leader that this node follows, or itself if its epoch is open.
    pub fn leader(&self) -> Option<NodeId> {
        if self.is_open() { Some(self.core.me()) } else { self.followed() }
    }

    /// The leader that this node follows.
    pub(super) fn followed(&self) -> Option<NodeId> {
        let following = self.following().filter(|following| !following.is_awaiting());
        following.map(|following| following.leader())
    }

    /// The epoch that this node leads in, open or not.
    pub fn leads(&self) -> Option<Epoch> {
        self.leading().map(|leading| leading.term().epoch)
    }

    /// Whether this node's epoch is open: it takes writes and linear reads.
    pub fn is_open(&self) -> bool {
        self.leading().is_some_and(Leading::is_open)
    }

    /// Whether this node may say, at this moment, that it is the leader (I4).
    pub fn is_leader(&self, now: Time) -> bool {
        self.whether_leader(now) == IsLeader::Yes
    }

    pub fn whether_leader(&self, now: Time) -> IsLeader {
        self.leading().map_or(IsLeader::No, |leading| leading.whether_leader(&self.core, now))
    }

    /// Whether this node leads and has to wait: an earlier leader may still be relied on (P11).
    pub fn waits_for_leases(&self, now: Time) -> bool {
        self.leading().is_some_and(|leading| leading.is_open() && !leading.older_leases_are_over(now))
    }

    /// Whether a majority, this node included, answered this node lately. True if no majority is needed. This tells an election
    /// under way from a minority.
    pub fn reaches_majority(&self, now: Time) -> bool {
        match &self.role {
            _ if self.core.settings.is_available() => true,
            RoleState::Following(_) => true,
            RoleState::Leading(leading) => leading.reaches_majority(&self.core, now),
            RoleState::Seeking(seeking) => seeking.reaches_majority(&self.core, now),
        }
    }

    /// The nodes that this node waits for. `None` if a leader is known, an election is under way, or no majority is needed.
    pub fn waits_for(&self, now: Time) -> Option<Waits> {
        self.seeking()?.waits_for(&self.core, now)
    }

    /// The dry run, for an operator: would this node approve that candidate now? Nothing changes (P4).
    pub fn opinion_of(&self, candidate: NodeId) -> bool {
        candidate == self.core.me() || self.objection_to(candidate, Condition::Fit).is_none()
    }

    /// The node that would lead next, by the leader's last beat (P4).
    pub fn heir(&self) -> Option<NodeId> {
        match &self.role {
            RoleState::Following(following) => following.heir(),
            RoleState::Leading(leading) => leading.best_heir(&self.core),
            RoleState::Seeking(_) => None,
        }
    }
}

// The view of a leader.
impl Node {
    /// The reason why a proposal would be refused now, if `records` records of `bytes` bytes are proposed before it in the same batch. The
    /// answer stays the same while nothing else happens.
    pub fn refusal(&self, entry: &Entry, clears_up: bool, records: Index, bytes: usize) -> Option<Refusal> {
        match self.leading() {
            Some(leading) => leading.refusal(&self.core, entry, clears_up, records, bytes),
            None => Some(Refusal::NotLeader { leader: self.leader() }),
        }
    }

    /// The stamp that a record written now would get (P17); none if this node does not lead.
    pub fn stamp(&self, now: Now) -> Option<Stamp> {
        self.leading().map(|leading| leading.stamp(now))
    }

    /// The size of the records that a leader has appended and not committed yet, in bytes.
    pub fn uncommitted_bytes(&self) -> usize {
        self.leading().map_or(0, |_| self.core.journal.uncommitted_bytes())
    }

    /// The last index that this node, as the leader, knows to be on that node's disk.
    pub fn matched_by(&self, node: NodeId) -> Option<Index> {
        let leading = self.leading()?;
        match node == self.core.me() {
            true => Some(self.core.journal.disk().upto()),
            false => leading.matched_by(node),
        }
    }

    /// The nodes that could lead. Empty if this node does not lead: only a leader knows the positions of the others.
    pub fn contenders(&self, now: Time) -> Vec<Contender> {
        self.leading().map(|leading| leading.contenders(&self.core, now)).unwrap_or_default()
    }

    /// Checks what must be true after every input. A violation is a bug, not an operating error (I11).
    pub fn validate(&self) {
        let core = &self.core;
        core.journal.validate();
        assert!(core.epochs.newest() >= core.promise(), "promised an epoch that it has not heard of (P2)");
        let ends = |yielded: &Yielded| core.epochs.is_over(yielded.certificate.epoch);
        let ended = self.yielded.as_ref().is_none_or(ends) || mutant::is_on(Mutant::ServeAfterHandOver);
        assert!(ended, "handed over, and goes on (P18)");
        match &self.role {
            RoleState::Leading(leading) => leading.validate(core),
            RoleState::Following(following) => following.validate(core),
            RoleState::Seeking(seeking) => seeking.validate(core),
        }
    }
}
