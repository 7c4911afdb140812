//! The members of the cluster, and the disks whose votes and messages count (P9, P10). The log names them, from its first record on (P43).

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Core;
use crate::protocol::messages::{Condition, Event, Message, Output};
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::quorum::majority;
use crate::types::{ClusterId, Incarnation, Members, NodeId};

impl Core {
    /// The members that this node's log names, committed or not. The topology file names them if the log does not, and in available mode.
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

    /// All members but this node, learners included.
    pub fn others(&self) -> impl Iterator<Item = NodeId> + use<> {
        let me = self.me();
        let others: Vec<NodeId> =
            self.members().iter().map(|member| member.id).filter(|node| *node != me).collect();
        others.into_iter()
    }

    /// The voters except this node.
    pub fn other_voters(&self) -> impl Iterator<Item = NodeId> + use<> {
        let me = self.me();
        self.voters().filter(move |node| *node != me)
    }

    pub fn quorum(&self) -> usize {
        majority(self.members().iter().filter(|member| member.votes).count())
    }

    /// This node's own vote, as a number to add to the votes of other nodes.
    pub fn own_vote_count(&self) -> usize {
        usize::from(self.is_voter(self.me()))
    }

    /// Whether the sender's disk belongs to another cluster, even one of the same name (P44).
    pub fn is_foreign(&self, theirs: ClusterId) -> bool {
        let own = self.log().roster().cluster();
        own.is_known() && theirs.is_known() && own != theirs && !mutant::is_on(Mutant::AnyClusterCounts)
    }

    /// A removed node that does not know of its removal asks to lead. It learns of the removal here, and
    /// disturbs no other node (P43). Other strangers are heard although this log does not name them: this log
    /// may be the one that lags, or hold a change that never took place.
    pub fn turns_away(&mut self, from: NodeId, message: &Message) -> bool {
        let (theirs, asked) = match message {
            Message::Willing { ask, standing } => (standing.last, Some(*ask)),
            Message::Claim(claim) => (claim.last, None),
            _ => return false,
        };
        let roster = self.log().roster();
        let as_of = roster.members_since();
        let decided = roster.members().is_some() && as_of <= self.journal.commit() && !self.is_blank();
        // A candidate whose log goes further than this log may know of a later change.
        let removed = decided && !self.is_member(from) && theirs <= self.last();
        if let (true, Some(ask)) = (removed, asked) {
            let last = self.last();
            self.send(from, Message::NotMember { ask, as_of, last });
        }
        removed
    }

    /// The log has grown or was cut. The state about each other node is now kept for the present members. Returns the other members, if
    /// the members have changed.
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

// Admission decides which disks count (P9, P10): a disk is blank, a founder's, wiped, or let in again.
impl Core {
    /// Whether this node was never part of a cluster (P9).
    pub fn is_blank(&self) -> bool {
        !self.journal.vote().formed
    }

    /// Whether a promise of this disk may be of use: the candidate's log decides whether it counts (P10). A removed node may
    /// have been added again since, which its own log does not show (P43).
    pub fn may_vote(&self) -> bool {
        let removed = self.journal.vote().admitted && self.log().roster().seat(self.me()).is_none();
        self.is_blank() || self.has_seat() || removed
    }

    /// Whether the log that this node holds knows this node's disk. If it does not, this node does not count its own vote (P10).
    pub fn has_seat(&self) -> bool {
        self.settings.is_available()
            || self.log().roster().knows(self.me(), self.incarnation)
            || mutant::is_on(Mutant::CountsItselfAlways)
    }

    /// The disk that has taken this one's place, by this node's own log. Either two machines run under one id, or this disk is
    /// back although it was replaced (P10).
    pub fn replaced_by(&self) -> Option<Incarnation> {
        let seat = self.log().roster().seat(self.me());
        seat.filter(|_| self.journal.vote().admitted && !self.has_seat()).map(|seat| seat.incarnation)
    }

    /// A node that was replaced by another disk reports it once.
    pub fn settle_seat(&mut self) {
        let by = self.replaced_by();
        if let Some(by) = by.filter(|_| self.told_replaced != by) {
            self.event(Event::Replaced { by });
        }
        self.told_replaced = by;
    }

