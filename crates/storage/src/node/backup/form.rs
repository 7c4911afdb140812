//! The form of a backup: the first line names its cluster and its last record, and the state follows.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use crate::node::summing::Summing;
use crate::store::{self, Store, date_micros, date_text};
use crate::types::WallTime;

pub const NAME: &str = "eldest-backup 1";

/// Texts of whole seconds sort by time.
const SECOND_US: u64 = 1_000_000;

/// The content of the line after the name. Members that later programs add are ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupHead {
    pub cluster: String,
    /// The cluster's id, which distinguishes it from another cluster of the same name. Null in available mode.
    pub cluster_id: Option<String>,
    pub mode: String,
    /// The node that wrote it.
    pub node: u32,
    /// The last record in the backup, by index and epoch.
    pub index: u64,
    pub epoch: String,
    /// The time when the backup was begun, by that node's clock.
    pub time: String,
    /// The digest of the whole state, as in `/v1/status`. It includes the parts that no backup has.
    pub digest: String,
    pub rows: u64,
}

/// The cluster that writes a backup, or restores one.
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

    /// Parses a line without its end.
    pub fn read(line: &str) -> Option<BackupHead> {
        let json = line.strip_prefix(NAME)?.strip_prefix(' ')?;
        serde_json::from_str(json).ok()
    }

    /// The line, without its end.
    pub fn line(&self) -> String {
        let json = serde_json::to_string(self).expect("numbers and strings always serialize");
        format!("{NAME} {json}")
    }

    /// `time` as a number. A text that is not a date counts as later than any clock. A clock beyond the year 9999 writes such a
    /// text.
    pub fn wall(&self) -> WallTime {
        let micros = date_micros(&self.time).map(|micros| u64::try_from(micros).unwrap_or_default());
        WallTime(micros.unwrap_or(u64::MAX))
    }

    /// In available mode clusters have no id, so only the name is compared.
    pub fn is_of(&self, home: &Home) -> bool {
        self.cluster == home.cluster && self.cluster_id == home.cluster_id
    }
}

// Writes a state as a backup: in order, and as fast as the receiver takes it. The state is a separate clone, which no write
// changes.

pub fn write(head: &BackupHead, store: &Store, out: impl Write) -> io::Result<()> {
    let mut out = Summing::new(out);
    writeln!(out, "{}", head.line())?;
    // The head is written first, so that even half a backup shows which cluster it is of.
    out.flush()?;
    let mut rows = 0;
    let mut line = String::new();
    for (key, value) in store.backup_rows() {
        line.clear();
        store::write_entry(&mut line, &key, &value).expect("writing to a String cannot fail");
        out.write_all(line.as_bytes())?;
        rows += 1;
    }
    out.end(rows)
}
