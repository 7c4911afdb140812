//! `eldest drill restore`: proves that a backup of the cluster can be restored, without touching the cluster's data.
//!
//! ```text
//!  write a document ─▶ backup ─▶ restore it on a scratch node on this machine ─▶ backup of that node ─▶ compare
//! ```
//!
//! The document is acknowledged before the backup begins, so it has to be in it. Whatever ends the drill, the document,
//! the node and its folder are removed.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::Instant;

use serde::Serialize;
use serde_json::{Value, json};

use super::args::DrillArgs;
use super::scratch::Scratch;
use super::writers::is_removed;
use crate::cli::backup::take_to;
use crate::cli::client::json as answered;
use crate::cli::exit::Failure;
use crate::cli::out::{clean, note};
use crate::cli::restore::{WITHIN, pieces};
use crate::cli::signals::Signals;
use crate::cli::span::millis;
use crate::client::{Client, If, random_id};
use crate::store::entry_in;

/// What became of the rows of the backup.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
struct Compared {
    same: u64,
    /// Missing, added or changed by the restore.
    differ: u64,
    /// Documents that expire: with time, or with a lease that the other node does not have.
    not_compared: u64,
    first_difference: Option<String>,
    has_marker: bool,
}

#[derive(Debug, Serialize)]
pub struct RestoreReport {
    drill: &'static str,
    cluster: String,
    mode: String,
    index: u64,
    rows: u64,
    bytes: u64,
    backup_ms: u64,
    start_ms: u64,
    restore_ms: u64,
    compared: Compared,
    pub wrong: Vec<String>,
}

pub async fn run(args: &DrillArgs, client: &Client) -> Result<RestoreReport, Failure> {
    let mut signals = Signals::with_hangup().map_err(Failure::NoRuntime)?;
    let key = format!("drill/{}/restore", &random_id()[..8]);
    let mut scratch = Scratch::prepare()?;
    let ended = tokio::select! {
        ended = course(args, client, &key, &mut scratch) => ended,
        signal = signals.next() => {
            note("the drill was interrupted; cleaning up (a second signal ends it at once)");
            Err(Failure::BrokenOff { signal })
        }
    };
    // The copy of the data goes first, and no signal interrupts that.
    scratch.end().await?;
    let is_gone = tokio::select! {
        is_gone = is_removed(client, &key) => is_gone,
        _ = signals.next() => false,
    };
    if !is_gone {
        note(&format!("{key} could not be removed: eldest doc delete {key}"));
    }
    ended
}

async fn course(
    args: &DrillArgs,
    client: &Client,
    key: &str,
    scratch: &mut Scratch,
) -> Result<RestoreReport, Failure> {
    let failed =
        |error: crate::client::Error| Failure::NotNow { what: format!("cannot write {key}: {error}") };
    client.put_doc(key, &"written before the backup", If::Absent).await.map_err(failed)?;
    let (taken, restored) = (scratch.folder.join("taken"), scratch.folder.join("restored"));
    let began = Instant::now();
    let head = take_to(&args.target, &taken).await?;
    let backup_ms = millis(began.elapsed());
    let bytes = fs::metadata(&taken).map_err(Failure::file(&taken))?.len();
    note(&format!(
        "the backup has {} rows and {bytes} bytes; starting a node in {}",
        head.rows,
        scratch.folder.display()
    ));
    let began = Instant::now();
    scratch.start(&head.mode, bytes, args.within).await?;
    let start_ms = millis(began.elapsed());
    let began = Instant::now();
    let (caller, path) = (scratch.target.caller()?, "/v1/restore?other_cluster=true");
    let answer = caller.upload(&scratch.target.url[0], path, pieces(&taken)?, WITHIN).await?;
    answered(&answer.taken()?)?;
    let restore_ms = millis(began.elapsed());
    take_to(&scratch.target, &restored).await?;
    let compared = compare(rows(&taken)?, rows(&restored)?, key);
    let wrong = wrong(&compared, key);
    let (cluster, mode, index, rows) = (head.cluster, head.mode, head.index, head.rows);
    let drill = "restore";
    Ok(RestoreReport {
        drill,
        cluster,
        mode,
        index,
        rows,
        bytes,
        backup_ms,
        start_ms,
        restore_ms,
        compared,
        wrong,
    })
}

/// A row of a backup that a restore has to keep.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    table: String,
    key: String,
    content: String,
}

/// A line of a backup as far as a restore keeps it. The revision (`at`) becomes a new one.
#[derive(Debug, PartialEq, Eq)]
enum BackupLine {
    Row(Row),
    EndsByItself,
    /// The head, the end, and the last fencing token, which a restore may raise.
    NotKept,
}

fn line(text: &str) -> BackupLine {
    let Some((table, key, value)) = entry_in(text).filter(|(table, ..)| *table != "token") else {
        return BackupLine::NotKept;
    };
    let mut value: Value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
    if let Some(members) = value.as_object_mut() {
        members.remove("at");
        if table == "doc" && members.keys().any(|name| name != "value") {
            return BackupLine::EndsByItself;
        }
    }
    BackupLine::Row(Row { table: table.to_string(), key, content: value.to_string() })
}