    /// A learner cannot lead. It may still be asked for its promise: the candidate's log decides whether that promise counts, and
    /// may know more about the members than this log (P43).
    pub fn may_lead(&self) -> bool {
        self.may_vote() && self.own_vote_count() == 1 && self.epochs.has_more()
    }

    /// Whether the acknowledgements of that node's disk count for a majority, by this node's log (P10).
    pub fn peer_counts(&self, node: NodeId) -> bool {
        // In available mode no decision counts disks.
        let peer = self.peers.get(node);
        peer.is_some_and(|peer| self.settings.is_available() || self.vote_counts(node, peer.incarnation))
    }

    /// Whether the promises of that disk count, by the log that this node holds (P10).
    pub fn vote_counts(&self, node: NodeId, incarnation: Incarnation) -> bool {
        let any = mutant::is_on(Mutant::AnyIncarnationCounts);
        self.is_voter(node) && (self.log().roster().knows(node, incarnation) || any)
    }

    /// Notes that this disk is part of a cluster from now on and, if its log counts it, that it is not let in a second time
    /// (P10). In available mode the node that lets this disk in may not know which epochs the disk once led. So there only a
    /// founder's disk is marked here; another disk is marked by its own first claim (P36).
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

/// With at most this many founders, a blank node listens for a cluster first (P9). Two founders may both lose their disks in a
/// cluster that has grown to five, and would then found another one. Three founders are a minority only in a cluster of seven or
/// more.
const LISTENING_FOUNDERS: usize = 2;

// A cluster is founded once (P9), by nodes that are all blank.
impl Core {
    /// Whether these nodes and this one may form the cluster (P9).
    pub fn founders_agree(&self, yes: &BTreeSet<NodeId>) -> bool {
        if mutant::is_on(Mutant::FormByMajority) {
            return yes.len() + 1 >= self.quorum();
        }
        // The nodes that have added this node since may be missing from its topology file.
        let by_order = self.forming_without.is_some() || mutant::is_on(Mutant::FormDeaf);
        let listens = self.listens_for_a_cluster() && !mutant::is_on(Mutant::FoundWithoutListening);
        if !by_order && (self.hears_cluster || listens) {
            return false;
        }
        let excused = self.forming_without.clone().unwrap_or_default();
        self.others().all(|node| yes.contains(&node) || excused.contains(&node))
            && yes.len() + 1 >= self.quorum()
    }

    /// Whether this node may promise anything to a candidate in that condition. A blank candidate founds a cluster. Then this
    /// node must be blank as well, and in safe mode it must not have heard of a cluster, which the candidate may not know. An
    /// operator's order overrides what it has heard (P9).
    pub fn may_found(&self, condition: Condition) -> bool {
        let unasked = self.settings.is_available() || mutant::is_on(Mutant::FoundsWithOthers);
        let by_order = condition == Condition::Ordered || self.forming_without.is_some();
        !condition.is_blank() || (self.is_blank() && (by_order || unasked || !self.hears_cluster))
    }

    /// Whether this node has to listen before it agrees to found a cluster. Each founder listens itself: the candidate may have
    /// been removed from a cluster meanwhile, and then hears no node of it (P9).
    pub fn founds_too_early(&self, condition: Condition) -> bool {
        let founds = condition == Condition::Blank && !self.settings.is_available();
        founds && self.listens_for_a_cluster() && !mutant::is_on(Mutant::AgreeWithoutListening)
    }

    /// Whether a cluster that these founders have formed earlier, and that has grown since, may still make itself heard (P9).
    fn listens_for_a_cluster(&self) -> bool {
        let listening = if mutant::is_on(Mutant::FoundersDeaf) { 1 } else { LISTENING_FOUNDERS };
        self.is_blank() && self.members().len() <= listening && self.mono() < self.listens_until
    }

    /// Whether others come before that candidate even if its id is lower (P20, P21).
    pub fn ranks_last(&self, candidate: NodeId, condition: Condition) -> bool {
        condition == Condition::Held || self.peers.is_on_hold(candidate, self.mono())
    }
}
