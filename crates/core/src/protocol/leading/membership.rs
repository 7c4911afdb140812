//! The members of the cluster change by a record, one change at a time (P43).

use super::Leading;
use crate::protocol::core::Core;
use crate::protocol::messages::{MemberChange, MembersRefusal, Proposal, Refusal};
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::peers::Peer;
use crate::protocol::progress::Progress;
use crate::protocol::quorum::majority;
use crate::types::{Entry, Incarnation, Index, Member, Members, NodeId, RequestId, Text};

/// A larger cluster is slow to agree, and has not been tried.
const MEMBERS_MOST: usize = 101;

/// A node that is at most this many records behind the commit index has caught up: the rest is in flight.
const CAUGHT_UP: Index = 100;

impl Leading {
    pub fn on_change_members(&mut self, core: &mut Core, request: RequestId, change: &MemberChange) {
        if !self.opened {
            return core.refuse(request, Refusal::NotLeader { leader: None });
        }
        match self.after(core, change) {
            // The change is in place already: the call is a retry. Its answer waits until this leader is confirmed and the
            // whole log is committed, the change included (P14).
            Ok(members) if members == *core.members() => {
                let last = core.last().index;
                self.on_read(core, request, last);
            }
            Ok(members) => self.on_propose(core, vec![Proposal::new(request, Entry::Members { members })]),
            Err(refusal) => core.refuse(request, Refusal::Members(refusal)),
        }
    }

    /// A disk that the log does not know, because it is a replacement or was doubtful, takes its member's place in the roster as
    /// a learner (P10). If the disk before it had a vote, a change of members takes that vote away first. In available mode no
    /// decision counts disks.
    pub(super) fn let_disks_in(&mut self, core: &mut Core) {
        if !self.may_write(core) {
            return;
        }
        for (node, incarnation) in self.unknown_disks(core) {
            let voted = !core.settings.is_available() && core.is_voter(node);
            if voted && !mutant::is_on(Mutant::LetInWithItsVote) {
                if !self.may_change(core) {
                    continue;
                }
                // The disk comes back without the vote. If it had the vote at once, a deposed leader and this
                // empty disk could commit the record that lets it in, and then anything (P10,
                // `Mutant::LetInWithItsVote`).
                self.change_vote(core, node, false);
            }
            let before = core.log().roster().seat(node).map(|seat| seat.incarnation);
            self.replaced.extend(before);
            self.append(core, Entry::Rejoin { node, incarnation });
        }
    }

    /// A learner gets its vote once it has caught up. With an earlier vote it would be one of the voters, and could hold up every
    /// commit (P43, `Mutant::VotesUntaught`).
    pub(super) fn promote_learner(&mut self, core: &mut Core) {
        if !self.may_write(core) || !self.may_change(core) {
            return;
        }
        if let Some(learner) = self.caught_up_learner(core) {
            self.change_vote(core, learner, true);
        }
    }

    fn change_vote(&mut self, core: &mut Core, node: NodeId, votes: bool) {
        let changed = |member: &Member| match member.id == node {
            true => Member { votes, ..member.clone() },
            false => member.clone(),
        };
        let members = core.members().iter().map(changed).collect();
        self.append(core, Entry::Members { members });
    }
}

impl Leading {
    /// The members after a change, or the reason why the change is refused. The general reasons come first:
    /// until the change before is decided, even a retry hears `UnderWay`.
    fn after(&self, core: &Core, change: &MemberChange) -> Result<Members, MembersRefusal> {
        if core.settings.is_available() && !mutant::is_on(Mutant::LogRulesSides) {
            return Err(MembersRefusal::ByFile);
        }
        if core.log().roster().members().is_none() {
            return Err(MembersRefusal::ByFile);
        }
        if !self.may_change(core) {
            return Err(MembersRefusal::UnderWay);
        }
        match change {
            MemberChange::Add { id, name, address } => self.with(core, *id, name, address),
            MemberChange::Remove(id) => self.without(core, *id),
            MemberChange::Move { id, address } => self.moved(core, *id, address),
        }
    }

    /// The previous change is committed, and no leader can rely any more on leases that were granted under the members before it: two
    /// majorities that are more than one change apart need not meet.
    fn may_change(&self, core: &Core) -> bool {
        let roster = core.log().roster();
        let decided =
            roster.members_since() <= core.journal.commit() || mutant::is_on(Mutant::ChangesOverlap);
        let alone = self.older_leases_are_over(core.mono()) || mutant::is_on(Mutant::ChangeUnderOldLease);
        decided && alone
    }

