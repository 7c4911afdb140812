//! A node's log as it lies on the disk: text that can be read without the binary.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

/// One record: `<index> <epoch> <crc> <wall> <cluster> [key=…] [fmt=…] type|JSON`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    pub index: u64,
    pub epoch: String,
    /// Milliseconds or microseconds, for people.
    pub wall: String,
    /// The seed's own form: `type|JSON`.
    pub typed: String,
    /// The whole line.
    pub text: String,
}

impl LogLine {
    fn parse(text: &str) -> Option<LogLine> {
        let mut rest = text;
        let mut fields = Vec::new();
        for _ in 0..5 {
            let (field, after) = rest.split_once(' ')?;
            fields.push(field.to_string());
            rest = after;
        }
        while rest.starts_with("key=") || rest.starts_with("fmt=") {
            rest = rest.split_once(' ')?.1;
        }
        let index = fields[0].parse().ok()?;
        let [_, epoch, _, wall, _] = fields.try_into().ok()?;
        Some(LogLine { index, epoch, wall, typed: rest.to_string(), text: text.to_string() })
    }
}

/// Segments in order: their names sort as their records do.
fn segments(data: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(data.join("log")).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "log"))
        .collect();
    paths.sort();
    paths
}

/// Every record on the disk by its index.
pub fn log_lines(data: &Path) -> BTreeMap<u64, LogLine> {
    let mut records = BTreeMap::new();
    for segment in segments(data) {
        let text = fs::read(segment).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        for line in text.lines().filter(|line| !line.is_empty()) {
            if line.starts_with("= ") || line.starts_with("eldest-log") {
                continue;
            }
            // A line that is being written may be cut anywhere.
            if let Some(record) = LogLine::parse(line) {
                records.insert(record.index, record);
            }
        }
    }
    records
}

/// Writes what a power loss leaves of a batch that was being written: the first part of one more
/// line. The last segment that holds anything is the one being written; later ones may exist, filled
/// with newlines in advance.
pub fn tear_the_tail(data: &Path) {
    let newest = |path: &PathBuf| fs::read(path).is_ok_and(|text| text.iter().any(|byte| *byte != b'\n'));
    let segment = segments(data).into_iter().rfind(newest).expect("a log that holds something");
    let text = fs::read(&segment).expect("a segment");
    let end = text.iter().rposition(|byte| *byte != b'\n').expect("something but newlines") as u64 + 2;
    let last = log_lines(data).into_values().next_back().expect("a record");
    let next = last.text.replacen(&last.index.to_string(), &(last.index + 1).to_string(), 1);
    let torn = &next.as_bytes()[..next.len() / 2];
    let mut file = File::options().write(true).open(&segment).expect("a segment");
    file.seek(SeekFrom::Start(end)).expect("a place in a file");
    file.write_all(torn).expect("half a line");
}
