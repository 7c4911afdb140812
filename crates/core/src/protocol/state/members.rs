//! Who belongs to the cluster, and whose votes count: the log says so, from the record that founds it on (P43).

use std::sync::Arc;

use super::node::{Node, Role};
use super::progress::Progress;
use crate::protocol::messages::{Fault, Message, Output};
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::quorum::majority;
use crate::types::{ClusterId, Index, Members, NodeId, Position};

impl Node {
    /// As this node's log has it, committed or not; before there is any, and in available mode, as the topology file does.
    pub fn members(&self) -> &Members {
        let by_file = match self.settings.is_available() {
            true => !mutant::is_on(Mutant::LogRulesSides),
            false => mutant::is_on(Mutant::MembersByFile),
        };
        self.log.roster().members().filter(|_| !by_file).unwrap_or(&self.settings.members)
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
        let own = self.log.roster().cluster();
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
        let roster = self.log.roster();
        let as_of = roster.members_since();
        let decided = roster.members().is_some() && as_of <= self.commit && !self.is_blank();
        // A log that goes further than this one may know better.
        let removed = decided && !self.is_member(from) && theirs <= self.log.last();
        if let (true, Some(ask)) = (removed, asked) {
            let last = self.log.last();
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
        let belonged = !self.is_blank() && self.log.roster().members().is_some();
        let asked = self.has_asked(from, ask) || mutant::is_on(Mutant::TurnedAwayUnasked);
        let news = belonged && asked && theirs >= self.log.last();
        let now = self.mono();
        if let Role::Seeking(seeking) = &mut self.role
            && news
        {
            seeking.removed.get_or_insert((now, as_of)).1 = as_of;
        }
    }

    pub(in crate::protocol) fn settle_removed(&mut self) {
        let Role::Seeking(seeking) = &self.role else {
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
        let cluster = self.log.roster().cluster();
        let same = Arc::ptr_eq(&self.known_members, self.members()) || self.known_members == *self.members();
        if same && self.known_cluster == cluster {
            return;
        }
        self.known_cluster = cluster;
        let members = self.members().clone();
        self.known_members = members.clone();
        let others: Vec<NodeId> = self.others().collect();
        self.peers.keep(&others);
        let (now, next) = (self.mono(), self.log.last().index + 1);
        match &mut self.role {
            Role::Leading(leading) => {
                for gone in leading.progress.keys().filter(|node| !others.contains(node)) {
                    leading.ballots.forget(*gone);
                }
                leading.progress.retain(|node, _| others.contains(node));
                for node in &others {
                    leading.progress.entry(*node).or_insert_with(|| Progress::new(next, now));
                }
            }
            Role::Seeking(seeking) => seeking.known.retain(|node, _| others.contains(node)),
            Role::Following(_) => {}
        }
        self.out.push(Output::Members { cluster, members });
    }
}
