//! Available mode: electing without a majority (P31), who belongs to which side (P32), and what only sides need is forgotten once every disk
//! has had everything (P35).

use std::collections::BTreeSet;

use super::messages::{Message, Term};
use super::mutant::{self, Mutant};
use super::node::{Leader, Node, RoleState};
use super::progress::{Progress, Sending};
use super::roles::{Following, Known, Seeking};
use crate::types::{BEGINNING, Entry, Epoch, Index, NodeId, Position, Vector};

// Available mode: electing without a majority (P31). The lowest live index among those that hear each other
// leads them. Nothing is safe because of who was asked: what somebody misses here, a merge brings back.
impl Node {
    /// The dry run among those who can be reached: everybody has answered yes, or is known not to come along.
    pub(in crate::protocol) fn gathering_is_complete(&self, seeking: &Seeking) -> bool {
        let (now, window) = (self.mono(), self.settings.timing.window);
        let waited = now >= seeking.since + window;
        let mut others = self.others();
        if self.is_blank() && self.hears_of_a_history(seeking) {
            // It begins nothing new, it waits to be taken in.
            return false;
        }
        seeking.stands_apart || waited || others.all(|node| self.is_accounted_for(node, seeking))
    }

    fn hears_of_a_history(&self, seeking: &Seeking) -> bool {
        let (now, fresh) = (self.mono(), self.fresh());
        let mut known = self.others().filter_map(|node| seeking.answered_lately(node, now, fresh));
        known.any(|known| !known.standing.condition.is_blank())
    }

    fn is_accounted_for(&self, node: NodeId, seeking: &Seeking) -> bool {
        let (now, fresh) = (self.mono(), self.fresh());
        match seeking.answered_lately(node, now, fresh) {
            Some(known) => self.comes_along(known) || !self.is_of_one_history(known.standing.vector.as_ref()),
            None => self.is_absent(node, seeking),
        }
    }

    /// After a start, or in a cluster that was never formed, others are given time to come up.
    fn is_absent(&self, node: NodeId, seeking: &Seeking) -> bool {
        let patience = match self.is_blank() || seeking.after_start {
            true => self.settings.timing.window,
            false => self.fresh(),
        };
        let known_dead = !self.is_blank() && (self.peers.is_refused(node) || seeking.suspected == Some(node));
        known_dead || self.mono() >= seeking.since + patience
    }

    fn comes_along(&self, known: &Known) -> bool {
        known.yes && self.is_of_one_history(known.standing.vector.as_ref())
    }

    /// Whose approval a claim waits for a moment.
    pub(in crate::protocol) fn expected_voters(
        &self,
        seeking: &Seeking,
        by_certificate: bool,
    ) -> BTreeSet<NodeId> {
        let (now, fresh) = (self.mono(), self.fresh());
        let others = self.others().filter(|node| !self.peers.is_refused(*node));
        let comes = |node: &NodeId| match seeking.answered_lately(*node, now, fresh) {
            Some(known) => self.comes_along(known),
            // An heir claims without having asked: whoever may be alive is expected to answer.
            None => (seeking.as_heir || by_certificate) && seeking.suspected != Some(*node),
        };
        others.filter(comes).collect()
    }

    /// A disk that may have forgotten epochs of its own draws its counter at random, far from every other: so no epoch is
    /// ever written twice (P36). One that forms the cluster together with all others has nothing to forget. Being let in by
    /// others does not help: its epochs may be known on another side, or to clients, as revisions.
    pub(in crate::protocol) fn lonely_jump(&self, expected: &BTreeSet<NodeId>) -> u64 {
        /// Each jump stays below 2^44: five hundred of them fit below 2^53, up to which every JSON reader is exact.
        const BEGINNINGS: u64 = 1 << 24;
        let together = self.is_blank() && expected.len() + 1 == self.members().len();
        match () {
            () if !self.settings.is_available() || together => 0,
            () if mutant::is_on(Mutant::LonelyCounterPlain) => 0,
            () if !self.journal.vote().admitted => BEGINNING * (1 + self.boot.0 % BEGINNINGS),
            () => self.step_aside(),
        }
    }