fn rows(path: &Path) -> Result<impl Iterator<Item = BackupLine> + use<>, Failure> {
    let file = BufReader::new(File::open(path).map_err(Failure::file(path))?);
    // Both files were checked as they came, so each line can be read.
    Ok(file.lines().map_while(Result::ok).map(|text| line(&text)))
}

/// Walks through two backups, which have their rows in the same order.
fn compare(
    taken: impl Iterator<Item = BackupLine>,
    restored: impl Iterator<Item = BackupLine>,
    marker: &str,
) -> Compared {
    let mut compared = Compared::default();
    let mut not_compared = 0;
    let mut taken = taken
        .inspect(|line| not_compared += u64::from(*line == BackupLine::EndsByItself))
        .filter_map(BackupLine::row)
        .peekable();
    let mut restored = restored.filter_map(BackupLine::row).peekable();
    loop {
        let order = match (taken.peek(), restored.peek()) {
            (None, None) => break,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(one), Some(other)) => (&one.table, &one.key).cmp(&(&other.table, &other.key)),
        };
        let one = if order.is_le() { taken.next() } else { None };
        let other = if order.is_ge() { restored.next() } else { None };
        let is_marker = |row: &Row| row.table == "doc" && row.key == marker;
        compared.has_marker |= other.as_ref().is_some_and(is_marker);
        if one == other {
            compared.same += 1;
        } else {
            compared.differ += 1;
            let row = one.or(other).map(|row| format!("{} {}", row.table, row.key));
            compared.first_difference = compared.first_difference.take().or(row);
        }
    }
    drop(taken);
    Compared { not_compared, ..compared }
}

impl BackupLine {
    fn row(self) -> Option<Row> {
        match self {
            BackupLine::Row(row) => Some(row),
            BackupLine::EndsByItself | BackupLine::NotKept => None,
        }
    }
}

fn wrong(compared: &Compared, key: &str) -> Vec<String> {
    let first = compared.first_difference.as_deref().unwrap_or_default();
    let all = [
        (
            compared.differ > 0,
            format!("{} rows differ after the restore, the first is {first}", compared.differ),
        ),
        (!compared.has_marker, format!("{key} was acknowledged before the backup, and is not restored")),
    ];
    all.into_iter().filter_map(|(is_so, what)| is_so.then_some(what)).collect()
}

impl RestoreReport {
    pub fn json(&self) -> Value {
        json!(self)
    }

    pub fn text(&self) -> String {
        let Compared { same, differ, not_compared, .. } = &self.compared;
        let mut lines = vec![
            format!("drill restore: cluster {} ({})", self.cluster, self.mode),
            format!(
                "backup     {} rows, {} bytes, at index {}; took {} ms",
                self.rows, self.bytes, self.index, self.backup_ms
            ),
            format!(
                "restore    took {} ms, on a node of this machine that was ready after {} ms",
                self.restore_ms, self.start_ms
            ),
            format!(
                "compared   {same} rows are the same, {differ} differ; {not_compared} end by themselves and were not compared"
            ),
        ];
        match self.wrong.as_slice() {
            [] => lines.push(
                "ok         the backup can be restored, and has what was acknowledged before it".to_string(),
            ),
            wrong => lines.extend(wrong.iter().map(|wrong| format!("wrong      {wrong}"))),
        }
        clean(&lines.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> impl Iterator<Item = BackupLine> {
        text.lines().map(line)
    }

    const TAKEN: &str = r#"eldest-backup 1 {"cluster":"prod"}
doc "a" {"at":"7.1@12","value":"hello"}
doc "drill/1/restore" {"at":"7.1@13","value":"x"}
doc "short" {"at":"7.1@14","value":1,"with":"lease"}
token "last" 17
user "u" {"at":"7.1@15","name":"ann"}
end 5 9c1f03aa"#;

    #[test]
    fn what_a_restore_changes_by_design_is_no_difference() {
        let restored = TAKEN.replace("7.1@", "1.1@").replace("token \"last\" 17", "token \"last\" 99");
        let restored: Vec<&str> = restored.lines().filter(|line| !line.contains("short")).collect();
        let compared = compare(lines(TAKEN), lines(&restored.join("\n")), "drill/1/restore");
        let expected = Compared { same: 3, not_compared: 1, has_marker: true, ..Compared::default() };
        assert_eq!(compared, expected);
        assert_eq!(wrong(&compared, "drill/1/restore"), Vec::<String>::new());
    }

    #[test]
    fn what_is_missing_changed_or_added_is_a_difference() {
        for (from, to, first) in [
            ("\"hello\"", "\"bye\"", "doc a"),
            ("user \"u\"", "user \"v\"", "user u"),
            ("doc \"a\" {\"at\":\"7.1@12\",\"value\":\"hello\"}\n", "", "doc a"),
            ("end 5", "vote \"w\" {}\nend 5", "vote w"),
        ] {
            let restored = TAKEN.replace(from, to);
            let compared = compare(lines(TAKEN), lines(&restored), "drill/1/restore");
            assert_eq!(compared.first_difference.as_deref(), Some(first), "{from}");
            assert_eq!(wrong(&compared, "drill/1/restore").len(), 1, "{from}");
        }
        let compared = compare(lines(TAKEN), lines(TAKEN), "drill/2/restore");
        assert_eq!(wrong(&compared, "drill/2/restore").len(), 1, "the marker is missing");
    }
}
