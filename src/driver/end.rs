//! The reasons why the loop ends.

use std::fmt;
use std::sync::Arc;

use crate::protocol::Fault;
use crate::replica;
use crate::storage::StorageError;
use crate::storage::snapshot::SnapshotError;
use crate::store::Unreadable;
use crate::types::Index;

/// After the faults `Odd` and `Forgot` the state is set aside, and the node returns as one with a new disk (P25, P27; `run`).
/// After any other end the data directory stays as it is.
#[derive(Debug)]
pub enum End {
    /// The node was asked to stop, and has handed over leadership if it led.
    Asked,
    /// The protocol cannot continue.
    Fault(Fault),
    Disk(Arc<StorageError>),
    /// A snapshot failed for a reason other than a full disk: the contents of the disk are not known.
    Snapshot(SnapshotError),
    /// This binary cannot apply a record in the log. Without the record its state would differ from the state of the others.
    Unreadable {
        index: Index,
        error: Unreadable,
    },
    /// The contract between the core and its driver is broken.
    Broken(&'static str),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Asked => write!(f, "it was asked to end"),
            End::Fault(Fault::UnknownFormat { index }) => {
                write!(f, "record {index} has a type that this version does not know: start a newer version")
            }
            End::Fault(Fault::Odd) => {
                write!(
                    f,
                    "this node's state differed from a majority's; it is set aside: start the node again"
                )
            }
            End::Fault(Fault::Forgot) => {
                write!(
                    f,
                    "this disk has lost records that it acknowledged, as if an older copy of the data directory \
                        had been put back; it is set aside: start the node again"
                )
            }
            End::Fault(Fault::Removed { .. }) => {
                write!(
                    f,
                    "this node has been removed from the cluster: do not start it again; to bring it back, add \
                        it again with an empty data directory"
                )
            }
            End::Fault(Fault::CommittedConflict { index }) => {
                write!(f, "a leader's log contradicts record {index}, which is committed here: this is a bug")
            }
            End::Disk(error) => write!(f, "the disk failed: {error}"),
            End::Snapshot(error) => write!(f, "cannot write a snapshot: {error}"),
            End::Unreadable { index, error } => {
                write!(
                    f,
                    "cannot read record {index}, and continuing without it would make the state diverge: {error}"
                )
            }
            End::Broken(what) => write!(f, "internal error: {what}"),
        }
    }
}

impl From<replica::End> for End {
    fn from(end: replica::End) -> End {
        match end {
            replica::End::Asked => End::Asked,
            replica::End::Fault(fault) => End::Fault(fault),
            replica::End::Unreadable { index, error } => End::Unreadable { index, error },
            replica::End::Broken(what) => End::Broken(what),
        }
    }
}