    /// Later on such a disk hears of counters that others have come to, and its former life may have led in the next one. What
    /// it goes on from itself it knows. The step is small beside a beginning: 2^34 of them fit.
    fn step_aside(&self) -> u64 {
        const STEPS: u64 = BEGINNING / 2;
        let roster = self.log().roster();
        let founded = |node: NodeId| roster.seat(node).is_some_and(|seat| seat.since == 0);
        let remembers = self.members().iter().all(|member| founded(member.id));
        let own = self.promise().leader == self.me() && self.epochs.newest() <= self.promise();
        let blind = mutant::is_on(Mutant::AdmittedKnowsItsEpochs) || mutant::is_on(Mutant::NextMayBeOwn);
        if remembers || own || blind { 0 } else { 1 + (self.boot.0 >> 24) % STEPS }
    }

    /// From its first claim on this disk knows every epoch that it may have led. Stored with that claim's promise.
    pub(in crate::protocol) fn note_beginning(&mut self) {
        if self.settings.is_available() && !self.is_blank() {
            self.journal.note_admitted();
        }
    }
}

// Available mode: who belongs to which side (P32). A side is one leader and the nodes that follow its epoch.
// A node joins a side only if the leader's log includes all of its own. So no record is ever cut, whichever sides meet, and late or repeated
// messages do no harm.
impl Node {
    /// What this log includes. Empty in safe mode, where nobody asks.
    pub(in crate::protocol) fn own_vector(&self) -> Vector {
        self.log().vector().cloned().unwrap_or_default()
    }

    /// The vector to send along: none in safe mode.
    pub(in crate::protocol) fn vector_to_send(&self) -> Option<Vector> {
        self.log().vector().cloned()
    }

    /// Whether one of two logs includes the other: only then may their nodes elect one another (P31).
    pub(in crate::protocol) fn is_of_one_history(&self, other: Option<&Vector>) -> bool {
        match (self.log().vector(), other) {
            (Some(own), Some(other)) => own.includes(other) || other.includes(own),
            _ => true,
        }
    }

    /// Whether a leader whose log includes that much has everything of this node.
    pub(in crate::protocol) fn is_included_in(&self, has: Option<&Vector>) -> bool {
        match (self.log().vector(), has) {
            (Some(own), Some(has)) => has.includes(own) || joins_anybody(),
            (None, _) => true,
            (Some(_), None) => false,
        }
    }

    /// One that has approved a claim does not follow yet: the candidate may have opened without what is here.
    fn follows(&self, term: Term) -> bool {
        let epoch = |following: &Following| following.tentative.is_none().then_some(following.epoch);
        matches!(&self.role, RoleState::Following(following) if epoch(following) == Some(term.epoch))
            && self.journal.promise() == term
    }

    /// Whether this node belongs to the side of `term`'s leader, or changes over to it (P32). Safe mode knows no sides.
    pub(in crate::protocol) fn joins(&mut self, leader: NodeId, term: Term, has: Option<&Vector>) -> bool {
        if !self.settings.is_available() || self.follows(term) {
            return true;
        }
        let included = self.is_included_in(has);
        if let (RoleState::Seeking(seeking), Some(_), false) = (&mut self.role, has, included) {
            // There is a leader, and it lacks something that is here: this node is a side of its own.
            seeking.stands_apart = true;
        }
        let joins = included && self.would_change_over(leader);
        if !joins {
            self.say_side(leader);
        }
        joins
    }

    /// One goes from a younger leader to an elder, never back: so two sides do not exchange their nodes.
    fn would_change_over(&self, leader: NodeId) -> bool {
        match &self.role {
            RoleState::Seeking(seeking) => seeking.claim.is_none() || leader < self.me(),
            RoleState::Following(following) => following.tentative.is_some() || leader <= following.leader,
            RoleState::Leading(_) => leader < self.me(),
        }
    }

