//! What was found when a data directory was opened, for the operator's eyes.

use std::fmt;
use std::path::PathBuf;

use super::snapshot::Flaw;
use super::vote::Lost;
use super::walk::Bad;
use crate::types::{Epoch, Index, Position};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A write that power loss cut short. The log ends before it.
    Cut(Bad),
    /// Nothing was in this line that is not there. It is blank now.
    Repaired(Bad),
    /// The newest snapshot holds what was lost here.
    Replaced(Bad),
    /// The newest snapshot is ahead of the log, or of another history.
    Superseded { log: Position, snapshot: Position },
    /// The log replaces this file.
    BadSnapshot(Flaw),
    /// One of the two slots of the promise file did not check.
    BadPromiseSlot(&'static str),
    /// This node has a new incarnation and must be let in again (P10).
    Doubtful(Doubt),
    /// An operator has said so: this disk counts, whatever it may have forgotten.
    Trusted,
    /// The same was said of a disk that knows nothing of a place in the cluster.
    NothingToTrust,
    /// Bad files went here.
    Quarantined(PathBuf),
}

/// Why this disk may have forgotten something that it said (P27).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// Records up to `synced` were durable once.
    Line {
        bad: Bad,
        synced: Index,
    },
    NoLog,
    /// The log begins only after this, and no snapshot leads there.
    Gap {
        from: Index,
        to: Index,
    },
    /// Snapshot and log hold the same record and another checksum.
    Mismatch {
        at: Position,
    },
    Promise(Lost),
    StalePromise {
        promise: Epoch,
        log: Epoch,
    },
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
            Finding::Cut(bad) => write!(f, "an unfinished write was cut: {bad}"),
            Finding::Repaired(bad) => write!(f, "a damaged line that held no record was cleared: {bad}"),
            Finding::Replaced(bad) => {
                write!(f, "the newest snapshot replaces a damaged part of the log: {bad}")
            }
            Finding::Superseded { log, snapshot } => {
                write!(f, "the log, which ends at {log}, gives way to the snapshot of {snapshot}")
            }
            Finding::BadSnapshot(flaw) => write!(f, "a damaged snapshot, which the log replaces: {flaw}"),
            Finding::BadPromiseSlot(why) => write!(f, "one slot of the promise file is bad ({why})"),
            Finding::Doubtful(doubt) => write!(f, "this disk may have forgotten something: {doubt}"),
            Finding::Trusted => write!(
                f,
                "this disk counts again by --trust-disk: what it has forgotten is lost unless another disk has it. Start it \
                 without the flag from now on"
            ),
            Finding::NothingToTrust => write!(
                f,
                "--trust-disk changes nothing: what is left on this disk does not say that it belongs to a cluster. Restore a \
                 backup into a new one"
            ),
            Finding::Quarantined(folder) => write!(f, "bad files are in {}", folder.display()),
        }
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Doubt::Line { bad, synced } => write!(f, "{bad}; record {synced} was durable"),
            Doubt::NoLog => write!(f, "the log is gone"),
            Doubt::Gap { from, to } => {
                write!(f, "the log begins after record {to}, the newest good snapshot is of {from}")
            }
            Doubt::Mismatch { at } => write!(f, "snapshot and log disagree on the checksum of {at}"),
            Doubt::Promise(Lost::Missing) => write!(f, "the promise file is gone"),
            Doubt::Promise(Lost::NoGoodSlot(why)) => write!(f, "the promise file is bad ({why})"),
            Doubt::StalePromise { promise, log } => {
                write!(f, "the promise file says {promise}, the log has a record of {log}")
            }
            Doubt::Copied => write!(f, "the directory is a copy"),
        }
    }
}
