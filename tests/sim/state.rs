//! The state of a node as the simulator knows it, and states under way from node to node.

use std::collections::BTreeSet;
use std::sync::Arc;

use eldest::replica::Brought;
use eldest::store::Store;
use eldest::types::{Digest, Position, Vector};
use eldest_storage::Boundary;
use eldest_storage::node::{Receiving, SentDifference};

use crate::checks::Violation;
use crate::checks::history::Known;

/// The product's own state, and what only an onlooker knows of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    pub store: Store,
    /// Available mode: the records that this state really includes.
    pub known: Known,
    /// The values that have lost in a merge, here or in any history that this state includes: they must be in
    /// the journal.
    pub lost: BTreeSet<Position>,
}

impl State {
    /// The first state of a node in available mode.
    pub fn with_sides() -> State {
        State { store: Store::mergeable(), ..State::default() }
    }

    /// The first state of a node of the same kind.
    pub fn blank(&self) -> State {
        if self.store.is_mergeable() { State::with_sides() } else { State::default() }
    }
}

/// A state under way: the sender's whole state, which costs a few pointers. The receiver gets what the
/// message's `base` does not include, by way of its text, or the files of a snapshot.
#[derive(Clone, Debug)]
pub struct Transfer {
    pub state: State,
    /// The boundary behind which a log goes on.
    pub boundary: Boundary,
    /// A snapshot's files, as they are sent.
    pub files: Option<Arc<[u8]>>,
}

impl Transfer {
    /// The part that the receiver gets in addition to the message: what `base` does not include.
    pub fn part_beyond(&self, base: &Vector) -> Result<Brought, Violation> {
        let store = &self.state.store;
        let difference = store.difference(base).unwrap_or_else(|| store.whole());
        let handed = SentDifference {
            boundary: self.boundary.clone(),
            digest: Digest::new(store.digest()),
            difference,
        };
        Ok(Brought::Difference(Box::new(reread(&handed)?.into())))
    }
}

/// The transfer as it arrives: written by one node, read by another.
fn reread(handed: &SentDifference) -> Result<SentDifference, Violation> {
    let unreadable = |why: String| Violation { checker: "validation", what: format!("what was sent: {why}") };
    let mut text = Vec::new();
    handed.write(&mut text).map_err(|error| unreadable(error.to_string()))?;
    let mut receiving = Receiving::default();
    receiving.take(&text).map_err(|error| unreadable(error.to_string()))?;
    receiving.finish().map_err(|error| unreadable(error.to_string()))
}