    fn with(&self, core: &Core, id: NodeId, name: &Text, address: &Text) -> Result<Members, MembersRefusal> {
        let members = core.members();
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

    fn without(&self, core: &Core, id: NodeId) -> Result<Members, MembersRefusal> {
        if !core.is_member(id) {
            return Err(MembersRefusal::NotMember);
        }
        if id == core.me() {
            return Err(MembersRefusal::IsLeader);
        }
        self.is_carried_without(core, id)?;
        Ok(core.members().iter().filter(|member| member.id != id).cloned().collect())
    }

    fn moved(&self, core: &Core, id: NodeId, address: &Text) -> Result<Members, MembersRefusal> {
        if !core.is_member(id) {
            return Err(MembersRefusal::NotMember);
        }
        if core.members().iter().any(|member| member.id != id && member.address == *address) {
            return Err(MembersRefusal::AddressTaken);
        }
        let there = |member: &Member| match member.id == id {
            true => Member { address: address.clone(), pinned: true, ..member.clone() },
            false => member.clone(),
        };
        Ok(core.members().iter().map(there).collect())
    }

    /// Whether a majority of the voters without that node answers. A leader that has just begun has not heard all of them yet.
    fn is_carried_without(&self, core: &Core, id: NodeId) -> Result<(), MembersRefusal> {
        let voters: Vec<NodeId> = core.voters().filter(|voter| *voter != id).collect();
        let live = voters.iter().filter(|voter| self.is_live(core, **voter)).count();
        let young = core.mono() < self.since + core.settings.timing.dead_after;
        match () {
            () if live >= majority(voters.len()) => Ok(()),
            () if young => Err(MembersRefusal::UnderWay),
            () => Err(MembersRefusal::WouldStall),
        }
    }

    /// Whether that node can give its vote now.
    fn is_live(&self, core: &Core, node: NodeId) -> bool {
        let (now, patience) = (core.mono(), core.settings.timing.dead_after);
        let begun = self.since + patience > now;
        let heard = self.progress.get(&node).is_some_and(|progress| {
            let answers = progress.answered_round > 0 && progress.answered_at + patience > now;
            // The node has the record that opened this epoch, and the epoch began less than `patience` ago.
            answers || (begun && progress.matched >= self.open_index)
        });
        node == core.me() || (heard && self.peer_counts(core, node) && !core.peers.is_refused(node))
    }

    /// Whether the node's disk holds the record that let it in, so that it would give promises. In a young log a node can be near
    /// the end although nothing is on its disk.
    fn is_seated(&self, core: &Core, id: NodeId, peer: &Peer) -> bool {
        let seat = core.log().roster().seat(id).filter(|seat| seat.incarnation == peer.incarnation);
        let matched = self.progress.get(&id).map_or(0, |progress| progress.matched);
        seat.is_some_and(|seat| matched >= seat.since || mutant::is_on(Mutant::VotesUnseated))
    }

    /// The disks, this node's included, that answer and that the log does not know.
    fn unknown_disks(&self, core: &Core) -> Vec<(NodeId, Incarnation)> {
        let (now, fresh) = (core.mono(), core.fresh());
        // `answered_at` may be from the disk before this one; the round is not, see `Progress::replaced`.
        let answers =
            |progress: &Progress| progress.answered_round > 0 && progress.answered_at + fresh >= now;
        let answered = self.progress.iter().filter(|(_, progress)| answers(progress));
        let others = answered.filter_map(|(id, _)| Some((*id, core.peers.get(*id)?.incarnation)));
        let all = others.chain([(core.me(), core.incarnation)]);
        all.filter(|(id, incarnation)| self.may_be_let_in(core, *id, *incarnation)).collect()
    }

    /// Whether this is a disk that the log does not know and has never known. A disk that says that it was let in has been
    /// replaced if another disk has its place in the roster. So has a disk that the log once knew: a disk is let in once (P10).
    fn may_be_let_in(&self, core: &Core, id: NodeId, incarnation: Incarnation) -> bool {
        let roster = core.log().roster();
        let counted = core.peers.get(id).is_some_and(|peer| peer.admitted);
        let taken = counted && roster.seat(id).is_some() && !core.settings.is_available();
        let again = self.replaced.contains(&incarnation);
        !roster.knows(id, incarnation) && (!(taken || again) || mutant::is_on(Mutant::ReplacedIsLetIn))
    }

    fn caught_up_learner(&self, core: &Core) -> Option<NodeId> {
        let caught_up = |id: &NodeId| {
            let near = self.progress.get(id).is_some_and(|progress| {
                let answers = progress.answered_at + core.fresh() >= core.mono();
                // A full disk acknowledges no records, so its vote would not help to commit (P24).
                answers && !progress.full && progress.matched + CAUGHT_UP >= core.journal.commit()
            });
            near && core.peers.get(*id).is_some_and(|peer| self.is_seated(core, *id, peer))
        };
        core.members().iter().filter(|member| !member.votes).map(|member| member.id).find(caught_up)
    }
}
