//! Who belongs to the cluster changes by a record, one change at a time (P43).

use super::messages::{MemberChange, MembersRefusal, Proposal, Refusal, Verdict};
use super::mutant::{self, Mutant};
use super::node::{Leader, Node};
use super::peers::Peer;
use super::quorum::majority;
use crate::types::{Entry, Incarnation, Index, Member, Members, NodeId, RequestId, Text};

/// A cluster of more is slow to agree, and nobody has tried one.
const MEMBERS_MOST: usize = 101;

/// So many records behind what is committed a node has caught up: the rest is on its way.
const CAUGHT_UP: Index = 100;

impl Node {
    pub(in crate::protocol) fn on_change_members(&mut self, request: RequestId, change: &MemberChange) {
        let Some(leader) = self.as_open_leader() else {
            let leader = self.leader();
            return self.verdict(request, Verdict::Refused(Refusal::NotLeader { leader }));
        };
        match leader.after(change) {
            // It is so already: a call that is tried again.
            Ok(members) if members == *self.members() => self.on_read(request, self.last().index),
            Ok(members) => self.on_propose(vec![Proposal::new(request, Entry::Members { members })]),
            Err(refusal) => self.verdict(request, Verdict::Refused(Refusal::Members(refusal))),
        }
    }

    /// A disk that the log does not know, a replaced or doubtful one, takes its member's seat, and learns (P10). Where the disk before
    /// had a vote, that is a change of members. In available mode nothing is decided by counting disks.
    pub(in crate::protocol) fn let_disks_in(&mut self) {
        let unknown = self.as_changing_leader().map(Leader::unknown_disks).unwrap_or_default();
        for (node, incarnation) in unknown {
            let voted = !self.settings.is_available() && self.is_voter(node);
            if voted && !mutant::is_on(Mutant::LetInWithItsVote) {
                if !self.as_leader().is_some_and(Leader::may_change) {
                    continue;
                }
                self.change_vote(node, false);
            }
            let before = self.log().roster().seat(node).map(|seat| seat.incarnation);
            if let Some(leading) = self.leading_mut() {
                leading.replaced.extend(before);
            }
            self.append_as_leader(Entry::Rejoin { node, incarnation });
        }
    }

    /// Whoever only learns votes from when it has caught up.
    pub(in crate::protocol) fn promote_learner(&mut self) {
        let leader = self.as_changing_leader().filter(|leader| leader.may_change());
        if let Some(learner) = leader.and_then(Leader::caught_up_learner) {
            self.change_vote(learner, true);
        }
    }

    /// A leader that may write a record of its own now. One that hands over has named the last one.
    fn as_changing_leader(&self) -> Option<Leader<'_>> {
        self.as_open_leader().filter(|leader| !self.journal.is_full() && leader.leading.handing.is_none())
    }

    fn change_vote(&mut self, node: NodeId, votes: bool) {
        let changed = |member: &Member| match member.id == node {
            true => Member { votes, ..member.clone() },
            false => member.clone(),
        };
        let members = self.members().iter().map(changed).collect();
        self.append_as_leader(Entry::Members { members });
    }
}

