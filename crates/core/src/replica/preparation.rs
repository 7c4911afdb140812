//! What a state comes to with what another node has sent for it: pure, and as long as there is much of it (P49).

use super::feed::{self, Draft};
use crate::protocol::{SnapshotMeta, Taking};
use crate::store::{Difference, Key, Merged, Store, Unreadable};
use crate::types::{Digest, Index, Position, Record};

/// What one state has and another lacks, and what the sender's state is with it.
#[derive(Clone, Debug)]
pub struct StateTransfer {
    pub meta: SnapshotMeta,
    /// The index of the newest override: snapshots are numbered from there.
    pub origin: Index,
    /// The checksum that the log goes on from.
    pub chain: u32,
    pub digest: Digest,
    pub difference: Difference,
}

/// A state, and what has come from another node for it: what the two come to is still to be worked out (P49).
#[derive(Clone, Debug)]
pub struct Preparation {
    pub(super) state: Store,
    /// What is committed before an override takes place.
    pub(super) records: Vec<Record>,
    pub(super) transfer: Box<StateTransfer>,
    pub(super) taking: Taking,
}

/// What a preparation came to.
#[derive(Clone, Debug)]
pub struct Prepared {
    pub(super) outcome: Result<NewState, Unreadable>,
}

#[derive(Clone, Debug)]
pub(super) struct NewState {
    pub store: Store,
    /// Each entry that is not as it was, for the next snapshot, and what readers are told of them.
    pub changes: Vec<Key>,
    pub told: Vec<Draft>,
    /// How many values a merge overrode that nobody had seen together before, and what the journal then has.
    pub conflicts: usize,
    pub journal: ConflictSizes,
    /// Where the sender's snapshots are numbered from, the checksum that its log goes on from, and its state's digest.
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

    /// Where the state will stand, as things are.
    pub fn at(&self) -> Position {
        match &self.taking {
            Taking::Merge { meta, .. } | Taking::Override(meta) => meta.at,
        }
    }
}

impl Prepared {
    /// Whether it can be read, and has become what its sender says of it. A merge is nobody's state yet, and says nothing.
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
