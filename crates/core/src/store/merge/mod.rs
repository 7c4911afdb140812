//! Available mode: two histories are merged into one.
//!
//! - `versions` lists all versions that a state has of a key, and replaces them.
//! - `transfer` takes from a state the entries that another state lacks, and writes them as text.
//! - `histories` merges two states, `overriding` makes a follower's state that of its leader.
//! - `journal` shows the values that merges overrode, and writes them again.
//!
//! ```text
//!  younger side                                   elder side
//!    Store::difference(the elder's vector) ─────► Store::merged ──► the merged state, its changes, the journal
//!                                                      │
//!  a follower: Store::overridden ◄──────────────  Store::difference(the follower's vector)
//! ```
//!
//! An example: the elder n1 knows {5.1: 42}, the younger n2 knows {5.1: 40, 6.2: 44}.
//!
//! ```text
//!            n1             n2               merged
//!  doc "a"   5.1@41 "x"     6.2@41 "y"       "x", of the elder; "y" is a rival, and stands in the journal
//!  doc "b"   5.1@7 "old"    6.2@42 "new"     "new": n2 knew 5.1@7 and has replaced it
//!  doc "c"   5.1@9 "v"      6.2@43 deleted   deleted: n2 knew 5.1@9
//!  doc "d"   5.1@42 "v"     6.2@44 deleted   "v": of two versions that did not know each other, the elder's
//! ```

mod histories;
mod journal;
mod overriding;
mod transfer;
mod versions;

pub use histories::{Merged, Print};
pub use journal::ConflictView;
pub use transfer::{Difference, entry_in, write_entry};