impl Leader<'_> {
    /// The members after a change, or why there will be no such change.
    fn after(self, change: &MemberChange) -> Result<Members, MembersRefusal> {
        if self.node.settings.is_available() && !mutant::is_on(Mutant::LogRulesSides) {
            return Err(MembersRefusal::ByFile);
        }
        if self.node.log().roster().members().is_none() {
            return Err(MembersRefusal::ByFile);
        }
        if !self.may_change() {
            return Err(MembersRefusal::UnderWay);
        }
        match change {
            MemberChange::Add { id, name, address } => self.with(*id, name, address),
            MemberChange::Remove(id) => self.without(*id),
            MemberChange::Move { id, address } => self.moved(*id, address),
        }
    }

    /// The change before is committed, and nobody can rely any more on leases that were granted under members before that: two
    /// majorities that are more than one change apart need not meet.
    fn may_change(self) -> bool {
        let roster = self.node.log().roster();
        let decided =
            roster.members_since() <= self.node.journal.commit() || mutant::is_on(Mutant::ChangesOverlap);
        let alone =
            self.older_leases_are_over(self.node.mono()) || mutant::is_on(Mutant::ChangeUnderOldLease);
        decided && alone
    }

    fn with(self, id: NodeId, name: &Text, address: &Text) -> Result<Members, MembersRefusal> {
        let members = self.node.members();
        if let Some(member) = members.iter().find(|member| member.id == id) {
            let same = member.name == *name && member.address == *address;
            return if same { Ok(members.clone()) } else { Err(MembersRefusal::IsMember) };
        }
        if members.iter().any(|member| member.name == *name) {
            return Err(MembersRefusal::NameTaken);
        }
        if members.len() >= MEMBERS_MOST {
            return Err(MembersRefusal::TooMany);
        }
        if members.iter().any(|member| member.address == *address) {
            return Err(MembersRefusal::AddressTaken);
        }
        let votes = mutant::is_on(Mutant::VotesUntaught);
        let added = Member { id, name: name.clone(), address: address.clone(), pinned: true, votes };
        let mut members: Vec<Member> = members.iter().cloned().chain([added]).collect();
        members.sort_unstable_by_key(|member| member.id);
        Ok(members.into())
    }

    fn without(self, id: NodeId) -> Result<Members, MembersRefusal> {
        if !self.node.is_member(id) {
            return Err(MembersRefusal::NotMember);
        }
        if id == self.node.me() {
            return Err(MembersRefusal::IsLeader);
        }
        self.is_carried_without(id)?;
        Ok(self.node.members().iter().filter(|member| member.id != id).cloned().collect())
    }

    fn moved(self, id: NodeId, address: &Text) -> Result<Members, MembersRefusal> {
        if !self.node.is_member(id) {
            return Err(MembersRefusal::NotMember);
        }
        if self.node.members().iter().any(|member| member.id != id && member.address == *address) {
            return Err(MembersRefusal::AddressTaken);
        }
        let there = |member: &Member| match member.id == id {
            true => Member { address: address.clone(), pinned: true, ..member.clone() },
            false => member.clone(),
        };
        Ok(self.node.members().iter().map(there).collect())
    }

    /// Of the others a majority answers. A leader that has just begun has not heard everybody yet.
    fn is_carried_without(self, id: NodeId) -> Result<(), MembersRefusal> {
        let voters: Vec<NodeId> = self.node.voters().filter(|voter| *voter != id).collect();
        let live = voters.iter().filter(|voter| self.is_live(**voter)).count();
        let young = self.node.mono() < self.leading.since + self.node.settings.timing.dead_after;
        match () {
            () if live >= majority(voters.len()) => Ok(()),
            () if young => Err(MembersRefusal::UnderWay),
            () => Err(MembersRefusal::WouldStall),
        }
    }

    /// Whether that node's vote can be had now.
    fn is_live(self, node: NodeId) -> bool {
        let (now, patience) = (self.node.mono(), self.node.settings.timing.dead_after);
        let begun = self.leading.since + patience > now;
        let heard = self.leading.progress.get(&node).is_some_and(|progress| {
            let answers = progress.answered_round > 0 && progress.answered_at + patience > now;
            // It has the record that opened this epoch, which is not older than that.
            answers || (begun && progress.matched >= self.leading.open_index)
        });
        node == self.node.me() || (heard && self.node.peer_counts(node) && !self.node.peers.is_refused(node))
    }

    /// Its disk holds the record that has let it in, so that it would give promises. In a young log it is near the end with nothing
    /// on its disk.
    fn is_seated(self, id: NodeId, peer: &Peer) -> bool {
        let seat = self.node.log().roster().seat(id).filter(|seat| seat.incarnation == peer.incarnation);
        let matched = self.leading.progress.get(&id).map_or(0, |progress| progress.matched);
        seat.is_some_and(|seat| matched >= seat.since || mutant::is_on(Mutant::VotesUnseated))
    }

    /// The disks that answer, this node's included, and that the log does not know.
    fn unknown_disks(self) -> Vec<(NodeId, Incarnation)> {
        let (node, now, fresh) = (self.node, self.node.mono(), self.node.fresh());
        let answered = self
            .leading
            .progress
            .iter()
            .filter(|(_, progress)| progress.answered_round > 0 && progress.answered_at + fresh >= now);
        let others = answered.filter_map(|(id, _)| Some((*id, node.peers.get(*id)?.incarnation)));
        let all = others.chain([(node.me(), node.incarnation)]);
        all.filter(|(id, incarnation)| self.may_be_let_in(*id, *incarnation)).collect()
    }

    /// A disk that the log does not know and never has known. One that says that it was let in though another has its seat has
    /// been replaced, and so has one that the log has known: a disk is let in once (P10).
    fn may_be_let_in(self, id: NodeId, incarnation: Incarnation) -> bool {
        let (node, roster) = (self.node, self.node.log().roster());
        let counted = node.peers.get(id).is_some_and(|peer| peer.admitted);
        let taken = counted && roster.seat(id).is_some() && !node.settings.is_available();
        let again = self.leading.replaced.contains(&incarnation);
        !roster.knows(id, incarnation) && (!(taken || again) || mutant::is_on(Mutant::ReplacedIsLetIn))
    }

    fn caught_up_learner(self) -> Option<NodeId> {
        let node = self.node;
        let caught_up = |id: &NodeId| {
            let near = self.leading.progress.get(id).is_some_and(|progress| {
                let answers = progress.answered_at + node.fresh() >= node.mono();
                answers && !progress.full && progress.matched + CAUGHT_UP >= node.journal.commit()
            });
            near && node.peers.get(*id).is_some_and(|peer| self.is_seated(*id, peer))
        };
        node.members().iter().filter(|member| !member.votes).map(|member| member.id).find(caught_up)
    }
}
