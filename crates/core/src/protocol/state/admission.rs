//! Admission says whose word counts (P9, P10): a disk is blank, a founder's, wiped, or let in again.

use super::node::Node;
use crate::protocol::messages::Event;
use crate::protocol::mutant::{self, Mutant};
use crate::types::{Incarnation, NodeId};

impl Node {
    /// A node that was never part of a cluster (P9).
    pub(in crate::protocol) fn is_blank(&self) -> bool {
        !self.vote.formed
    }

    /// Whether a promise of this disk may be of use: the candidate's log says whether it counts (P10). One that has been removed may
    /// have been added again since, beyond what its own log says (P43).
    pub(in crate::protocol) fn may_vote(&self) -> bool {
        let removed = self.vote.admitted && self.log.roster().seat(self.me()).is_none();
        self.is_blank() || self.has_seat() || removed
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
        match () {
            // Nothing is decided by counting disks there.
            () if self.settings.is_available() => true,
            () if self.has_forgotten(node) => false,
            () => self.vote_counts(node, peer.incarnation),
        }
    }

    /// Whether what that disk promises counts by the log that this node holds (P10).
    pub(in crate::protocol) fn vote_counts(&self, node: NodeId, incarnation: Incarnation) -> bool {
        let any = mutant::is_on(Mutant::AnyIncarnationCounts);
        self.is_voter(node) && (self.log.roster().knows(node, incarnation) || any)
    }

    /// Notes that this disk is part of a cluster from now on, and that its log has counted it: it is not let in a second time (P10).
    /// In available mode whoever lets it in may not know which epochs it once led: there its own fresh beginning does that (P36).
    pub(in crate::protocol) fn note_formed(&mut self) {
        let seat = self.log.roster().seat(self.me()).filter(|seat| seat.incarnation == self.incarnation);
        let anybody = !self.settings.is_available() || mutant::is_on(Mutant::AdmittedKnowsItsEpochs);
        let counted = seat.is_some_and(|seat| anybody || seat.since == 0) && self.is_voter(self.me());
        let admitted = self.vote.admitted || counted;
        if self.vote.formed && admitted == self.vote.admitted {
            return;
        }
        if admitted && !self.vote.admitted && self.vote.formed {
            self.event(Event::Admitted { incarnation: self.incarnation });
        }
        self.vote.formed = true;
        self.vote.admitted = admitted;
        self.write_vote();
    }
}
