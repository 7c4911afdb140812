//! Available mode: electing without a majority (P31). The lowest live index among those that hear each other
//! leads them. Nothing is safe because of who was asked: what somebody misses here, a merge brings back.

use std::collections::BTreeSet;

use crate::protocol::mutant::{self, Mutant};
use crate::protocol::state::{Known, Node, Seeking};
use crate::types::{BEGINNING, NodeId};

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
            () if !self.vote.admitted => BEGINNING * (1 + self.boot.0 % BEGINNINGS),
            () => self.step_aside(),
        }
    }

    /// Later on such a disk hears of counters that others have come to, and its former life may have led in the next one. What
    /// it goes on from itself it knows. The step is small beside a beginning: 2^34 of them fit.
    fn step_aside(&self) -> u64 {
        const STEPS: u64 = BEGINNING / 2;
        let roster = self.log.roster();
        let founded = |node: NodeId| roster.seat(node).is_some_and(|seat| seat.since == 0);
        let remembers = self.members().iter().all(|member| founded(member.id));
        let own = self.promise().leader == self.me() && self.seen <= self.promise();
        let blind = mutant::is_on(Mutant::AdmittedKnowsItsEpochs) || mutant::is_on(Mutant::NextMayBeOwn);
        if remembers || own || blind { 0 } else { 1 + (self.boot.0 >> 24) % STEPS }
    }

    /// From its first claim on this disk knows every epoch that it may have led. Stored with that claim's promise.
    pub(in crate::protocol) fn note_beginning(&mut self) {
        let formed = !self.is_blank();
        self.vote.admitted |= self.settings.is_available() && formed;
    }
}
