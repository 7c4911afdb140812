//! Who belongs to the cluster, whose votes count, and whose word (P9, P10): the log says so, from the record that founds it on (P43).

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Core;
use crate::protocol::messages::{Condition, Event, Message, Output};
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::quorum::majority;
use crate::types::{ClusterId, Incarnation, Members, NodeId};

impl Core {
    /// As this node's log has it, committed or not; before there is any, and in available mode, as the topology file does.
    pub fn members(&self) -> &Members {
        let by_file = match self.settings.is_available() {
            true => !mutant::is_on(Mutant::LogRulesSides),
            false => mutant::is_on(Mutant::MembersByFile),
        };
        self.log().roster().members().filter(|_| !by_file).unwrap_or(&self.settings.members)
    }

    pub fn is_member(&self, node: NodeId) -> bool {
        self.members().iter().any(|member| member.id == node)
    }

    pub fn is_voter(&self, node: NodeId) -> bool {
        self.members().iter().any(|member| member.id == node && member.votes)
    }

    pub fn voters(&self) -> impl Iterator<Item = NodeId> + use<> {
        let members = self.members().clone();
        let voters: Vec<NodeId> =
            members.iter().filter(|member| member.votes).map(|member| member.id).collect();
        voters.into_iter()
    }

    /// Everybody but this node, those who only learn included.
    pub fn others(&self) -> impl Iterator<Item = NodeId> + use<> {
        let me = self.me();
        let others: Vec<NodeId> =
            self.members().iter().map(|member| member.id).filter(|node| *node != me).collect();
        others.into_iter()
    }

    /// Those of the others whose votes count.
    pub fn other_voters(&self) -> impl Iterator<Item = NodeId> + use<> {
        let me = self.me();
        self.voters().filter(move |node| *node != me)
    }

    pub fn quorum(&self) -> usize {
        majority(self.members().iter().filter(|member| member.votes).count())
    }

    /// This node's own vote, as a number to be counted with those of others.
    pub fn own_vote(&self) -> usize {
        usize::from(self.is_voter(self.me()))
    }

    /// Whether that is the disk of another cluster, whatever its name (P44).
    pub fn is_foreign(&self, theirs: ClusterId) -> bool {
        let own = self.log().roster().cluster();
        own.is_known() && theirs.is_known() && own != theirs && !mutant::is_on(Mutant::AnyClusterCounts)
    }

    /// Who has been removed, and does not know it, asks to lead: it is told, and disturbs nobody (P43). Others are listened to
    /// though this log does not name them: it may be the one that lags, or hold a change that never took place.
    pub fn turns_away(&mut self, from: NodeId, message: &Message) -> bool {
        let (theirs, asked) = match message {
            Message::Willing { ask, standing } => (standing.last, Some(*ask)),
            Message::Claim(claim) => (claim.last, None),
            _ => return false,
        };
        let roster = self.log().roster();
        let as_of = roster.members_since();
        let decided = roster.members().is_some() && as_of <= self.journal.commit() && !self.is_blank();
        // A log that goes further than this one may know better.
        let removed = decided && !self.is_member(from) && theirs <= self.last();
        if let (true, Some(ask)) = (removed, asked) {
            let last = self.last();
            self.send(from, Message::NotMember { ask, as_of, last });
        }
        removed
    }

    /// The log has gone on, or back: what is kept for each of the others is kept for those who belong here now. Says who that is, if it is not
    /// as before.
    pub fn follow_members(&mut self) -> Option<Vec<NodeId>> {
        let cluster = self.log().roster().cluster();
        let same = Arc::ptr_eq(&self.known_members, self.members()) || self.known_members == *self.members();
        if same && self.known_cluster == cluster {
            return None;
        }
        self.known_cluster = cluster;
        let members = self.members().clone();
        self.known_members = members.clone();
        let others: Vec<NodeId> = self.others().collect();
        self.peers.keep(&others);
        self.out.push(Output::Members { cluster, members });
        Some(others)
    }
}

// Admission says whose word counts (P9, P10): a disk is blank, a founder's, wiped, or let in again.
impl Core {
    /// A node that was never part of a cluster (P9).
    pub fn is_blank(&self) -> bool {
        !self.journal.vote().formed
    }

    /// Whether a promise of this disk may be of use: the candidate's log says whether it counts (P10). One that has been removed may
    /// have been added again since, beyond what its own log says (P43).
    pub fn may_vote(&self) -> bool {
        let removed = self.journal.vote().admitted && self.log().roster().seat(self.me()).is_none();
        self.is_blank() || self.has_seat() || removed
    }

    /// Whether the log that this node holds knows this node's disk: else it does not count itself (P10).
    pub fn has_seat(&self) -> bool {
        self.settings.is_available()
            || self.log().roster().knows(self.me(), self.incarnation)
            || mutant::is_on(Mutant::CountsItselfAlways)
    }