    /// A leader that knows that nothing comes of a merge with that side does not answer it, so that the other one, too, stops
    /// holding its service for it (P48).
    pub(in crate::protocol) fn say_side(&mut self, to: NodeId) {
        if self.leading().is_some() && !self.impasses.may_try(to, self.mono()) {
            return;
        }
        let leader = match &self.role {
            RoleState::Following(following) if following.tentative.is_none() => Some(following.leader),
            RoleState::Leading(_) => Some(self.me()),
            RoleState::Following(_) | RoleState::Seeking(_) => None,
        };
        let side = Message::Side { epoch: self.promise(), leader, vector: self.own_vector() };
        self.send(to, side);
    }

    pub(in crate::protocol) fn on_poll(&mut self, from: NodeId, term: Term) {
        if term.epoch.leader == from && !self.follows(term) {
            self.say_side(from);
        }
    }

    /// A node that this leader took for its own, or looked for, is on another side.
    pub(in crate::protocol) fn on_side(
        &mut self,
        from: NodeId,
        epoch: Epoch,
        leader: Option<NodeId>,
        vector: &Vector,
    ) {
        self.epochs.hear_of(epoch);
        let me = self.me();
        let Some(leading) = self.leading_mut() else {
            return;
        };
        if leader == Some(me) && epoch == leading.term.epoch {
            // It follows: what it answers came from an earlier epoch.
            return;
        }
        if let Some(progress) = leading.progress.get_mut(&from) {
            progress.leave();
        }
        if leader == Some(from) {
            self.meet_if_elder(from, vector);
        }
    }

    /// The seed's question to everybody who is not of this side: do you lead, too?
    pub(in crate::protocol) fn poll_if_due(&mut self) {
        let (now, poll) = (self.mono(), self.settings.timing.poll);
        let Some(vector) = self.vector_to_send() else {
            return;
        };
        let Some(leading) = self.leading_mut().filter(|leading| now >= leading.next_poll) else {
            return;
        };
        leading.next_poll = now + poll;
        let term = leading.term;
        let outside = leading.progress.iter().filter(|(_, progress)| !progress.joined);
        let outside: Vec<NodeId> = outside.map(|(node, _)| *node).collect();
        for node in outside {
            self.send(node, Message::Poll { term, vector: vector.clone() });
        }
    }

    /// These have approved, or followed until now: writes wait for them from the beginning (P37).
    pub(in crate::protocol) fn count_on(&mut self, followers: &[NodeId]) {
        if let Some(leading) = self.leading_mut() {
            let progress = leading.progress.iter_mut().filter(|(node, _)| followers.contains(node));
            progress.for_each(|(_, progress)| (progress.joined, progress.kept_up) = (true, true));
        }
    }

    /// Nothing has been committed for too long: whoever holds it up is not waited for any longer (P37). Says whether
    /// that was it; if not, it is this node's own disk.
    pub(in crate::protocol) fn leave_laggards_behind(&mut self) -> bool {
        let (now, commit, own) = (self.mono(), self.journal.commit(), self.journal.disk().upto());
        let Some(leading) = self.leading_mut().filter(|_| own > commit) else {
            return false;
        };
        leading.behind_since = Some(now);
        let laggards = leading.progress.values_mut().filter(|progress| progress.matched <= commit);
        laggards.for_each(|progress| (progress.joined, progress.kept_up) = (false, false));
        true
    }
}

