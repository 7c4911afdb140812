//! What others may look at, and what must be true of it at all times.

use std::collections::BTreeSet;

use super::log::Log;
use super::messages::{Condition, Vote};
use super::mutant::{self, Mutant};
use super::node::{Leader, Node, RoleName, RoleState};
use super::roles::{Leading, Merges, Seeking, Yielded};
use super::settings::Settings;
use crate::types::{Boot, Epoch, Incarnation, Index, NodeId, Now, Position, Stamp, Time};

impl Node {
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub fn log(&self) -> &Log {
        self.journal.log()
    }

    pub fn commit_index(&self) -> Index {
        self.journal.commit()
    }

    pub fn last(&self) -> Position {
        self.journal.log().last()
    }

    /// What a leader has appended and not committed yet, in bytes.
    pub fn uncommitted_bytes(&self) -> usize {
        self.leading().map_or(0, |leading| leading.uncommitted_bytes)
    }

    pub fn vote(&self) -> Vote {
        self.journal.vote()
    }

    pub fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    pub fn boot(&self) -> Boot {
        self.boot
    }

    pub fn role_name(&self) -> RoleName {
        match &self.role {
            _ if self.stopped => RoleName::Stopped,
            RoleState::Seeking(_) => RoleName::Candidate,
            RoleState::Following(_) => RoleName::Follower,
            RoleState::Leading(_) => RoleName::Leader,
        }
    }

    /// The leader that this node follows, or itself if its epoch is open.
    pub fn leader(&self) -> Option<NodeId> {
        match &self.role {
            RoleState::Following(following) if following.tentative.is_none() => Some(following.leader),
            RoleState::Leading(leading) if leading.opened => Some(self.me()),
            _ => None,
        }
    }

    /// The epoch that this node leads in, open or not.
    pub fn leads(&self) -> Option<Epoch> {
        match &self.role {
            RoleState::Leading(leading) => Some(leading.term.epoch),
            _ => None,
        }
    }

    /// Whether this node's epoch is open: it takes writes and linear reads.
    pub fn is_open(&self) -> bool {
        matches!(&self.role, RoleState::Leading(leading) if leading.opened)
    }

    /// Whether this disk counts, by its own log. In available mode nothing is decided by counting disks.
    pub fn is_admitted(&self) -> bool {
        self.settings.is_available() || (self.own_vote() == 1 && self.has_seat())
    }

    /// Whether a snapshot is on its way to the disk that is to take the place of log and state (P26).
    pub fn is_installing(&self) -> bool {
        self.journal.disk().is_installing()
    }

    /// Whether the disk has what this node has promised last.
    pub fn promise_is_durable(&self) -> bool {
        self.journal.disk().is_met(self.journal.disk().vote())
    }

    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    pub fn service_is_down(&self) -> bool {
        self.journal.log().holds_of_service().any()
    }

    /// It leads, and has to wait: a leader before may still be relied on (P11).
    pub fn waits_for_leases(&self, now: Time) -> bool {
        self.as_open_leader().is_some_and(|leader| !leader.older_leases_are_over(now))
    }

    /// The stamp that a record written now would get (P17); none where this node does not lead.
    pub fn stamp(&self, now: Now) -> Option<Stamp> {
        self.leading().map(|leading| leading.clock.stamp(now))
    }

    /// Whether a majority, where one is needed, answered this node lately, itself included: the difference between an
    /// election under way and a minority.
    pub fn reaches_majority(&self, now: Time) -> bool {
        if self.settings.is_available() {
            return true;
        }
        let fresh = self.fresh();
        match &self.role {
            RoleState::Following(_) => true,
            RoleState::Leading(leading) => {
                let answers = leading.progress.iter().filter(|(_, p)| p.answered_at + fresh >= now);
                let voters = answers.filter(|(node, _)| self.is_voter(**node)).count();
                voters + self.own_vote() >= self.quorum()
            }
            RoleState::Seeking(seeking) => {
                let heard = seeking.hears(now, fresh).into_iter().filter(|node| self.is_voter(*node)).count();
                heard + self.own_vote() >= self.quorum()
            }
        }
    }

