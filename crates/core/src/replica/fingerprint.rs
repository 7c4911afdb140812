//! Which replicas go on alike, for whoever explores all that can become of them.

use std::hash::{Hash, Hasher};

use super::state::Replica;

impl Replica {
    /// Hashes what decides what comes next, between two inputs: the core, the states that calls are judged by and answered
    /// from, and who waits for which verdict. Left out is what only shows: since when there is a leader, and whether the
    /// feed was told of an election.
    ///
    /// Leases, waits for roles, restores and snapshots are not in it either. Where there are none, two replicas of the same
    /// settings and the same print do the same for the same input.
    pub fn fingerprint(&self, state: &mut impl Hasher) {
        self.core.hash(state);
        self.has_ended().hash(state);
        self.versions.fingerprint(state);
        self.pending.fingerprint(state);
    }
}