impl Leader<'_> {
    /// Those who follow, as far as the leader knows.
    pub(in crate::protocol) fn joined(self) -> Vec<NodeId> {
        let joined = self.leading.progress.iter().filter(|(_, progress)| progress.joined);
        joined.map(|(node, _)| *node).collect()
    }

    /// The least of what this node and every follower in step have reached (P37): what a majority is in safe mode.
    pub(in crate::protocol) fn reached_by_side<T: Ord + Copy>(
        self,
        own: T,
        of: impl Fn(&Progress) -> T,
    ) -> Option<T> {
        let in_step =
            self.leading.progress.iter().filter(|(node, progress)| self.is_in_step(**node, progress));
        in_step.map(|(_, progress)| of(progress)).chain([own]).min()
    }

    /// A follower whose acknowledgement writes wait for.
    fn is_in_step(self, node: NodeId, progress: &Progress) -> bool {
        let heard = progress.answered_at.max(self.leading.since);
        let patience = self.node.settings.timing.dead_after;
        let alive = heard + patience > self.node.mono() && !self.node.peers.is_refused(node);
        let slow = progress.kept_up && !mutant::is_on(Mutant::SlowIsOutOfStep);
        let in_step = progress.joined && (progress.mode == Sending::Stream || slow) && !progress.full;
        alive && in_step && !mutant::is_on(Mutant::AckAlone)
    }

    /// What every node of the topology, as this leader knows, has on disk. None, until each has followed since the newest of
    /// their processes spoke first: what was on their disks then, this leader has (P35).
    fn reached_by_everybody(self) -> Option<Index> {
        let unasked = mutant::is_on(Mutant::SettleWithoutAll);
        let since = self.leading.new_process_at;
        let followed =
            |progress: &Progress| progress.answered_sent > since || mutant::is_on(Mutant::SettleOverReplaced);
        let asked = self.leading.progress.values().filter(|progress| progress.joined || !unasked);
        let all = asked.clone().all(|progress| progress.joined && followed(progress));
        let matched = asked.map(|progress| progress.matched);
        let least = matched.chain([self.node.journal.disk().upto(), self.node.journal.commit()]).min()?;
        all.then_some(least)
    }
}

fn joins_anybody() -> bool {
    mutant::is_on(Mutant::JoinUncovered) || mutant::is_on(Mutant::CutInAvailable)
}

/// Records between two of these: what stays to be told apart in a cluster that is whole.
const EVERY: Index = 1024;

// Available mode: a cluster forgets its tombstones and rivals once every disk has had everything (P35).
impl Node {
    /// Where every node of the topology is known to hold everything up to a record of this epoch, no other history can have
    /// begun below it: the epochs there need no names any more.
    pub(in crate::protocol) fn settle_histories(&mut self) {
        let Some(upto) = self.as_open_leader().and_then(Leader::to_be_settled) else {
            return;
        };
        if let Some(leading) = self.leading_mut() {
            leading.settled = upto.index;
        }
        if !mutant::is_on(Mutant::NeverSettle) {
            self.append_as_leader(Entry::Settled { upto });
            let by = self.last();
            if let Some(leading) = self.leading_mut().filter(|_| !mutant::is_on(Mutant::MergeOverSettled)) {
                leading.merges.since = by;
            }
        }
    }
}

impl Node {
    /// Another process speaks for a follower, with a disk that may have forgotten something: nothing is settled before all have
    /// followed anew.
    pub(in crate::protocol) fn note_new_process(&mut self, replaced: bool) {
        let now = self.mono();
        let counts = replaced || !mutant::is_on(Mutant::SettleOverCopies);
        if let Some(leading) = self.leading_mut().filter(|_| counts) {
            leading.new_process_at = now;
        }
    }
}

impl Leader<'_> {
    fn to_be_settled(self) -> Option<Position> {
        let (node, leading) = (self.node, self.leading);
        let upto = self.reached_by_everybody()?;
        let quiet = !leading.is_meeting() && !node.journal.is_full();
        let due = node.log().vector()?.len() > 1 || upto >= leading.settled + EVERY;
        if !quiet || !due || upto < leading.open_index || upto <= leading.settled {
            return None;
        }
        node.log().position(upto).filter(|position| position.epoch == leading.term.epoch)
    }
}
