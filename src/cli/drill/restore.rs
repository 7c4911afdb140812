//! `eldest drill restore`: proves that a backup of the cluster can be restored, without touching the cluster's data.
//!
//! ```text
//!  write a document ─▶ backup ─▶ restore it on a scratch node on this machine ─▶ backup of that node ─▶ compare
//! ```
//!
//! The document is acknowledged before the backup begins, so the backup must have it. The document, the node and its
//! folder are removed when the drill ends, after a failure and after a signal too.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Value, json};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::sleep;

use super::args::DrillArgs;
use super::compare::{Compared, compare_files};
use super::scratch::Scratch;
use super::writers::is_removed;
use crate::cli::backup::take_to;
use crate::cli::client::json as answered;
use crate::cli::exit::Failure;
use crate::cli::out::{clean, note};
use crate::cli::restore::{WITHIN, pieces};
use crate::cli::signals::Signals;
use crate::cli::span::millis;
use crate::client::{CallError, Client, Error, If, random_id};
use crate::storage::node::backup::BackupHead;
use crate::store::TOKEN_FLOOR_MOST;

/// A write without an answer may take effect this long after its client gave up.
const LATE_MAX: Duration = Duration::from_secs(10);

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
    /// `None` if the node refused the backup.
    restore_ms: Option<u64>,
    compared: Option<Compared>,
    pub wrong: Vec<String>,
    /// The signal that came after the comparison, while the drill removed what it had made.
    #[serde(skip)]
    pub interrupted: Option<i32>,
}

pub async fn run(args: &DrillArgs, client: &Client) -> Result<RestoreReport, Failure> {
    let mut signals = Signals::with_hangup().map_err(Failure::NoRuntime)?;
    let mut scratch = Scratch::prepare()?;
    let mut marker = Marker::write(client, format!("drill/{}/restore", &random_id()[..8]));
    let mut interrupted = None;
    let mut ended = tokio::select! {
        ended = course(args, &mut marker, &mut scratch) => ended,
        signal = signals.next() => {
            interrupted = Some(interrupted_by(signal));
            Err(Failure::BrokenOff { signal })
        }
    };
    // The copy of the data goes first, and no signal interrupts that.
    let folder = scratch.folder.clone();
    if let Err(failure) = scratch.end().await {
        let what = format!("all data of the cluster are still in {}; remove it: {failure}", folder.display());
        note(&what);
        if let Ok(report) = &mut ended {
            report.wrong.push(what);
        }
    }
    let key = marker.key.clone();
    let removal = marker.remove(client);
    tokio::pin!(removal);
    let is_gone = loop {
        tokio::select! {
            biased;
            signal = signals.next() => {
                if interrupted.replace(signal).is_some() {
                    break false;
                }
                interrupted_by(signal);
            }
            is_gone = &mut removal => break is_gone,
        }
    };
    if !is_gone {
        note(&format!("{key} could not be removed: eldest doc delete {key}"));
    }
    ended.map(|report| RestoreReport { interrupted, ..report })
}

fn interrupted_by(signal: i32) -> i32 {
    note(
        "the drill was interrupted; cleaning up (a second signal ends it once the copy of the data is removed)",
    );
    signal
}

/// The document that the backup must contain. A task of its own writes it: a write that was broken off could take effect
/// after the removal.
struct Marker {
    key: String,
    write: Option<JoinHandle<Result<String, Error>>>,
    is_refused: bool,
    is_in_doubt: bool,
}

impl Marker {
    fn write(client: &Client, key: String) -> Marker {
        let (client, of_task) = (client.clone(), key.clone());
        let write =
            tokio::spawn(
                async move { client.put_doc(&of_task, &"written before the backup", If::Absent).await },
            );
        Marker { key, write: Some(write), is_refused: false, is_in_doubt: false }
    }

    /// Waits for the answer to the write.
    async fn is_written(&mut self) -> Result<(), Failure> {
        // The handle stays until there is an answer, so that this wait may be broken off.
        let Some(write) = &mut self.write else { return Ok(()) };
        let written = write.await;
        self.write = None;
        self.is_refused = matches!(written, Ok(Err(Error::Problem(_) | Error::Unavailable { .. })));
        // A write that panicked has an unknown outcome, too.
        self.is_in_doubt =
            matches!(written, Err(_) | Ok(Err(Error::Indeterminate { .. } | Error::Strange { .. })));
        match written {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(not_written(&self.key, error)),
            Err(error) => {
                Err(Failure::NotNow { what: format!("the write of {} broke off: {error}", self.key) })
            }
        }
    }

