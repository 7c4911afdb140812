//! A backup: one state as one text, for recovery after everything else is lost, or for use elsewhere.
//!
//! ```text
//! eldest-backup 1 {"cluster":"prod","cluster_id":"…","mode":"safe","node":1,"index":12,"epoch":"7.1",…}     form.rs
//! doc "greeting" {"at":"7.1@12","value":"hello"}        rows, in the form and order of a snapshot
//! end 1 9c1f03aa                                        number of rows; crc32 of every byte before its digits
//! ```
//!
//! `form.rs` writes a backup, `read.rs` reads one piece by piece and turns it into a restore, `draft.rs` gives a file its name
//! only when all of it is durable, `copies.rs` keeps some backups in a folder.
//!
//! The same rows give the same bytes except for the head, no matter which node wrote them, or when. So any tool can compare
//! two backups.

mod copies;
mod draft;
mod form;
mod read;
#[cfg(test)]
mod tests;

pub use copies::Copies;
pub use draft::Draft;
pub use form::{BackupHead, Home, write};
pub use read::{BackupReader, BadBackup};
