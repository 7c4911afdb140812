//! The errors of a data directory, each with the operator's remedy.
//!
//! Most of them are found before anything is changed: the directory that is refused stays as it was. A loss that the node can
//! handle by itself is not an error but a `Finding`.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::files::FileError;
use super::snapshot::SnapshotError;
use crate::types::NodeId;

#[derive(Debug)]
pub enum StorageError {
    Io {
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    OtherCluster {
        path: PathBuf,
        found: String,
        expected: String,
    },
    OtherNode {
        path: PathBuf,
        found: NodeId,
        expected: NodeId,
    },
    /// The identity belongs to another file: the directory was copied.
    Copied {
        path: PathBuf,
        found: u64,
        expected: u64,
    },
    /// A line of a newer format checks, so it is not damage. Going on would ignore what a newer program has promised or
    /// stored.
    NewerFormat {
        path: PathBuf,
        found: u32,
        known: u32,
    },
    /// The identity cannot be read. The node does not guess whose directory it is.
    Unreadable {
        path: PathBuf,
        why: String,
    },
    /// The directory has files of a node, but not the file that says which node's.
    NoIdentity {
        dir: PathBuf,
        found: String,
    },
    /// The directory has no identity, but has a file that no node writes.
    Foreign {
        dir: PathBuf,
        found: String,
    },
    InUse {
        path: PathBuf,
    },
    /// A file that was read and checked at the start no longer checks.
    Damaged {
        path: PathBuf,
        why: String,
    },
    Snapshot(SnapshotError),
}

impl StorageError {
    /// For `map_err`: the failed operation, and the file.
    /// `doing` completes the sentence "cannot …".
    pub fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StorageError {
        let path = path.to_path_buf();
        move |source| StorageError::Io { doing, path, source }
    }

    /// The disk is full, or this user's quota of it is used up. A running node waits this out where it allocates a segment
    /// (P24); at a start it is an error like any other. Snapshots have `SnapshotError::is_full`.
    pub fn is_full(&self) -> bool {
        let full = |kind| matches!(kind, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        matches!(self, StorageError::Io { source, .. } if full(source.kind()))
    }
}

impl fmt::Display for StorageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StorageError::Io { doing, path, source } => {
                write!(f, "cannot {doing} {}: {source}", path.display())
            }
            StorageError::OtherCluster { path, found, expected } => write!(
                f,
                "{} belongs to cluster \"{found}\", but this node to \"{expected}\": correct --data or the \
                    cluster name",
                path.display()
            ),
            StorageError::OtherNode { path, found, expected } => write!(
                f,
                "{} belongs to node {}, but this is node {}: correct --data or --node",
                path.display(),
                found.0,
                expected.0
            ),
            StorageError::Copied { path, found, expected } => write!(
                f,
                "{} is a copy: it was written as inode {expected} and is inode {found}. Two nodes with copies \
                    of one disk lose writes. If the original will never start again, start once with \
                    --adopt-copy: this node then rejoins as a new disk and keeps its data",
                path.display()
            ),
            StorageError::NewerFormat { path, found, known } => write!(
                f,
                "{} has format {found}, but this version reads only up to {known}: start a newer version",
                path.display()
            ),
            StorageError::Unreadable { path, why } => write!(
                f,
                "cannot read {} ({why}): restore that file, or move the whole directory away to join as a new node",
                path.display()
            ),
            StorageError::NoIdentity { dir, found } => write!(
                f,
                "{} has {found} but no file \"identity\": restore that file, or move the whole directory away to join as \
                 a new node",
                dir.display()
            ),
            StorageError::Foreign { dir, found } => write!(
                f,
                "{} has no file \"identity\", but has files that no node writes, such as {found}: use an empty \
                    or new directory as --data; if it contains a node's data, restore that file",
                dir.display()
            ),
            StorageError::InUse { path } => {
                write!(f, "another process uses {}: stop it, or use another --data", path.display())
            }
            StorageError::Damaged { path, why } => {
                write!(f, "{} was damaged while in use ({why}): restart to have it checked", path.display())
            }
            StorageError::Snapshot(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for StorageError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StorageError::Io { source, .. } => Some(source),
            StorageError::Snapshot(error) => Some(error),
            _ => None,
        }
    }
}

impl From<FileError> for StorageError {
    fn from(error: FileError) -> StorageError {
        let FileError { doing, path, source } = error;
        StorageError::Io { doing, path, source }
    }
}

impl From<SnapshotError> for StorageError {
    fn from(error: SnapshotError) -> StorageError {
        StorageError::Snapshot(error)
    }
}
