//! Adding a whole document to a state, as an operator may ask for: the seed's union. Nobody knows what the two had in common, so
//! what is there stays, what is not is added, and what says something else goes to the journal.

use super::key::Key;
use super::merge::Lost;
use super::state::Store;
use crate::types::{Position, Stamp};

impl Store {
    pub(super) fn unite(&mut self, with: &Store, at: Position, stamp: Stamp, changes: &mut Vec<Key>) {
        let mut lost = Vec::new();
        for key in with.keys() {
            let Some(theirs) = with.row(&key) else { continue };
            match (self.row(&key), &theirs.value) {
                (None, Some(value)) => self.write(&key, at, value, changes),
                (Some(ours), value) if ours.value != *value => {
                    lost.push(Lost { key, lost: theirs, kept: ours })
                }
                _ => {}
            }
        }
        self.write_journal(lost, at, stamp.wall, changes);
    }
}
