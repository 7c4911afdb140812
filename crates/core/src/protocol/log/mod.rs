//! The log as the protocol knows it: its tail in memory, what its records add up to, and what of it is safe on disk.

mod clock;
mod durability;
mod meta;
mod recovery;
mod tail;
mod waiting;

pub use clock::ClusterClock;
pub use durability::{After, Durability, Seq};
pub use meta::{Holds, Records, Roster, Seat, SnapshotMeta};
pub use recovery::{BadLine, Tail, judge};
pub use tail::{Log, may_follow};
pub use waiting::Waiting;
