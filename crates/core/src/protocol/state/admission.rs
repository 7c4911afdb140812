//! Admission says whose word counts (P9, P10): a disk is blank, a founder's, wiped, or let in again.

use super::node::Node;
use crate::protocol::messages::Event;
use crate::protocol::mutant::{self, Mutant};
use crate::types::{Incarnation, Index, NodeId};

impl Node {
    /// A node that was never part of a cluster (P9).
    pub(in crate::protocol) fn is_blank(&self) -> bool {
        !self.vote.formed
    }

    /// Whether this disk remembers everything it ever acknowledged, and no other has taken its place (P10).
    pub(in crate::protocol) fn may_vote(&self) -> bool {
        self.is_blank() || (self.vote.admitted && !self.is_replaced()) || self.settings.is_available()
    }

    /// Another disk has its seat by its own log. One that has no seat at all may have been removed and added again since: whether
    /// its promise counts the candidate's log says (P43).
    fn is_replaced(&self) -> bool {
        self.log.roster().seat(self.me()).is_some() && !self.has_seat()
    }

    /// Whether the log that this node holds knows this node's disk: else it does not count itself (P10).
    pub(in crate::protocol) fn has_seat(&self) -> bool {
        self.settings.is_available()
            || self.log.roster().knows(self.me(), self.incarnation)
            || mutant::is_on(Mutant::CountsItselfAlways)
    }

    /// The disk that has taken this one's place, by this node's own log: two machines run under one id, or this one is
    /// back though it was replaced (P10).
    pub fn replaced_by(&self) -> Option<Incarnation> {
        let seat = self.log.roster().seat(self.me()).filter(|_| self.vote.admitted && !self.has_seat());
        seat.map(|seat| seat.incarnation)
    }

    /// A node that another one has replaced says so once.
    pub(in crate::protocol) fn settle_seat(&mut self) {
        let by = self.replaced_by();
        if let Some(by) = by.filter(|_| self.told_replaced != by) {
            self.event(Event::Replaced { by });
        }
        self.told_replaced = by;
    }

    /// Whoever only learns leads nobody. It may well be asked for its promise: the candidate's log says whether that counts, and
    /// may know more of the members than this one (P43).
    pub(in crate::protocol) fn may_lead(&self) -> bool {
        self.may_vote() && self.own_vote() == 1 && self.has_epochs_left()
    }

    /// Whether what that disk acknowledges counts for a majority (P10).
    pub(in crate::protocol) fn peer_counts(&self, node: NodeId) -> bool {
        let Some(peer) = self.peers.get(node) else {
            return false;
        };
        let roster = self.log.roster();
        match () {
            // Nothing is decided by counting disks there.
            () if self.settings.is_available() => true,
            () if !self.is_voter(node) || self.has_forgotten(node) => false,
            () if mutant::is_on(Mutant::AnyIncarnationCounts) => true,
            () if mutant::is_on(Mutant::RejoinCountsItself) => roster.knows(node, peer.incarnation),
            // A leader that has just started may not know yet what the disk itself has seen committed.
            () if peer.admitted => roster.knows(node, peer.incarnation),
            () => roster.counts(node, peer.incarnation, self.commit),
        }
    }

    /// Whether that disk's promise counts (P10): a founder's, which may have missed the first record, or that of a disk which
    /// says that it counts. A blank disk gives promises too, and one record that nobody else has may name it.
    pub(in crate::protocol) fn vote_counts(
        &self,
        node: NodeId,
        incarnation: Incarnation,
        admitted: bool,
    ) -> bool {
        let seat = self.log.roster().seat(node).filter(|seat| seat.incarnation == incarnation);
        let blank_too = mutant::is_on(Mutant::BlankDiskVotes);
        seat.is_some_and(|seat| admitted || seat.since == 0 || blank_too)
            || mutant::is_on(Mutant::AnyIncarnationCounts)
    }

    /// A new disk counts once its `rejoin` is committed and in its own log (P10). In available mode whoever lets it in may
    /// not know which epochs it once led: there its own fresh beginning does that (P36).
    pub(in crate::protocol) fn admit_if_committed(&mut self) {
        if self.settings.is_available() && !mutant::is_on(Mutant::AdmittedKnowsItsEpochs) {
            return;
        }
        let commit = match mutant::is_on(Mutant::RejoinBeforeCommit) {
            true => Index::MAX,
            false => self.commit,
        };
        let counts = self.log.roster().counts(self.me(), self.incarnation, commit);
        if counts && !self.vote.admitted {
            self.vote.admitted = true;
            self.write_vote();
            self.event(Event::Admitted { incarnation: self.incarnation });
        }
    }

    /// Notes that this disk is part of a cluster from now on, and counts if it founded it (P9).
    pub(in crate::protocol) fn note_formed(&mut self) {
        let seat = self.log.roster().seat(self.me());
        let founder = seat.is_some_and(|s| s.since == 0 && s.incarnation == self.incarnation);
        let admitted = self.vote.admitted || founder;
        if !self.vote.formed || admitted != self.vote.admitted {
            self.vote.formed = true;
            self.vote.admitted = admitted;
            self.write_vote();
        }
        self.admit_if_committed();
    }
}
