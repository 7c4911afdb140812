//! Available mode: two histories are merged into one.
//!
//! - `versions` lists all versions that a state has of a key, and replaces them.
//! - `transfer` takes from a state the entries that another state lacks, and writes them as text.
//! - `histories` merges two states, `overriding` makes a follower's state that of its leader.
//! - `journal` shows the values that merges overrode, and writes them again.

mod histories;
mod journal;
mod overriding;
mod transfer;
mod versions;

pub use histories::{Merged, Print};
pub use journal::ConflictView;
pub use transfer::{Difference, entry_in, write_entry};
