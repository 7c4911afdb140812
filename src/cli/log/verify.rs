//! Checks a log: every line, that nothing is missing between lines, and that the newest snapshot reaches the
//! beginning of the log.
//!
//! A bad end beyond the part that is known to be synced comes from a power failure, or from a line that is being
//! written at this moment; the next start cuts it off. Everything else that is bad is damage (P27).

use std::path::Path;

use clap::Parser;
use serde_json::{Value, json};

use super::line::LogDirectory;
use crate::cli::exit::Failure;
use crate::cli::output::Output;
use crate::cli::progress::{Progress, bytes_in};
use crate::cli::snapshot::newest_in;
use crate::storage::{Bad, LogEnd, LogItem, read_dir};
use crate::types::{Index, Position};

pub const EXAMPLE: &str = "\
Example:
  eldest log verify /var/lib/eldest

It may run while the node runs. Exits with 0 if everything is intact, with 5 if not; the last line then says what and
where. With --json, stderr then has one object, which lists the damage.";

#[derive(Debug, Parser)]
pub struct LogVerifyArgs {
    #[command(flatten)]
    directory: LogDirectory,
    #[command(flatten)]
    output: Output,
}

/// The folder in a data directory.
const FOLDER: &str = "log";

/// The results of reading a log, as numbers and complaints.
#[derive(Debug, Default)]
struct Reading {
    segments: usize,
    records: u64,
    /// The length of the lines that were read.
    bytes: u64,
    /// The beginning of the valid log. Records before it in older files were replaced.
    after: Option<Position>,
    bad: Vec<Bad>,
}

pub fn run(args: &LogVerifyArgs) -> Result<(), Failure> {
    let directory = args.directory.existing()?;
    let (reading, end) = read(directory)?;
    if reading.segments == 0 {
        return Err(Failure::NothingThere { path: directory.to_path_buf(), what: "log" });
    }
    // If only the log is available, nothing can be said about the snapshot that it continues.
    let snapshot = newest_in(directory)?;
    let damage = damage(&reading, &end, snapshot);
    args.output.show(&json(&reading, &end, &damage), |_| summary(&reading, &end))?;
    if damage.is_empty() { Ok(()) } else { Err(Failure::Damaged { what: damage }) }
}

fn read(directory: &Path) -> Result<(Reading, LogEnd), Failure> {
    let below = directory.join(FOLDER);
    let all = bytes_in(if below.is_dir() { &below } else { directory });
    let (mut reading, mut progress) = (Reading::default(), Progress::begin());
    let end = read_dir(directory, |item| {
        reading.take(&item);
        progress.bytes("checked", reading.bytes, Some(all));
    })?;
    Ok((reading, end))
}

impl Reading {
    fn take(&mut self, item: &LogItem<'_>) {
        match item {
            LogItem::Start { after, .. } => {
                self.segments += 1;
                self.after = Some(*after);
            }
            LogItem::Segment { .. } => self.segments += 1,
            LogItem::Record { line, .. } => {
                self.records += 1;
                self.bytes += line.len() as u64 + 1;
            }
            LogItem::Bad(bad) => self.bad.push((*bad).clone()),
            LogItem::Marker { .. } => {}
        }
    }
}

fn json(reading: &Reading, end: &LogEnd, damage: &[String]) -> Value {
    let torn = end.bad.as_ref().filter(|bad| is_torn(bad, end));
    json!({
        "records": reading.records,
        "segments": reading.segments,
        "after": reading.after.unwrap_or_default().to_string(),
        "last": end.last.to_string(),
        "synced": end.synced,
        "unfinished": torn.map(Bad::to_string),
        "damage": damage,
    })
}

fn summary(reading: &Reading, end: &LogEnd) -> String {
    let after = reading.after.unwrap_or_default();
    let mut text = format!(
        "{} records in {} segments, after {after}, up to {}; synced at least up to {}",
        reading.records, reading.segments, end.last, end.synced
    );
    if let Some(torn) = end.bad.as_ref().filter(|bad| is_torn(bad, end)) {
        text.push_str(&format!("\nunfinished or being written, not damage: {torn}"));
    }
    text
}

fn is_torn(bad: &Bad, end: &LogEnd) -> bool {
    end.bad.as_ref() == Some(bad) && bad.index > end.synced
}

fn damage(reading: &Reading, end: &LogEnd, snapshot: Option<Index>) -> Vec<String> {
    let bad = reading.bad.iter().filter(|bad| !is_torn(bad, end));
    let mut damage: Vec<String> = bad.map(Bad::to_string).collect();
    let begins_after = reading.after.unwrap_or_default().index;
    if let Some(newest) = snapshot.filter(|newest| *newest < begins_after) {
        damage.push(format!(
            "the log starts after record {begins_after}, but the newest snapshot ends at {newest}"
        ));
    }
    damage
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::storage::Reason;

    fn bad(index: Index) -> Bad {
        Bad { path: PathBuf::from("log/1.log"), segment: 1, offset: 70, index, reason: Reason::Unended }
    }

    fn end(bad: Option<Bad>) -> LogEnd {
        LogEnd { synced: 20, bad, ..LogEnd::default() }
    }

    #[test]
    fn a_torn_end_is_no_damage() {
        let reading = Reading { bad: vec![bad(21)], ..Reading::default() };
        assert_eq!(damage(&reading, &end(Some(bad(21))), Some(0)), Vec::<String>::new());
        assert!(summary(&reading, &end(Some(bad(21)))).contains("not damage: log/1.log, byte 70"));
        let said = json(&reading, &end(Some(bad(21))), &[]);
        let unfinished = bad(21).to_string();
        let expected = json!({"records": 0, "segments": 0, "after": "0.0@0", "last": "0.0@0", "synced": 20,
            "unfinished": unfinished, "damage": []});
        assert_eq!(said, expected);
    }

    #[test]
    fn what_was_synced_and_is_bad_is_damage() {
        let synced = Reading { bad: vec![bad(20)], ..Reading::default() };
        let found = damage(&synced, &end(Some(bad(20))), Some(0));
        assert_eq!(found, [bad(20).to_string()]);
        let said = json(&synced, &end(Some(bad(20))), &found);
        assert_eq!((&said["damage"], &said["unfinished"]), (&json!(found), &Value::Null));
        // Good lines follow the bad one.
        let inner = Reading { bad: vec![bad(21)], ..Reading::default() };
        assert_eq!(damage(&inner, &end(None), Some(0)).len(), 1);
    }

    #[test]
    fn a_hole_between_snapshot_and_log_is_damage() {
        let mut reading = Reading::default();
        reading.after.get_or_insert_default().index = 120;
        assert_eq!(damage(&reading, &end(None), Some(120)), Vec::<String>::new());
        assert_eq!(damage(&reading, &end(None), None), Vec::<String>::new());
        let expected = "the log starts after record 120, but the newest snapshot ends at 80";
        assert_eq!(damage(&reading, &end(None), Some(80)), [expected]);
    }
}
