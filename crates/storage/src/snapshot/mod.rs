//! The states of one node on disk: a chain of sorted text files, each with the changes since the file before.
//!
//! A snapshot is due every few writes, so it must cost as much as the change and not as much as the store. Therefore
//! `Snapshots::add` writes one small file, the first file of a chain is a whole state, and merges in the background keep the
//! chain short. A file never changes once it has its name.
//!
//! ```text
//!  00000002/                                                      a generation: one chain
//!    00000000000000000000-00000000000000004000.snap               a whole state, at index 4000
//!    00000000000000004000-00000000000000004800.snap               the changes up to 4800, merged
//!    00000000000000004800-00000000000000004810.snap               the changes up to 4810
//!  7.tmp                                                          unfinished; removed at the next start
//!
//!  eldest-snapshot 1 from=4800 {"epoch":[7,1],"index":4810,…}     the first line, with the state that the file leads to
//!  doc "greeting" {"text":"hello"}                                a value
//!  user "ann\n" -                                                 a deletion
//!  end 2 9c1f03aa                                                 number of lines; crc32 of every byte before its digits
//! ```
//!
//! The chain is derived from the names, not recorded: from 0, always the good file that leads farthest. So a merge takes effect
//! through the name of its result. Any inputs that a crash leaves are covered by the result and are removed at the next start.
//! A chain that replaces another is built in a separate folder, which takes effect when it gets the next number. Nothing is
//! changed in place, so nothing can be torn.
//!
//! A bad file ends the chain. The files before it are a good older state, and the files after it are out of reach. Both kinds
//! of bad files are reported, neither is deleted: they are renamed to `.bad` when the chain continues without them.
//!
//! Caveats: after a failed sync of a folder, the disk may have names that `Snapshots` does not have. As everywhere in storage,
//! an error other than a full disk is fatal to the node.

mod chain;
mod change;
mod check;
mod disk;
mod error;
mod import;
mod inspect;
mod merge;
mod merging;
mod names;
mod reader;
mod row;
mod snapshots;
mod survey;
#[cfg(test)]
mod tests;
mod tiers;
mod writer;

pub use change::Change;
pub use error::{Flaw, SnapshotError, Why};
pub use import::Export;
pub use import::{Importer, Incoming};
pub use inspect::{ChainFile, Inspection, inspect};
pub use merge::{Merge, Merged};
pub use snapshots::{Opening, Rebase, Rows, Snapshots};
pub use tiers::CHAIN_FILES_MAX;