    /// Removes the document after its write has ended. If the outcome of the write is unknown, it may take effect
    /// after the first removal, so there is a second one. Returns whether the document is gone.
    async fn remove(mut self, client: &Client) -> bool {
        // The course of the drill has reported the error, or was interrupted.
        let _ = self.is_written().await;
        let is_gone = is_removed(client, &self.key).await;
        if !self.is_in_doubt {
            // A caller that may not write may not remove either, and there is nothing to remove.
            return is_gone || self.is_refused;
        }
        note(&format!("the outcome of a write is unknown; {} is removed again in {LATE_MAX:?}", self.key));
        sleep(LATE_MAX).await;
        is_removed(client, &self.key).await
    }
}

/// A refusal keeps its exit code.
fn not_written(key: &str, error: Error) -> Failure {
    match error {
        Error::Problem(problem) | Error::NotFound(problem) => Failure::Call(CallError::Refused(problem)),
        error => Failure::NotNow { what: format!("cannot write {key}: {error}") },
    }
}

async fn course(
    args: &DrillArgs,
    marker: &mut Marker,
    scratch: &mut Scratch,
) -> Result<RestoreReport, Failure> {
    marker.is_written().await?;
    let (taken, restored) = (scratch.folder.join("taken"), scratch.folder.join("restored"));
    let began = Instant::now();
    let head = take_to(&args.target, &taken).await?;
    let backup_ms = millis(began.elapsed());
    let bytes = fs::metadata(&taken).map_err(Failure::file(&taken))?.len();
    scratch.has_room(bytes)?;
    note(&format!(
        "the backup has {} rows and {bytes} bytes; starting a node in {}",
        head.rows,
        scratch.folder.display()
    ));
    let began = Instant::now();
    scratch.start(&head.mode, args.within).await?;
    let start_ms = millis(began.elapsed());
    let report = RestoreReport::of(head, bytes, (backup_ms, start_ms));
    let began = Instant::now();
    if let Some(refused) = restore(scratch, &taken).await? {
        return Ok(report.refused(&refused));
    }
    let restore_ms = millis(began.elapsed());
    scratch.still_runs()?;
    take_to(&scratch.target, &restored).await?;
    let key = marker.key.clone();
    let compared = spawn_blocking(move || compare_files(&taken, &restored, &key)).await;
    let compared = compared.map_err(|error| Failure::NoRuntime(error.into()))??;
    Ok(report.restored(restore_ms, compared, &marker.key))
}

/// Restores the backup on the scratch node. Returns the text of a refusal.
async fn restore(scratch: &mut Scratch, taken: &Path) -> Result<Option<String>, Failure> {
    // The clock of the cluster may be ahead of this machine's, and the node would refuse its tokens. No token of this
    // node is ever used, so the greatest floor is a true one.
    let path = format!("/v1/restore?other_cluster=true&token_floor={TOKEN_FLOOR_MOST}");
    let caller = scratch.target.caller()?;
    scratch.still_runs()?;
    let sent = caller.upload(&scratch.target.url[0], &path, pieces(taken)?, WITHIN).await;
    // An answer that did not come has its reason in the end of the node.
    scratch.still_runs()?;
    match sent?.taken() {
        Ok(answer) => answered(&answer).map(|_| None),
        Err(error) => is_finding(error).map(Some),
    }
}

/// A refusal is what the drill looks for, unless it says that the node cannot restore anything now, or that the backup
/// came too slowly because this process stood still.
fn is_finding(error: CallError) -> Result<String, Failure> {
    match error {
        CallError::Refused(problem) if !matches!(problem.status, 408 | 421 | 429 | 503 | 504) => {
            Ok(problem.to_string())
        }
        error => Err(error.into()),
    }
}

