//! The findings of opening a data directory, for the operator.
//!
//! `Doubtful` takes the vote from the node. The other findings tell what was repaired or decided. Damage is not found again
//! at the next start, because it has been repaired by then.

use std::fmt;
use std::path::PathBuf;

use super::scan::Bad;
use super::snapshot::Flaw;
use super::vote::Lost;
use crate::types::{Epoch, Index, Position};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A write that a power failure cut short. The log ends before it.
    Cut(Bad),
    /// A damaged line was not a record, so no record is missing. It is blank now.
    Repaired(Bad),
    /// The newest snapshot includes the records that were lost here.
    Replaced(Bad),
    /// The newest snapshot is ahead of the log, or of another history.
    Superseded { log: Position, snapshot: Position },
    /// The snapshot is bad, and the log replaces it.
    BadSnapshot(Flaw),
    /// One of the two slots of the promise file does not check.
    BadPromiseSlot(&'static str),
    /// This node has a new incarnation and must be admitted again (P10).
    Doubtful(Doubt),
    /// An operator decided to trust this disk, although it may have forgotten something.
    Trusted,
    /// An operator decided to trust this disk, but the disk has no record of its membership in the cluster.
    NothingToTrust,
    /// Bad files were moved here.
    Quarantined(PathBuf),
}

/// The reason why this disk may have forgotten something that it reported (P27).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// Records up to `synced` were once durable.
    Line {
        bad: Bad,
        synced: Index,
    },
    /// The identity says that the log and the promise file were created, but the log is missing.
    NoLog,
    /// The log begins after this record, and no snapshot leads there.
    Gap {
        from: Index,
        to: Index,
    },
    /// Snapshot and log include the same record with different checksums.
    Mismatch {
        at: Position,
    },
    Promise(Lost),
    /// A log never has a record above the promise of its node (I11), so the file is older than the log.
    StalePromise {
        promise: Epoch,
        log: Epoch,
    },
    /// The original may be in use. Two disks of one incarnation would both count as the same disk (P10).
    Copied,
}

impl Finding {
    pub fn is_doubt(&self) -> bool {
        matches!(self, Finding::Doubtful(_))
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::Cut(bad) => write!(f, "removed an unfinished write: {bad}"),
            Finding::Repaired(bad) => write!(f, "removed a damaged line that had no record: {bad}"),
            Finding::Replaced(bad) => {
                write!(f, "the newest snapshot replaces a damaged part of the log: {bad}")
            }
            Finding::Superseded { log, snapshot } => {
                write!(f, "the snapshot of {snapshot} replaces the log, which ends at {log}")
            }
            Finding::BadSnapshot(flaw) => write!(f, "the log replaces a damaged snapshot: {flaw}"),
            Finding::BadPromiseSlot(why) => write!(f, "one slot of the promise file is bad ({why})"),
            Finding::Doubtful(doubt) => write!(f, "this disk may have lost records: {doubt}"),
            Finding::Trusted => write!(
                f,
                "this disk votes again because of --trust-disk: records that it lost are gone unless another \
                    disk has them. Start it without the flag from now on"
            ),
            Finding::NothingToTrust => write!(
                f,
                "--trust-disk has no effect: the remaining data on this disk does not say that it belongs to a \
                    cluster. Restore a backup into a new cluster"
            ),
            Finding::Quarantined(folder) => write!(f, "bad files are in {}", folder.display()),
        }
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Doubt::Line { bad, synced } => write!(f, "{bad}; record {synced} was durable"),
            Doubt::NoLog => write!(f, "the log is missing"),
            Doubt::Gap { from, to } => {
                write!(f, "the log begins after record {to}, but the newest good snapshot is of {from}")
            }
            Doubt::Mismatch { at } => write!(f, "snapshot and log disagree on the checksum of {at}"),
            Doubt::Promise(Lost::Missing) => write!(f, "the promise file is missing"),
            Doubt::Promise(Lost::NoGoodSlot(why)) => write!(f, "the promise file is bad ({why})"),
            Doubt::StalePromise { promise, log } => {
                write!(f, "the promise file says {promise}, but the log has a record of {log}")
            }
            Doubt::Copied => write!(f, "the directory is a copy"),
        }
    }
}
