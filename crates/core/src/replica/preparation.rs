//! Works out the state that results from another node's state transfer. This is pure, and takes time in proportion to the data (P49).

use super::feed::{self, Draft};
use crate::protocol::{SnapshotMeta, Taking};
use crate::store::{Difference, Key, Merged, Store, Unreadable};
use crate::types::{Digest, Index, Position, Record};

/// The entries that one state has and another lacks, with the sender's position, chain and digest.
#[derive(Clone, Debug)]
pub struct StateTransfer {
    pub meta: SnapshotMeta,
    /// The index of the newest restore or merge. Snapshots are numbered from there.
    pub origin: Index,
    /// The checksum that the log goes on from.
    pub chain: u32,
    pub digest: Digest,
    pub difference: Difference,
}

/// A state, and a transfer from another node. The result of the two is still to be worked out (P49).
#[derive(Clone, Debug)]
pub struct Preparation {
    pub(super) state: Store,
    /// The records that are committed before an override takes place.
    pub(super) records: Vec<Record>,
    pub(super) transfer: Box<StateTransfer>,
    pub(super) taking: Taking,
}

/// The result of a preparation.
#[derive(Clone, Debug)]
pub struct Prepared {
    pub(super) outcome: Result<NewState, Unreadable>,
}

#[derive(Clone, Debug)]
pub(super) struct NewState {
    pub store: Store,
    /// Each entry that has changed, for the next snapshot, and the feed events of these changes.
    pub changes: Vec<Key>,
    pub told: Vec<Draft>,
    /// The number of entries that a merge added to the journal, and the journal's size after the merge.
    pub conflicts: usize,
    pub journal: ConflictSizes,
    /// The index from which the sender numbers snapshots, the checksum that its log goes on from, and its state's digest.
    pub origin: Index,
    pub chain: u32,
    pub digest: Digest,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ConflictSizes {
    pub entries: usize,
    pub bytes: usize,
}

impl Preparation {
    /// Runs in parallel to the replica. It takes everything that it needs with it and reads no clock, so the result
    /// does not depend on when it runs.
    pub fn run(self) -> Prepared {
        let Preparation { state, records, transfer, taking } = self;
        let outcome = match taking {
            Taking::Merge { own, theirs, meta } => state
                .merged(&own, &transfer.difference, &theirs, meta.at, meta.stamp)
                .map(|merged| NewState::of(&state, merged, &transfer)),
            Taking::Override(meta) => after(&state, &records).and_then(|before| {
                let (store, changes) = before.overridden(&transfer.difference, meta.at, meta.stamp)?;
                Ok(NewState::of(
                    &before,
                    Merged { store, changes, conflicts: 0, ended: Vec::new() },
                    &transfer,
                ))
            }),
        };
        Prepared { outcome }
    }

    /// The position of the resulting state, as things are now.
    pub fn at(&self) -> Position {
        match &self.taking {
            Taking::Merge { meta, .. } | Taking::Override(meta) => meta.at,
        }
    }
}

impl Prepared {
    /// Whether the result can be read, and does not contradict the digest that its sender names. A merge makes a new state, for which no
    /// digest is known.
    pub(super) fn is_sound(&self, overrides: bool) -> bool {
        let as_told = |outcome: &NewState| !outcome.digest.contradicts(Digest::new(outcome.store.digest()));
        self.outcome.as_ref().is_ok_and(|outcome| !overrides || as_told(outcome))
    }
}

fn after(state: &Store, records: &[Record]) -> Result<Store, Unreadable> {
    let mut state = state.clone();
    for record in records {
        state.apply(record)?;
    }
    Ok(state)
}

impl NewState {
    fn of(before: &Store, merged: Merged, transfer: &StateTransfer) -> NewState {
        let Merged { store, changes, conflicts, ended } = merged;
        let told = feed::of_merge(&store, before, &changes, &ended);
        let journal = ConflictSizes { entries: store.conflict_count(), bytes: store.conflict_bytes() };
        let StateTransfer { origin, chain, digest, .. } = *transfer;
        NewState { store, changes, told, conflicts, journal, origin, chain, digest }
    }
}