    /// The disk that has taken this one's place, by this node's own log: two machines run under one id, or this one is
    /// back though it was replaced (P10).
    pub fn replaced_by(&self) -> Option<Incarnation> {
        let seat = self.log().roster().seat(self.me());
        seat.filter(|_| self.journal.vote().admitted && !self.has_seat()).map(|seat| seat.incarnation)
    }

    /// A node that another one has replaced says so once.
    pub fn settle_seat(&mut self) {
        let by = self.replaced_by();
        if let Some(by) = by.filter(|_| self.told_replaced != by) {
            self.event(Event::Replaced { by });
        }
        self.told_replaced = by;
    }

    /// Whoever only learns leads nobody. It may well be asked for its promise: the candidate's log says whether that counts, and
    /// may know more of the members than this one (P43).
    pub fn may_lead(&self) -> bool {
        self.may_vote() && self.own_vote() == 1 && self.epochs.has_more()
    }

    /// Whether what that disk acknowledges counts for a majority, as far as the log says (P10).
    pub fn peer_counts(&self, node: NodeId) -> bool {
        // Nothing is decided by counting disks in available mode.
        let peer = self.peers.get(node);
        peer.is_some_and(|peer| self.settings.is_available() || self.vote_counts(node, peer.incarnation))
    }

    /// Whether what that disk promises counts by the log that this node holds (P10).
    pub fn vote_counts(&self, node: NodeId, incarnation: Incarnation) -> bool {
        let any = mutant::is_on(Mutant::AnyIncarnationCounts);
        self.is_voter(node) && (self.log().roster().knows(node, incarnation) || any)
    }

    /// Notes that this disk is part of a cluster from now on, and that its log has counted it: it is not let in a second time (P10).
    /// In available mode whoever lets it in may not know which epochs it once led: there its own fresh beginning does that (P36).
    pub fn note_formed(&mut self) {
        let seat = self.log().roster().seat(self.me()).filter(|seat| seat.incarnation == self.incarnation);
        let anybody = !self.settings.is_available() || mutant::is_on(Mutant::AdmittedKnowsItsEpochs);
        let counted = seat.is_some_and(|seat| anybody || seat.since == 0) && self.is_voter(self.me());
        let before = self.journal.vote();
        let write = self.journal.note_formed(counted);
        if counted && !before.admitted && before.formed {
            self.event(Event::Admitted { incarnation: self.incarnation });
        }
        self.out.extend(write);
    }
}

/// So few founders listen first (P9): of a cluster of five two disks may be lost at a time. Three founders would have to be lost
/// out of seven.
const LISTENING_FOUNDERS: usize = 2;

// A cluster is founded once (P9), by nodes that are all blank.
impl Core {
    /// Whether these nodes and this one may form the cluster (P9).
    pub fn founders_agree(&self, yes: &BTreeSet<NodeId>) -> bool {
        if mutant::is_on(Mutant::FormByMajority) {
            return yes.len() + 1 >= self.quorum();
        }
        // Whoever has added this node since need not stand in its topology file.
        let by_order = self.forming_without.is_some() || mutant::is_on(Mutant::FormDeaf);
        let listens = self.listens_for_a_cluster() && !mutant::is_on(Mutant::FoundWithoutListening);
        if !by_order && (self.hears_cluster || listens) {
            return false;
        }
        let excused = self.forming_without.clone().unwrap_or_default();
        self.others().all(|node| yes.contains(&node) || excused.contains(&node))
            && yes.len() + 1 >= self.quorum()
    }

    /// Whether this node, if it is blank, lets others found a cluster with it: what it has heard they may not have. An operator's order
    /// is above that (P9).
    pub fn may_found(&self, condition: Condition) -> bool {
        let unasked = self.settings.is_available() || mutant::is_on(Mutant::FoundsWithOthers);
        let by_order = condition == Condition::Ordered || self.forming_without.is_some();
        !condition.is_blank() || (self.is_blank() && (by_order || unasked || !self.hears_cluster))
    }

    /// Founders agree once each has listened: the candidate may have been removed since, and hear nobody (P9).
    pub fn founds_too_early(&self, condition: Condition) -> bool {
        let founds = condition == Condition::Blank && !self.settings.is_available();
        founds && self.listens_for_a_cluster() && !mutant::is_on(Mutant::AgreeWithoutListening)
    }

    /// Whether a cluster that these founders have formed before, and that has grown since, may yet be about to speak (P9).
    fn listens_for_a_cluster(&self) -> bool {
        let listening = if mutant::is_on(Mutant::FoundersDeaf) { 1 } else { LISTENING_FOUNDERS };
        self.is_blank() && self.members().len() <= listening && self.mono() < self.listens_until
    }

    /// Whether others come before that candidate, whatever its index (P20, P21).
    pub fn comes_last(&self, candidate: NodeId, condition: Condition) -> bool {
        condition == Condition::Held || self.peers.is_on_hold(candidate, self.mono())
    }
}
