//! What one node does with its storage: how a replica's writes become jobs, its states files, and how both are read again.
//!
//! ```text
//!  DiskWrite ─────► encoder.rs ─► Job ─► DiskWriter        Report ─► disk_state.rs
//!  SnapshotOrder ─► snapshots.rs: written down, then merged
//!  Opened ────────► load.rs ─► the replica's start         an Incoming, too, becomes a store
//!  StateTransfer ◄► handed.rs: the text that travels
//! ```
//!
//! Nothing here has a thread or a queue: the driver calls it on threads of its own, and the simulator when it likes.

mod disk_state;
mod encoder;
mod handed;
mod load;
mod snapshots;

pub use disk_state::DiskState;
pub use encoder::Encoder;
pub use handed::{BadHanded, Handed, Receiving};
pub use load::{LoadError, load, starting};
pub use snapshots::{lock, merge_once, take};
