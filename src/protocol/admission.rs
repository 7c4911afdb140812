//! Whose word counts (P9, P10): blank, founder, wiped or let in again.

use super::io::Event;
use super::mutant::{self, Mutant};
use super::node::Node;
use crate::types::{Index, NodeId};

impl Node {
    /// A node that was never part of a cluster (P9).
    pub(super) fn is_blank(&self) -> bool {
        !self.vote.formed
    }

    /// Whether this disk remembers everything it ever acknowledged (P10).
    pub(super) fn may_vote(&self) -> bool {
        self.is_blank() || self.vote.admitted || self.settings.is_available()
    }

    /// Whether what that disk acknowledges counts for a majority (P10).
    pub(super) fn peer_counts(&self, node: NodeId) -> bool {
        let Some(peer) = self.peers.get(node) else {
            return false;
        };
        let roster = self.log.roster();
        match () {
            // Nothing is decided by counting disks there.
            () if self.settings.is_available() => true,
            () if mutant::is_on(Mutant::AnyIncarnationCounts) => true,
            () if mutant::is_on(Mutant::RejoinCountsItself) => roster.knows(node, peer.incarnation),
            // A leader that has just started may not know yet what the disk itself has seen committed.
            () if peer.admitted => roster.knows(node, peer.incarnation),
            () => roster.counts(node, peer.incarnation, self.commit),
        }
    }

    /// A new disk counts once its `rejoin` is committed and in its own log (P10). In available mode whoever lets it in may
    /// not know which epochs it once led: there its own fresh beginning does that (P36).
    pub(super) fn admit_if_committed(&mut self) {
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
    pub(super) fn note_formed(&mut self) {
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
