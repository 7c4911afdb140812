//! Available mode: two histories become one.
//!
//! - `versions` lists all that a state holds about a key, and replaces it.
//! - `transfer` takes from a state what another lacks, and carries it as text.
//! - `histories` merges two states, `overriding` makes a follower's state that of its leader.
//! - `journal` shows what merges overrode, and writes it again.

mod histories;
mod journal;
mod overriding;
mod transfer;
mod versions;

pub use histories::{Merged, Print};
pub use journal::ConflictView;
pub use transfer::{Difference, entry_in, write_entry};
