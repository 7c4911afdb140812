//! Who belongs to the cluster changes by a record, one change at a time (P43).

use crate::protocol::messages::{MemberChange, MembersRefusal, Proposal, Refusal, Verdict};
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::quorum::majority;
use crate::protocol::state::{Leader, Node, Peer};
use crate::types::{Entry, Index, Member, Members, NodeId, RequestId, Text};

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
            Ok(members) if members == *self.members() => self.on_read(request, self.log.last().index),
            Ok(members) => self.on_propose(vec![Proposal::new(request, Entry::Members { members })]),
            Err(refusal) => self.verdict(request, Verdict::Refused(Refusal::Members(refusal))),
        }
    }

    /// Whoever only learns votes from when it has caught up.
    pub(in crate::protocol) fn promote_learner(&mut self) {
        let leader = self.as_open_leader().filter(|leader| !self.full && leader.leading.handing.is_none());
        let learner = leader.filter(|leader| leader.may_change()).and_then(Leader::caught_up_learner);
        let Some(learner) = learner else {
            return;
        };
        let votes =
            |member: &Member| Member { votes: member.votes || member.id == learner, ..member.clone() };
        let members = self.members().iter().map(votes).collect();
        self.append_as_leader(Entry::Members { members });
    }
}

impl Leader<'_> {
    /// The members after a change, or why there will be no such change.
    fn after(self, change: &MemberChange) -> Result<Members, MembersRefusal> {
        if self.node.settings.is_available() && !mutant::is_on(Mutant::LogRulesSides) {
            return Err(MembersRefusal::ByFile);
        }
        if self.node.log.roster().members().is_none() {
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
        let roster = self.node.log.roster();
        let decided = roster.members_since() <= self.node.commit || mutant::is_on(Mutant::ChangesOverlap);
        let alone = self.is_alone(self.node.mono()) || mutant::is_on(Mutant::ChangeUnderOldLease);
        roster.members().is_some() && decided && alone
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

    /// Its disk has been let in, and it knows: it would count at once. In a young log it is near the end with nothing on its disk.
    fn is_seated(self, id: NodeId, peer: &Peer) -> bool {
        let roster = self.node.log.roster();
        let seat = roster.seat(id).filter(|_| roster.counts(id, peer.incarnation, self.node.commit));
        let matched = self.leading.progress.get(&id).map_or(0, |progress| progress.matched);
        let knows = seat.is_some_and(|seat| peer.admitted && matched >= seat.since);
        knows || (seat.is_some() && mutant::is_on(Mutant::VotesUnseated))
    }

    fn caught_up_learner(self) -> Option<NodeId> {
        let node = self.node;
        let caught_up = |id: &NodeId| {
            let near = self.leading.progress.get(id).is_some_and(|progress| {
                let answers = progress.answered_at + node.fresh() >= node.mono();
                answers && !progress.full && progress.matched + CAUGHT_UP >= node.commit
            });
            near && node.peers.get(*id).is_some_and(|peer| self.is_seated(*id, peer))
        };
        node.members().iter().filter(|member| !member.votes).map(|member| member.id).find(caught_up)
    }
}
