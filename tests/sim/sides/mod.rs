//! Available mode: every side of a split goes on, and sides that meet are merged.
//!
//! - `driver` carries out what only this mode asks for, on the product's own store.
//! - `clients` write through any node that takes it, on all sides at once.
//! - `plan` is what a seed means, `run` one seed from harm to verdict, `soak` many of them.
//! - `stage`, `scenarios` and `beginnings` are timelines by hand, `crashes` a death at any output of a heal.
//! - `mutants` puts known bugs back.
//!
//! What is checked stands in `checks`: `history` is what really happened, kept by the simulator and seen by no node.

mod beginnings;
mod clients;
mod crashes;
mod driver;
mod end;
mod mutants;
mod plan;
mod run;
mod scenarios;
mod soak;
mod stage;

use std::collections::BTreeSet;

use eldest::types::Position;

use crate::checks::history::Known;

pub use clients::{Event, Sides};

/// The state of a node in available mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    pub store: eldest::store::Store,
    /// The records that this state really includes.
    pub known: Known,
    /// What has lost in a merge, here or anywhere that this state includes: it must be in the journal.
    pub lost: BTreeSet<Position>,
}

impl Default for Side {
    fn default() -> Side {
        let store = eldest::store::Store::with_sides();
        Side { store, known: Known::default(), lost: BTreeSet::new() }
    }
}
