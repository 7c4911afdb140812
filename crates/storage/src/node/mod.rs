//! What one node does with its storage: how a replica's writes become jobs, its states files, and how both are read again.
//!
//! ```text
//!  DiskWrite ─────► encoder.rs ─► Job ─► DiskWriter        Report ─► disk_state.rs
//!  SnapshotOrder ─► snapshots.rs: written down, then merged
//!  Opened ────────► load.rs ─► the replica's start         an Incoming, too, becomes a store
//!  StateTransfer ◄► sent_difference.rs: the text that travels
//!  Store ◄────────► backup/: the text that an operator keeps
//! ```
//!
//! Nothing here has a thread or a queue: the driver calls it on threads of its own, and the simulator when it likes.

pub mod backup;
mod encoder;
mod load;
mod sent_difference;
mod summing;

pub use encoder::DiskState;
pub use encoder::Encoder;
pub use load::{LoadError, load, starting};
pub use load::{lock, merge_once, take};
pub use sent_difference::{BadDifference, Receiving, SentDifference};