impl RestoreReport {
    fn of(head: BackupHead, bytes: u64, (backup_ms, start_ms): (u64, u64)) -> RestoreReport {
        let BackupHead { cluster, mode, index, rows, .. } = head;
        let (restore_ms, compared, wrong) = (None, None, Vec::new());
        let drill = "restore";
        RestoreReport {
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
            interrupted: None,
        }
    }

    fn refused(self, refusal: &str) -> RestoreReport {
        RestoreReport { wrong: vec![format!("the backup cannot be restored: {refusal}")], ..self }
    }

    fn restored(self, restore_ms: u64, compared: Compared, marker: &str) -> RestoreReport {
        let wrong = compared.wrong(marker);
        RestoreReport { restore_ms: Some(restore_ms), compared: Some(compared), wrong, ..self }
    }

    pub fn json(&self) -> Value {
        json!(self)
    }

    pub fn text(&self) -> String {
        let mut lines = vec![
            format!("drill restore: cluster {} ({})", self.cluster, self.mode),
            format!(
                "backup     {} rows, {} bytes, at index {}; took {} ms",
                self.rows, self.bytes, self.index, self.backup_ms
            ),
        ];
        let took = self.restore_ms.map_or("was refused".to_string(), |ms| format!("took {ms} ms"));
        lines.push(format!(
            "restore    {took}, on a node of this machine that was ready after {} ms",
            self.start_ms
        ));
        if let Some(Compared { same, differ, not_compared, .. }) = &self.compared {
            lines.push(format!(
                "compared   {same} rows are the same, {differ} differ; {not_compared} end by themselves and were not compared"
            ));
        }
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
    use crate::client::Problem;

    fn problem(status: u16, code: &str, detail: &str) -> Box<Problem> {
        let (code, detail) = (code.to_string(), detail.to_string());
        Box::new(Problem { status, code, detail, ..Problem::default() })
    }

    fn report() -> RestoreReport {
        let head = r#"eldest-backup 1 {"cluster":"prod","cluster_id":null,"mode":"safe","node":1,"index":12,
            "epoch":"7.1","time":"2026-01-01T00:00:00Z","digest":"0","rows":3}"#;
        RestoreReport::of(BackupHead::read(head).expect("a head"), 300, (4, 5))
    }

    #[test]
    fn a_refused_backup_is_the_finding() {
        let refused = is_finding(CallError::Refused(problem(507, "state_full", "the state is too large")));
        let report = report().refused(&refused.expect("a finding"));
        assert_eq!((report.wrong.len(), &report.json()["compared"]), (1, &Value::Null));
        let expected = "\
drill restore: cluster prod (safe)
backup     3 rows, 300 bytes, at index 12; took 4 ms
restore    was refused, on a node of this machine that was ready after 5 ms
wrong      the backup cannot be restored: refused: the state is too large (state_full, 507)";
        assert_eq!(report.text(), expected);
        let busy = is_finding(CallError::Refused(problem(503, "disk_full", "the disk is full")));
        assert_eq!(busy.expect_err("no finding").code(), 9);
        let slow = is_finding(CallError::Refused(problem(408, "request_timeout", "the body took too long")));
        assert!(slow.is_err(), "the drill was stopped, and the backup may be sound");
    }

    #[test]
    fn a_difference_is_wrong() {
        let first_difference = Some("doc a".to_string());
        let compared =
            Compared { same: 2, differ: 1, first_difference, has_marker: true, ..Compared::default() };
        let report = report().restored(6, compared, "drill/1/restore");
        assert_eq!(report.wrong, ["1 rows differ after the restore, the first is doc a"]);
        assert!(report.text().ends_with("\nwrong      1 rows differ after the restore, the first is doc a"));
        assert_eq!(report.json()["compared"]["differ"], 1);
        let well = self::report().restored(6, Compared { has_marker: true, ..Compared::default() }, "");
        assert!(well.text().contains("\nok         "), "{}", well.text());
    }

    #[test]
    fn a_refused_write_keeps_its_exit_code() {
        for (status, expected) in [(401, 4), (403, 4), (507, 4)] {
            let failure = not_written("drill/1", Error::Problem(problem(status, "no", "not you")));
            assert_eq!(failure.code(), expected, "{status}");
        }
        let failure = not_written("drill/1", Error::Unavailable { tried: Vec::new() });
        assert_eq!(failure.code(), 9);
    }
}
