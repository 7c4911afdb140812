//! `eldest restore`: replaces all data by a backup.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use clap::Parser;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::interval;

use super::backup::{checked, counted};
use super::client::{Target, json};
use super::exit::Failure;
use super::out::{clean, note};
use super::output::Output;
use super::pages::cell;
use super::progress::{EVERY, Progress};
use crate::client::{Answer, BodyPieces, CallError, Caller, Method, Request};
use crate::store::TOKEN_FLOOR_MOST;

/// The text that is shown if the command was not confirmed.
const MEANING: &str = "\
A restore replaces all documents, users, elections and votes of the cluster with those of the backup, for every \
client at
once. All writes since the backup are lost. Run `eldest backup --out FILE` first to save the current state.";

/// A node allows half an hour for the file to arrive, and at most an hour and a half for its steps.
pub const WITHIN: Duration = Duration::from_secs(2 * 60 * 60);

const PIECE: usize = 256 << 10;
const AHEAD: usize = 4;

#[derive(Debug, Parser)]
#[command(after_help = "\
Example:
  eldest restore prod.backup --yes
  eldest restore prod.backup --yes --other-cluster --url http://10.0.0.1:9000
  eldest restore prod.backup --yes --token-floor 1790000000000000

All data is replaced at once, or nothing is. Roles and processes stay as they are; a backup has none. The backup is checked
before anything is sent, and again by the node before anything changes. To replace the data of a different cluster that is
not empty, use --other-cluster.

New fencing tokens stay greater than all earlier ones: than those in the backup, and, by the clock, than those granted
after it. A cluster whose clock is behind the backup cannot know the latter, and refuses. Correct the clocks, or give the
greatest token with --token-floor.")]
pub struct RestoreArgs {
    /// A file written by `eldest backup`
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Confirm that all data of the cluster is to be replaced
    #[arg(long)]
    yes: bool,
    /// Replace the data of a cluster other than the one in the backup
    #[arg(long)]
    other_cluster: bool,
    /// The greatest fencing token ever granted; the next one will be greater
    #[arg(long, value_name = "TOKEN", value_parser = clap::value_parser!(u64).range(1..=TOKEN_FLOOR_MOST))]
    token_floor: Option<u64>,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

pub async fn run(args: &RestoreArgs) -> Result<(), Failure> {
    let head = checked(&args.file)?;
    if !args.yes {
        return Err(Failure::NotConfirmed { what: MEANING });
    }
    let caller = args.target.caller()?;
    let mut path = format!("/v1/restore?other_cluster={}", args.other_cluster);
    if let Some(floor) = args.token_floor {
        path.push_str(&format!("&token_floor={floor}"));
    }
    let leader = leader(&caller, &args.target.url, &path).await?;
    let answer = send(&caller, &leader, &path, &args.file).await?;
    if !args.output.is_for_scripts() {
        advise(&answer);
    }
    let done = json(&answer.taken()?)?;
    if done["other_cluster"] == true && !args.output.is_for_scripts() {
        note(&format!("the backup is of another cluster: {} at index {}", head.cluster, head.index));
    }
    args.output.done(&done, || sentence(&done))
}

fn sentence(done: &Value) -> String {
    let backup = &done["backup"];
    let [cluster, from, index, epoch] =
        [&backup["cluster"], &backup["index"], &done["index"], &done["epoch"]].map(cell);
    let rows = counted(done["rows"].as_u64().unwrap_or_default());
    clean(&format!(
        "all data is replaced by the backup of cluster {cluster} at index {from}, {rows}; the cluster is now at index {index} in epoch {epoch}"
    ))
}

/// Names the flag that allows what was refused. Scripts read the rule in the problem.
fn advise(answer: &Answer) {
    let rule = answer.problem().and_then(|mut problem| problem.members.remove("rule"));
    match rule.as_ref().and_then(|rule| rule.as_str()) {
        Some("other_cluster") => {
            note("to replace the data of another cluster anyway, use --other-cluster");
        }
        Some("token_ahead") => {
            note("if no fencing token ever granted is greater than TOKEN, use --token-floor TOKEN");
        }
        _ => {}
    }
}

/// Sends the file, and shows how far it is, and that the cluster still works after all was sent.
async fn send(caller: &Caller, leader: &str, path: &str, file: &Path) -> Result<Answer, Failure> {
    let all = file.metadata().map_err(Failure::file(file))?.len();
    let sent = Arc::new(AtomicU64::new(0));
    let upload = caller.upload(leader, path, counting(file, sent.clone())?, WITHIN);
    tokio::pin!(upload);
    let (mut progress, mut ticks) = (Progress::begin(), interval(EVERY));
    loop {
        tokio::select! {
            answer = &mut upload => return Ok(answer?),
            _ = ticks.tick() => match sent.load(Ordering::Relaxed) {
                sent if sent < all => progress.bytes("sent", sent, Some(all)),
                _ => progress.waits("waiting for the cluster"),
            },
        }
    }
}

/// Finds the leader by sending it an empty body. The file itself is sent only once, so it must go to the right node;
/// only the leader refuses an empty body as a bad backup.
async fn leader(caller: &Caller, urls: &[String], path: &str) -> Result<String, Failure> {
    let nothing = Request::new(Method::POST, path).header("content-type", "text/plain");
    let answer = caller.call(urls, &nothing).await?;
    match answer.problem() {
        Some(problem) if problem.code == "bad_field" => Ok(answer.url),
        _ => {
            let url = answer.url.clone();
            answer.taken()?;
            Err(CallError::Strange { url, why: "it did not accept the backup".to_string() }.into())
        }
    }
}

/// Reads the file on a separate thread, because files block.
pub fn pieces(path: &Path) -> Result<BodyPieces, Failure> {
    counting(path, Arc::default())
}

/// Counts the bytes that are taken to be sent.
fn counting(path: &Path, taken: Arc<AtomicU64>) -> Result<BodyPieces, Failure> {
    let mut file = File::open(path).map_err(Failure::file(path))?;
    let (tell, pieces) = mpsc::channel(AHEAD);
    tokio::task::spawn_blocking(move || {
        loop {
            let mut piece = vec![0; PIECE];
            let read = file.read(&mut piece);
            let ends = matches!(read, Ok(0) | Err(_));
            let piece = read.map(|length| {
                piece.truncate(length);
                Bytes::from(piece)
            });
            let length = piece.as_ref().map_or(0, Bytes::len) as u64;
            if matches!(&piece, Ok(piece) if piece.is_empty()) || tell.blocking_send(piece).is_err() || ends {
                return;
            }
            taken.fetch_add(length, Ordering::Relaxed);
        }
    });
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn people_get_a_sentence() {
        let done = json!({"index": 40, "epoch": "7.1", "digest": "0", "rows": 3, "other_cluster": false,
            "backup": {"cluster": "prod", "index": 12}});
        let expected = "all data is replaced by the backup of cluster prod at index 12, 3 rows; the cluster is now at index 40 in epoch 7.1";
        assert_eq!(sentence(&done), expected);
    }
}
