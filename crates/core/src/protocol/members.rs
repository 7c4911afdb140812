//! Who belongs to the cluster, whose votes count, and whose word (P9, P10): the log says so, from the record that founds it on (P43).

use std::sync::Arc;

use super::messages::{Event, Fault, Message, Output};
use super::mutant::{self, Mutant};
use super::node::{Node, RoleState};
use super::progress::Progress;
use super::quorum::majority;
use crate::types::{ClusterId, Incarnation, Index, Members, NodeId, Position};

impl Node {
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

    pub(in crate::protocol) fn voters(&self) -> impl Iterator<Item = NodeId> + use<> {
        let members = self.members().clone();
        let voters: Vec<NodeId> =
            members.iter().filter(|member| member.votes).map(|member| member.id).collect();
        voters.into_iter()
    }

    /// Everybody but this node, those who only learn included.
    pub(in crate::protocol) fn others(&self) -> impl Iterator<Item = NodeId> + use<> {
        let me = self.me();
        let others: Vec<NodeId> =
            self.members().iter().map(|member| member.id).filter(|node| *node != me).collect();
        others.into_iter()
    }

    /// Those of the others whose votes count.
    pub(in crate::protocol) fn other_voters(&self) -> impl Iterator<Item = NodeId> + use<> {
        let me = self.me();
        self.voters().filter(move |node| *node != me)
    }

    pub fn quorum(&self) -> usize {
        majority(self.members().iter().filter(|member| member.votes).count())
    }

    /// This node's own vote, as a number to be counted with those of others.
    pub(in crate::protocol) fn own_vote(&self) -> usize {
        usize::from(self.is_voter(self.me()))
    }

    /// Whether that is the disk of another cluster, whatever its name (P44).
    pub(in crate::protocol) fn is_foreign(&self, theirs: ClusterId) -> bool {
        let own = self.log().roster().cluster();
        own.is_known() && theirs.is_known() && own != theirs && !mutant::is_on(Mutant::AnyClusterCounts)
    }

    /// Who has been removed, and does not know it, asks to lead: it is told, and disturbs nobody (P43). Others are listened to
    /// though this log does not name them: it may be the one that lags, or hold a change that never took place.
    pub(in crate::protocol) fn turns_away(&mut self, from: NodeId, message: &Message) -> bool {
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

    /// Whoever says so may know less than others, who have made this node a member again: they have `dead_after` to be heard.
    /// One that has never belonged waits. It ends this node, so it counts as the answer to a question of this node's own only:
    /// whoever was not asked does not know the question's number (P51).
    pub(in crate::protocol) fn on_not_member(
        &mut self,
        from: NodeId,
        ask: u64,
        as_of: Index,
        theirs: Position,
    ) {
        let belonged = !self.is_blank() && self.log().roster().members().is_some();
        let asked = self.has_asked(from, ask) || mutant::is_on(Mutant::TurnedAwayUnasked);
        let news = belonged && asked && theirs >= self.last();
        let now = self.mono();
        if let RoleState::Seeking(seeking) = &mut self.role
            && news
        {
            seeking.removed.get_or_insert((now, as_of)).1 = as_of;
        }
    }

    pub(in crate::protocol) fn settle_removed(&mut self) {
        let RoleState::Seeking(seeking) = &self.role else {
            return;
        };
        if let Some((since, as_of)) = seeking.removed
            && self.mono() >= since + self.settings.timing.dead_after
        {
            self.stop(Fault::Removed { as_of });
        }
    }

    /// The log has gone on, or back: what is kept for each of the others is kept for those who belong here now.
    pub(in crate::protocol) fn follow_members(&mut self) {
        let cluster = self.log().roster().cluster();
        let same = Arc::ptr_eq(&self.known_members, self.members()) || self.known_members == *self.members();
        if same && self.known_cluster == cluster {
            return;
        }
        self.known_cluster = cluster;
        let members = self.members().clone();
        self.known_members = members.clone();
        let others: Vec<NodeId> = self.others().collect();
        self.peers.keep(&others);
        let (now, next) = (self.mono(), self.last().index + 1);
        match &mut self.role {
            RoleState::Leading(leading) => {
                for gone in leading.progress.keys().filter(|node| !others.contains(node)) {
                    leading.ballots.forget(*gone);
                }
                leading.progress.retain(|node, _| others.contains(node));
                for node in &others {
                    leading.progress.entry(*node).or_insert_with(|| Progress::new(next, now));
                }
            }
            RoleState::Seeking(seeking) => seeking.known.retain(|node, _| others.contains(node)),
            RoleState::Following(_) => {}
        }
        self.out.push(Output::Members { cluster, members });
    }
}

// Admission says whose word counts (P9, P10): a disk is blank, a founder's, wiped, or let in again.
impl Node {
    /// A node that was never part of a cluster (P9).
    pub(in crate::protocol) fn is_blank(&self) -> bool {
        !self.journal.vote().formed
    }

    /// Whether a promise of this disk may be of use: the candidate's log says whether it counts (P10). One that has been removed may
    /// have been added again since, beyond what its own log says (P43).
    pub(in crate::protocol) fn may_vote(&self) -> bool {
        let removed = self.journal.vote().admitted && self.log().roster().seat(self.me()).is_none();
        self.is_blank() || self.has_seat() || removed
    }

    /// Whether the log that this node holds knows this node's disk: else it does not count itself (P10).
    pub(in crate::protocol) fn has_seat(&self) -> bool {
        self.settings.is_available()
            || self.log().roster().knows(self.me(), self.incarnation)
            || mutant::is_on(Mutant::CountsItselfAlways)
    }

    /// The disk that has taken this one's place, by this node's own log: two machines run under one id, or this one is
    /// back though it was replaced (P10).
    pub fn replaced_by(&self) -> Option<Incarnation> {
        let seat = self
            .journal
            .log()
            .roster()
            .seat(self.me())
            .filter(|_| self.journal.vote().admitted && !self.has_seat());
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
        self.may_vote() && self.own_vote() == 1 && self.epochs.has_more()
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
        self.is_voter(node) && (self.log().roster().knows(node, incarnation) || any)
    }

    /// Notes that this disk is part of a cluster from now on, and that its log has counted it: it is not let in a second time (P10).
    /// In available mode whoever lets it in may not know which epochs it once led: there its own fresh beginning does that (P36).
    pub(in crate::protocol) fn note_formed(&mut self) {
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
