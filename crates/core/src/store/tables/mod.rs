//! The parts of the state: immutable tables with a running digest, and the rows in them.
//!
//! - `key` names an entry, `table` is the sorted map that contains all entries.
//! - `data` are the rows of clients' data, `docs` the documents with their derived indexes; `votes` count the votes, `leases` are the
//!   rows of roles and processes.
//! - `access` are the rows of clients' tokens.
//! - `idempotency` remembers the calls that were carried out.
//! - `version` is the value that one record wrote under a key, and the end of a document. `merge_metadata` is the part of the state
//!   that available mode needs to merge two histories.

mod access;
mod data;
mod docs;
mod idempotency;
mod key;
mod leases;
mod merge_metadata;
mod table;
mod version;
mod votes;

pub use access::Token;
pub use data::{CastVote, Doc, Election, User, parts};
pub use docs::{Docs, area};
pub use idempotency::{Age, IdempotencyKeys, Remembered};
pub use key::{
    Key, LAST, MARK, SIDE, TABLES, ballot, ballot_parts, call_named, lost_id, lost_ids_of, lost_parts,
};
pub use leases::{Process, Role};
pub use merge_metadata::{Bounds, KeyChange, MergeMetadata};
pub use table::{Page, Row, Table, Weight};
pub use version::{Bond, Lifetime};
pub use version::{Conflict, Tombstone, Version, sort_by_precedence};
pub use votes::{VoteCounts, Votes};
