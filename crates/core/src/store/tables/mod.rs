//! What the state is made of: immutable tables with a running digest, and the rows that they hold.
//!
//! - `key` names an entry, `table` is the sorted map that all entries live in.
//! - `data` are the rows of clients' data, `docs` the documents with what follows from them; `votes` count the votes, `leases` are the rows of
//!   roles and processes.
//! - `access` are the rows of clients' tokens.
//! - `idempotency` remembers the calls that were carried out.
//! - `version` is what one record wrote under a key, and when a document ends by itself. `merge_metadata` is what available mode keeps so that two
//!   histories can become one.

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
pub use version::{Conflict, Tombstone, Version, in_order_of_merit};
pub use votes::{VoteCounts, Votes};
