//! All file access: the data that one node must still have after a power failure.
//!
//! ```text
//!  data directory                                     read and written by
//!    identity    the node that it belongs to          identity.rs
//!    vote        the node's promises                  vote.rs
//!    log/        segments of lines, a line a record   scan.rs reads, log.rs writes
//!    snapshots/  the chain of states                  snapshot/
//!    quarantine/ bad files                            quarantine.rs
//!    chronicle   leaders and reasons, for people      chronicle.rs
//!    roles       holders of roles, for people         chronicle.rs
//!
//!  open ─► recover.rs ─► gather.rs (read, judge) ─► repair.rs ─► Idle ─ start ─► Disk
//!
//!  Disk::submit(seq, job) ─► disk.rs: queue ─► writer.rs ─► log.rs, vote.rs, snapshot/ ─► Report::Durable(seq)
//! ```
//!
//! One thread writes, in the order of the jobs; another allocates segments ahead. `docs/disk-format.md` describes the files.
//!
//! The other crates rely on these guarantees:
//!
//! - A crash leaves the state after some prefix of the jobs (P29). There is one exception: a promise may be on disk ahead of
//!   records that found no room (P24).
//! - `open` cuts only what was never reported as durable. If anything else is missing, the disk is doubtful and gets a new
//!   incarnation (P27). The caveat is damage in the newest batch, which no marker vouches for.
//! - `open` changes nothing in a directory of another node or cluster, or in a copy, unless the operator adopts the copy.
//! - A running node waits out a full disk, and the limit of open files. Any other error of the log, the promise file or one of
//!   the node's own snapshots is final, because it is unknown what the disk still has.
//!
//! While the node runs, `eldest_core` decides what is written, cut and trimmed. This crate decides only what a start makes of
//! the files.

mod batch;
mod chronicle;
mod counters;
#[cfg(test)]
mod crash_tests;
mod cut;
mod digits;
mod disk;
mod error;
pub mod files;
mod finding;
#[cfg(test)]
mod fixture_tests;
mod gather;
#[cfg(test)]
mod history_tests;
mod identity;
pub mod line;
mod lines;
mod log;
mod marker;
mod meta;
#[cfg(test)]
mod model_tests;
pub mod node;
mod private;
mod protocol_records;
mod quarantine;
mod read;
mod recover;
mod repair;
mod scan;
mod segment;
pub mod snapshot;
mod start_over;
mod step;
#[cfg(test)]
mod testing;
mod text;
mod vote;
mod writer;

pub use batch::{Batch, BatchError, Encoded, decode_all};
pub use chronicle::Chronicle;
pub use counters::Counted;
pub use disk::{Disk, Idle, MARK_AFTER, ROOM_RETRY};
pub use error::StorageError;
pub use finding::{Doubt, Finding};
pub use line::LineError;
pub use lines::Lines;
pub use meta::Boundary;
pub use private::close_to_others;
pub use read::{LogEnd, LogItem, read_dir, read_in};
pub use recover::{Opened, Options, open};
pub use scan::{Bad, Reason};
pub use segment::SEGMENT_BYTES;
pub use start_over::start_over;
pub use step::DiskWriter;
pub use vote::Lost;
pub use writer::{Job, Report};

use eldest_core::{protocol, replica, store, types};
