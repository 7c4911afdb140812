//! A backup: one state as one text, for whoever has lost everything else, or wants it elsewhere.
//!
//! ```text
//! eldest-backup 1 {"cluster":"prod","cluster_id":"…","mode":"safe","node":1,"index":12,"epoch":"7.1",…}     head.rs
//! doc "greeting" {"at":"7.1@12","value":"hello"}        rows, as a snapshot writes them, and as sorted
//! end 1 9c1f03aa                                        how many; crc32 of every byte before its digits
//! ```
//!
//! `write.rs` writes one, `read.rs` reads one piece by piece and makes a restore of it, `draft.rs` gives a file its name only when all of
//! it is on the disk, `copies.rs` keeps some of them in a folder.
//!
//! The same rows are the same bytes but for the head, whichever node wrote them and when: two backups can be compared by any tool.

mod copies;
mod draft;
mod head;
mod read;
#[cfg(test)]
mod tests;

pub use copies::Copies;
pub use draft::Draft;
pub use head::write;
pub use head::{BackupHead, Home};
pub use read::{BackupReader, BadBackup};
