//! All file operations of storage, in one place: on the machine's files, or on files in memory for a simulation that can cut
//! the power.
//!
//! Both guarantee the same: bytes are durable after `Open::sync`, names after `sync_dir` of their folder. Until then a power
//! failure may keep any part of the bytes, and the name changes of a folder up to some change.
//!
//! `chronicle.rs`, `private.rs` and `node/backup` use `std::fs` directly, because no promise and no record depends on them.

mod access;
mod real;
#[cfg(any(test, feature = "simulated"))]
pub mod simulated;

pub use access::{FileError, Files, Open, Stream};
pub use real::{DIR_MODE, FILE_MODE};
pub use real::{FileSystem, Handle, How, Lock, Look};
#[cfg(any(test, feature = "simulated"))]
pub use simulated::{Dice, Simulated};
