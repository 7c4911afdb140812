//! The errors of snapshots, and their places.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::change::LINE_BYTES_MAX;
use crate::files::FileError;
use crate::types::Index;

#[derive(Debug)]
pub enum SnapshotError {
    /// A disk operation failed, for lack of space or otherwise. The unfinished file is removed, and existing files stay.
    Io { path: PathBuf, error: io::Error },
    /// A file, or a stream from a peer, is not as it was written.
    Bad(Flaw),
    /// The snapshot does not continue from the newest one: another state was installed in the meantime. Its changes are
    /// relative to a state that is not there.
    NotOnTop { since: Index, to: Index, newest: Index },
    /// A change violates the grammar or the order. All of its snapshot was discarded. It is checked while it is written,
    /// because a start would refuse the file.
    Unfit { table: String, key: String, why: Why },
}

impl SnapshotError {
    /// Whether the disk is full. Only this error is worth a retry, once there is space.
    pub fn is_full(&self) -> bool {
        let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
        matches!(self, SnapshotError::Io { error, .. } if full.contains(&error.kind()))
    }

    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> SnapshotError {
        move |error| SnapshotError::Io { path: path.to_path_buf(), error }
    }

    pub(super) fn bad(path: &Path, line: u64, why: Why) -> SnapshotError {
        SnapshotError::Bad(Flaw { path: path.to_path_buf(), line, why })
    }
}

impl From<FileError> for SnapshotError {
    fn from(error: FileError) -> SnapshotError {
        SnapshotError::Io { path: error.path, error: error.source }
    }
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SnapshotError::Io { path, error } => write!(f, "{}: {error}", path.display()),
            SnapshotError::Bad(flaw) => flaw.fmt(f),
            SnapshotError::NotOnTop { since, to, newest } => {
                write!(f, "a snapshot from {since} to {to} does not continue the newest one at {newest}")
            }
            SnapshotError::Unfit { table, key, why } => write!(f, "{table} {key:?}: {why}"),
        }
    }
}

impl std::error::Error for SnapshotError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SnapshotError::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// The place of a bad file's error, and its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    pub path: PathBuf,
    /// Lines count from 1; 0 means the file as a whole.
    pub line: u64,
    pub why: Why,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path.display(), self.line, self.why)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    Head,
    Version,
    Boundary,
    /// The range ends before it begins, or does not match the file's name.
    Stretch,
    NotUtf8,
    LineTooLong,
    Table,
    Key,
    Value,
    DeletionInWhole,
    Order,
    Count,
    Checksum,
    Unfinished,
    AfterEnd,
    /// In a stream: the next file continues from another state.
    NotAdjacent {
        expected: Index,
    },
    TooManyFiles,
    /// No good file leads up to this file, which may itself be good or not.
    OutOfReach,
    /// The medium cannot read the bytes.
    Unreadable,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Why::Head => "does not begin with `eldest-snapshot 1 from=<index> <boundary>`",
            Why::Version => "is of a version that this program does not read",
            Why::Boundary => "the boundary in the first line is invalid",
            Why::Stretch => "the first line and the file's name do not agree on where it begins and ends",
            Why::NotUtf8 => "not UTF-8",
            Why::LineTooLong => return write!(f, "longer than {LINE_BYTES_MAX} bytes"),
            Why::Table => "does not begin with a table's name",
            Why::Key => "the key is not a JSON string followed by a space",
            Why::Value => "the value is empty, a single `-`, or not one line",
            Why::DeletionInWhole => "a deletion in a file that begins at 0",
            Why::Order => "not after the previous line in order",
            Why::Count => "the last line has another number of lines",
            Why::Checksum => "the checksum does not match",
            Why::Unfinished => "ends too early",
            Why::AfterEnd => "continues after its last line",
            Why::NotAdjacent { expected } => return write!(f, "a file from {expected} onwards was expected"),
            Why::TooManyFiles => "too many files for one state",
            Why::OutOfReach => "no good file leads up to it",
            Why::Unreadable => "the disk cannot read it",
        };
        f.write_str(text)
    }
}
