//! Available mode: logs diverge. These rules say what one log has and another lacks, and keep an epoch from being written twice (P31, P36).

use std::collections::BTreeSet;

use super::Core;
use crate::protocol::mutant::{self, Mutant};
use crate::types::{BEGINNING, NodeId, Span, Vector};

impl Core {
    /// The vector of this log, which says what the log includes. Empty in safe mode, where it is not used.
    pub fn own_vector(&self) -> Vector {
        self.vector_to_send().unwrap_or_default()
    }

    /// The vector that a message carries; there is none in safe mode.
    pub fn vector_to_send(&self) -> Option<Vector> {
        self.log().vector().cloned()
    }

    /// Whether one of two logs includes the other: only then may their nodes elect each other (P31).
    pub fn is_of_one_history(&self, other: Option<&Vector>) -> bool {
        match (self.log().vector(), other) {
            (Some(own), Some(other)) => own.includes(other) || other.includes(own),
            _ => true,
        }
    }

    /// Whether the leader's log, as described by `has`, includes all of this log.
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

// No epoch is written twice, although no majority is asked for an epoch (P36).
impl Core {
    /// A disk that may have forgotten its own epochs draws its counter at random, far from every other counter: so no epoch is
    /// ever written twice (P36). A disk that forms the cluster together with all other nodes has nothing to forget. Admission by
    /// other nodes does not help: the disk's old epochs may be known on another side, or to clients, as revisions.
    pub fn lonely_jump(&self, expected: &BTreeSet<NodeId>) -> u64 {
        /// Each jump is at most 2^44: five hundred of them fit below 2^53, up to which every JSON reader is exact.
        const BEGINNINGS: u64 = 1 << 24;
        let together = self.is_blank() && expected.len() + 1 == self.members().len();
        match () {
            () if !self.settings.is_available() || together => 0,
            () if mutant::is_on(Mutant::LonelyCounterPlain) => 0,
            () if !self.journal.vote().admitted => BEGINNING * (1 + self.boot.0 % BEGINNINGS),
            () => self.step_aside(),
        }
    }

    /// The gap that a disk which may have forgotten its epochs leaves before a later claim: it may have led in the counter after
    /// one that other nodes have reached. If it goes on from its own promise, it knows its epochs and needs no gap. The gap is
    /// small next to a beginning: 2^34 gaps fit below 2^53.
    fn step_aside(&self) -> u64 {
        const STEPS: u64 = BEGINNING / 2;
        let roster = self.log().roster();
        let founded = |node: NodeId| roster.seat(node).is_some_and(|seat| seat.since == 0);
        let remembers = self.members().iter().all(|member| founded(member.id));
        let own = self.promise().leader == self.me() && self.epochs.newest() <= self.promise();
        let blind = mutant::is_on(Mutant::AdmittedKnowsItsEpochs) || mutant::is_on(Mutant::NextMayBeOwn);
        if remembers || own || blind { 0 } else { 1 + (self.boot.0 >> 24) % STEPS }
    }

    /// From its first claim on, this disk knows every epoch that it may have led. That fact is stored with the promise of that
    /// claim.
    pub fn note_beginning(&mut self) {
        if self.settings.is_available() && !self.is_blank() {
            self.journal.note_admitted();
        }
    }
}

// The times that a merge may take.
impl Core {
    /// The time for which the service may stay down if the leader that merges dies.
    pub fn merge_hold(&self) -> Span {
        self.settings.timing.window.times(2)
    }

    /// The time that a first merge attempt may take while it holds the service: over a sound link a gigabyte arrives within this time.
    pub fn merge_patience(&self) -> Span {
        self.settings.timing.window.times(30)
    }
}
