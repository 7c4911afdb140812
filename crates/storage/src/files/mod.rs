//! Every operation on files that storage knows, in one place: on the machine's files, or on files in memory that a
//! simulation can cut the power of.
//!
//! What holds on both: bytes are durable after `Open::sync`, names after `sync_dir` of their folder, and until then a
//! power failure may keep any part of the bytes, and of the names in a folder those up to some change.

mod access;
mod real;
#[cfg(any(test, feature = "simulated"))]
pub mod simulated;

pub use access::{FileError, Files, Open, Stream};
pub use real::{DIR_MODE, FILE_MODE};
pub use real::{FileSystem, Handle, How, Lock, Look};
#[cfg(any(test, feature = "simulated"))]
pub use simulated::{Dice, Simulated};
