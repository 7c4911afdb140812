//! The first line of a backup: whose it is, and how far it reaches.

use std::io::{self, Write};

use crate::node::summing::Summing;
use crate::store::{self, Store, date_micros, date_text};
use crate::types::WallTime;
use serde::{Deserialize, Serialize};

pub const NAME: &str = "eldest-backup 1";

/// Texts of whole seconds are in the order of time.
const SECOND_US: u64 = 1_000_000;

/// As the line has it, after the name. What later programs add says nothing to this one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupHead {
    pub cluster: String,
    /// What tells it from another of the same name. Null in available mode.
    pub cluster_id: Option<String>,
    pub mode: String,
    /// The node that wrote it.
    pub node: u32,
    /// The last record that is in it, by index and epoch.
    pub index: u64,
    pub epoch: String,
    /// When it was begun, by that node's clock.
    pub time: String,
    /// Of the whole state, with what no backup has: as in `/v1/status`.
    pub digest: String,
    pub rows: u64,
}

/// The cluster that writes a backup, or takes one in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Home {
    pub cluster: String,
    pub cluster_id: Option<String>,
    pub mode: String,
    pub node: u32,
}

impl BackupHead {
    pub fn new(home: &Home, store: &Store, now: WallTime) -> BackupHead {
        let Home { cluster, cluster_id, mode, node } = home.clone();
        let applied = store.applied();
        BackupHead {
            cluster,
            cluster_id,
            mode,
            node,
            index: applied.index,
            epoch: applied.epoch.to_string(),
            time: date_text(WallTime(now.0 - now.0 % SECOND_US)),
            digest: format!("{:016x}", store.digest()),
            rows: store.backup_rows_count(),
        }
    }

    /// What a line says, without its end.
    pub fn read(line: &str) -> Option<BackupHead> {
        let json = line.strip_prefix(NAME)?.strip_prefix(' ')?;
        serde_json::from_str(json).ok()
    }

    /// The line, without its end.
    pub fn line(&self) -> String {
        let json = serde_json::to_string(self).expect("numbers and texts always encode");
        format!("{NAME} {json}")
    }

    /// `time` as a number. What is no date (a clock that has leapt past the year 9999 writes none) is later than any clock.
    pub fn wall(&self) -> WallTime {
        let micros = date_micros(&self.time).map(|micros| u64::try_from(micros).unwrap_or_default());
        WallTime(micros.unwrap_or(u64::MAX))
    }

    /// Where clusters draw no number of their own the name has to do.
    pub fn is_of(&self, home: &Home) -> bool {
        self.cluster == home.cluster && self.cluster_id == home.cluster_id
    }
}

// A state becomes a backup: in order, and as fast as whoever takes it. The state is a clone of its own, which no write changes.

pub fn write(head: &BackupHead, store: &Store, out: impl Write) -> io::Result<()> {
    let mut out = Summing::new(out);
    writeln!(out, "{}", head.line())?;
    // Whoever finds the half of one knows whose it was.
    out.flush()?;
    let mut rows = 0;
    let mut line = String::new();
    for (key, value) in store.backup_rows() {
        line.clear();
        store::write_entry(&mut line, &key, &value).expect("a string takes everything");
        out.write_all(line.as_bytes())?;
        rows += 1;
    }
    out.end(rows)
}
