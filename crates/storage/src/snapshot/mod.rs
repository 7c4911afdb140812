//! The states of one node on disk: a chain of sorted text files, each with what changed since the one before.
//!
//! A snapshot falls due every few writes, so its cost must be that of the change and not that of the store. Hence
//! `Snapshots::add` writes one small file, the first of a chain is a whole state, and merges in the background
//! keep the chain short. A file never changes after it got its name.
//!
//! ```text
//!  00000002/                                                      a generation: one chain
//!    00000000000000000000-00000000000000004000.snap               a whole state, at index 4000
//!    00000000000000004000-00000000000000004800.snap               what changed up to 4800, merged
//!    00000000000000004800-00000000000000004810.snap               what changed up to 4810
//!  7.tmp                                                          unfinished; removed at the next start
//!
//!  eldest-snapshot 1 from=4800 {"epoch":[7,1],"index":4810,…}     the first line: up to where it leads
//!  doc "greeting" {"text":"hello"}                                a value
//!  user "ann\n" -                                                 a deletion
//!  end 2 9c1f03aa                                                 lines, crc32 of every byte before its digits
//! ```
//!
//! The chain is found, not recorded: from 0, always the good file that leads farthest. So a merge takes effect by
//! the name of its result, and its inputs, wherever a crash left them, are covered and go at the next start. A
//! chain that replaces another is put together in a folder of its own, which takes effect by getting the next
//! number. There is nothing to be changed in place, and so nothing to be torn.
//!
//! A bad file ends the chain; what comes before is a good older state, and what comes after is out of reach. Both
//! are reported, neither is deleted: they are set aside, as `.bad`, when the chain goes on without them.
//!
//! Caveats: after a failed sync of a folder the disk may know more than `Snapshots`. As everywhere in storage, a
//! refusal other than a full disk is fatal to the node.

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
mod rebase;
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
pub use rebase::{Rebase, Rows};
pub use snapshots::{Opening, Snapshots};
pub use tiers::CHAIN_FILES_MAX;
