//! Available mode: logs go different ways. What one has and another lacks, and how an epoch is never written twice (P31, P36).

use std::collections::BTreeSet;

use super::Core;
use crate::protocol::mutant::{self, Mutant};
use crate::types::{BEGINNING, NodeId, Span, Vector};

impl Core {
    /// What this log includes. Empty in safe mode, where nobody asks.
    pub fn own_vector(&self) -> Vector {
        self.vector_to_send().unwrap_or_default()
    }

    /// The vector to send along: none in safe mode.
    pub fn vector_to_send(&self) -> Option<Vector> {
        self.log().vector().cloned()
    }

    /// Whether one of two logs includes the other: only then may their nodes elect one another (P31).
    pub fn is_of_one_history(&self, other: Option<&Vector>) -> bool {
        match (self.log().vector(), other) {
            (Some(own), Some(other)) => own.includes(other) || other.includes(own),
            _ => true,
        }
    }

    /// Whether a leader whose log includes that much has everything of this node.
    pub fn is_included_in(&self, has: Option<&Vector>) -> bool {
        match (self.log().vector(), has) {
            (Some(own), Some(has)) => has.includes(own) || joins_anybody(),
            (None, _) => true,
            (Some(_), None) => false,
        }
    }
}

fn joins_anybody() -> bool {
    mutant::is_on(Mutant::JoinUncovered) || mutant::is_on(Mutant::CutInAvailable)
}

// No epoch is written twice, though no majority is asked for one (P36).
impl Core {
    /// A disk that may have forgotten epochs of its own draws its counter at random, far from every other: so no epoch is
    /// ever written twice (P36). One that forms the cluster together with all others has nothing to forget. Being let in by
    /// others does not help: its epochs may be known on another side, or to clients, as revisions.
    pub fn lonely_jump(&self, expected: &BTreeSet<NodeId>) -> u64 {
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
    pub fn note_beginning(&mut self) {
        if self.settings.is_available() && !self.is_blank() {
            self.journal.note_admitted();
        }
    }
}

// Merges take their time.
impl Core {
    /// How long the service may stay down for a coordinator that has died.
    pub fn merge_hold(&self) -> Span {
        self.settings.timing.window.times(2)
    }

    /// What a merge may take the first time, holding the service: a gigabyte has arrived by then where links are as they should be.
    pub fn merge_patience(&self) -> Span {
        self.settings.timing.window.times(30)
    }
}