    /// When this node last heard that one, if it ever did.
    pub fn last_heard(&self, node: NodeId) -> Option<Time> {
        let heard = self.peers.get(node)?.last_message;
        (heard != Time::default()).then_some(heard)
    }

    /// What this node, as the leader, knows to be on that one's disk.
    pub fn matched_by(&self, node: NodeId) -> Option<Index> {
        let leading = self.leading()?;
        match node == self.me() {
            true => Some(self.journal.disk().upto()),
            false => leading.progress.get(&node).map(|progress| progress.matched),
        }
    }

    /// Whether that node's disk counts for what this one leads or follows (P10).
    pub fn counts(&self, node: NodeId) -> bool {
        match node == self.me() {
            true => self.is_admitted(),
            false => self.peer_counts(node),
        }
    }

    /// The dry run, for an operator: would this node approve that one now? Nothing changes (P4).
    pub fn opinion_of(&self, candidate: NodeId) -> bool {
        candidate == self.me() || self.would_approve(candidate, Condition::Fit)
    }

    /// Who would lead next by the leader's last word (P4).
    pub fn heir(&self) -> Option<NodeId> {
        match &self.role {
            RoleState::Following(following) => following.heir,
            RoleState::Leading(leading) => Leader { node: self, leading }.best_heir(),
            RoleState::Seeking(_) => None,
        }
    }

    /// What must be true after every input. What is broken is a bug, and no error (I11).
    pub fn validate(&self) {
        self.journal.validate();
        let (promise, last) = (self.journal.promise(), self.last().index);
        assert!(self.epochs.newest() >= promise.epoch, "promised an epoch that it has not heard of (P2)");
        let ends = |yielded: &Yielded| self.epochs.is_over(yielded.certificate.epoch);
        let ended = self.yielded.as_ref().is_none_or(ends) || mutant::is_on(Mutant::ServeAfterHandOver);
        assert!(ended, "handed over, and goes on (P18)");
        match &self.role {
            RoleState::Leading(leading) => self.validate_leading(leading),
            RoleState::Following(following) => {
                assert!(following.matched <= last, "matched beyond the log");
                assert_eq!(
                    following.leader, following.epoch.leader,
                    "follows somebody in another one's epoch"
                );
                assert_ne!(following.leader, self.me(), "follows itself (P2)");
            }
            RoleState::Seeking(Seeking { claim: Some(claim), .. }) => {
                assert_eq!(claim.term, promise, "claims what it has not promised itself (P8)");
                let both = claim.refused.iter().any(|node| claim.approvals.contains_key(node));
                assert!(!both, "one answer to a claim counts twice");
            }
            RoleState::Seeking(_) => {}
        }
    }

    fn validate_leading(&self, leading: &Leading) {
        let last = self.last().index;
        assert_eq!(leading.term, self.journal.promise(), "leads below its promise");
        assert!(leading.opened == (self.journal.commit() >= leading.open_index));
        assert!(leading.open_index <= last, "leads without the record that opens its epoch (P6)");
        assert!(self.has_seat(), "leads without a seat (P10)");
        let others: BTreeSet<NodeId> = self.others().collect();
        let all_known = others.iter().all(|node| leading.progress.contains_key(node));
        assert!(
            all_known && leading.progress.len() == others.len(),
            "keeps the progress of other nodes than there are (P43)"
        );
        for progress in leading.progress.values() {
            assert!(
                progress.matched <= last && progress.matched < progress.next,
                "a follower matches what is not here (P5)"
            );
            assert!(progress.answered_round <= leading.round, "a round was answered that never was");
        }
        assert!(leading.reads.waiting.len() <= self.settings.limits.reads, "more reads wait than may");
        let Merges { meeting, handing_in, .. } = &leading.merges;
        assert!(meeting.as_ref().is_none_or(|meeting| meeting.other > self.me()), "takes its elder in (P34)");
        assert!(
            handing_in.as_ref().is_none_or(|handing| handing.to < self.me()),
            "hands in to its younger (P34)"
        );
    }
}
