//! What a state comes to with what another node has sent for it: pure, and as long as there is much of it (P49).

use super::feed;
use super::io::{ConflictSizes, NewState, Preparation, Prepared, StateTransfer};
use crate::protocol::Taking;
use crate::store::{Merged, Store, Unreadable};
use crate::types::{Digest, Position, Record};

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
