//! The state of a node as the simulator knows it, and states on their way from node to node.

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
    /// What has lost in a merge, here or anywhere that this state includes: it must be in the journal.
    pub lost: BTreeSet<Position>,
}

impl State {
    /// What a node in available mode begins with.
    pub fn with_sides() -> State {
        State { store: Store::mergeable(), ..State::default() }
    }

    /// What a node of the same kind begins with.
    pub fn blank(&self) -> State {
        if self.store.is_mergeable() { State::with_sides() } else { State::default() }
    }
}

/// A state on its way: the sender's whole state, which costs a few pointers. The receiver is given what the message's `base`
/// does not include, by way of its text, or the files of a snapshot.
#[derive(Clone, Debug)]
pub struct Transfer {
    pub state: State,
    /// What a log goes on from behind it.
    pub boundary: Boundary,
    /// A snapshot's files, as they travel.
    pub files: Option<Arc<[u8]>>,
}

impl Transfer {
    /// What the receiver is given of it besides its message: the part that `base` does not include.
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

/// As it arrives: written by one node, read by another.
fn reread(handed: &SentDifference) -> Result<SentDifference, Violation> {
    let unreadable = |why: String| Violation { checker: "validation", what: format!("what was sent: {why}") };
    let mut text = Vec::new();
    handed.write(&mut text).map_err(|error| unreadable(error.to_string()))?;
    let mut receiving = Receiving::default();
    receiving.take(&text).map_err(|error| unreadable(error.to_string()))?;
    receiving.finish().map_err(|error| unreadable(error.to_string()))
}
