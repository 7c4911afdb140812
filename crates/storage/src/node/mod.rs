//! A node's use of its storage: a replica's writes become jobs, its states become files, and both are read again.
//!
//! ```text
//!  DiskWrite ─────► encoder.rs ─► Job ─► DiskWriter        Report ─► encoder.rs: DiskState
//!  SnapshotOrder ─► states.rs: written down, then merged
//!  Opened ────────► states.rs ─► the replica's start         an Incoming, too, becomes a store
//!  StateTransfer ◄► sent_difference.rs: the text that is sent
//!  Store ◄────────► backup/: the text that an operator keeps
//! ```
//!
//! This module has no thread and no queue. The driver calls it on threads of the driver, and the simulator calls it directly.

pub mod backup;
mod encoder;
mod sent_difference;
mod states;
mod summing;

pub use encoder::DiskState;
pub use encoder::Encoder;
pub use sent_difference::{BadDifference, Receiving, SentDifference};
pub use states::{LoadError, load, starting};
pub use states::{lock, merge_once, take};
