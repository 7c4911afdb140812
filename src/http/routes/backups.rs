//! Backups: `GET /v1/backup` gives the whole state as one text, and `POST /v1/restore` takes one in.
//!
//! An operator sends a backup to the leader, and it replaces all data. It is parsed as it arrives: only the resulting restore is held in
//! memory, which is bounded by the limit of the state. Nothing is changed before the last byte has been checked.
//!
//! ```text
//!   body ─► pieces ─► a thread: BackupReader, checks each row ─► steps ─► floor, token ─► the loop: parts, last record (P46)
//!             └ read on after an error, so that the client gets to read why
//! ```
//!
//! The replica checks before the first part, and again before the last, which data the backup may replace
//! (P57).

use std::sync::Arc;
use std::time::Instant as Moment;

use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use bytes::Bytes;
use serde::Serialize;
use tokio::sync::mpsc;
use tokio::time::{Duration, Instant};

use crate::driver::handle::{Level, Written};
use crate::http::access::Principal;
use crate::http::admission::Place;
use crate::http::answer::{self, Answer, Code, Problem, TEXT, outcome_unknown};
use crate::http::request::{ClientCall, ClientRequest, Context, IDEMPOTENCY_KEY, LongBody};
use crate::http::routes::pieces::streamed;
use crate::http::url::Query;
use crate::storage::node::backup::{self, BackupHead, BackupReader, BadBackup};
use crate::store::{RowSteps, Steps, TOKEN_FLOOR_MOST};

/// The size of the largest state, unless an operator allows more. The text of the backup is not held in memory.
const BACKUP_BYTES_MOST: usize = 2 << 30;
/// The time for a backup to arrive: enough for the largest one at ten megabits a second.
const ARRIVES_WITHIN: Duration = Duration::from_secs(30 * 60);
/// The number of pieces that wait to be read.
const AHEAD: usize = 4;

/// The operator's statements about the backup and this cluster (P57).
#[derive(Clone, Copy)]
struct Word {
    replaces_other: bool,
    floor: Option<u64>,
}

#[derive(Serialize)]
struct Restored<'a> {
    index: u64,
    epoch: String,
    /// The digest of the restored state, if there was no write since.
    digest: Option<String>,
    rows: u64,
    /// The backup came from another cluster.
    other_cluster: bool,
    backup: &'a BackupHead,
}

pub async fn restore(State(context): State<Arc<Context>>, call: ClientCall) -> Answer {
    let ClientCall { head, body } = call;
    check_kind(&head.parts)?;
    takes_no_key(&head.parts)?;
    let word = Word::read(&head.parts)?;
    if let Some(leader) = context.other_leader() {
        // The call is not forwarded: the backup is large, and an operator who replaces all data must name the node.
        let detail = format!("node {} leads; send the backup there", leader.0);
        return Err(Problem::new(Code::NotLeader, detail).leader(leader));
    }
    // The place is taken before the body is read. The next restore is refused at once, and does not wait
    // behind a body of half an hour.
    let place = context.restores.take(head.asker.sharers())?;
    // A restore that has begun runs to its end, even if the caller disconnects.
    let restoring = carry_out(context, head.asker.principal, body, word, place);
    tokio::spawn(restoring).await.map_err(|_| lost())?
}

/// A web page can send text, but the check of its origin stops it.
fn check_kind(parts: &Parts) -> Result<(), Problem> {
    const KNOWN: [&str; 3] = ["text/plain", "application/octet-stream", "application/x-www-form-urlencoded"];
    let kind = parts.headers.get(CONTENT_TYPE).map(|value| value.to_str().unwrap_or("?"));
    let essence = kind.map(|kind| kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
    match essence.as_deref() {
        Some(kind) if !KNOWN.contains(&kind) => {
            let detail = "send the backup as it is, with `content-type: text/plain` or none";
            Err(Problem::new(Code::UnsupportedMediaType, detail))
        }
        _ => Ok(()),
    }
}

/// The records of a restore do not note that a call was carried out: a retry would run again, and replace later writes.
fn takes_no_key(parts: &Parts) -> Result<(), Problem> {
    match parts.headers.contains_key(IDEMPOTENCY_KEY) {
        false => Ok(()),
        true => {
            let detail = "a restore takes no idempotency key: if the outcome is unknown, read the data before \
                sending the backup again";
            Err(Problem::field("Idempotency-Key", detail))
        }
    }
}

impl Word {
    fn read(parts: &Parts) -> Result<Word, Problem> {
        let query = Query::parse(parts.uri.query(), &["other_cluster", "token_floor"])?;
        let replaces_other = match query.more("other_cluster") {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => return Err(Problem::field("other_cluster", "other_cluster must be true or false")),
        };
        let floor = query.more("token_floor").map(floor).transpose()?;
        Ok(Word { replaces_other, floor })
    }

    /// Rejects a floor below the newest token in the backup: an operator who does not know that token does not know later ones
    /// either.
    fn add_to(self, steps: &mut Steps) -> Result<(), Problem> {
        let token = steps.guard.token;
        if self.floor.is_some_and(|floor| floor < token) {
            let detail = format!(
                "the backup contains the token {token}: token_floor must not be less than any token ever granted"
            );
            return Err(Problem::field("token_floor", detail));
        }
        steps.guard.floor = self.floor;
        Ok(())
    }
}

fn floor(text: &str) -> Result<u64, Problem> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let floor = text.parse().ok().filter(|floor| digits && (1..=TOKEN_FLOOR_MOST).contains(floor));
    let detail = || {
        format!(
            "token_floor must be an integer from 1 to {TOKEN_FLOOR_MOST}, the microsecond in which the year 2200 begins"
        )
    };
    floor.ok_or_else(|| Problem::field("token_floor", detail()))
}

async fn carry_out(
    context: Arc<Context>,
    principal: Principal,
    body: Body,
    word: Word,
    _place: Place,
) -> Answer {
    let reader = read(&context, body).await?;
    let finished = tokio::task::spawn_blocking(move || reader.finish(word.replaces_other));
    let (head, mut steps): (BackupHead, Steps) =
        finished.await.map_err(|_| lost())?.map_err(|error| bad(&error))?;
    word.add_to(&mut steps)?;
    // A backup may take half an hour to arrive. An operator whose token was revoked meanwhile replaces
    // nothing.
    context.is_still_let_in(&principal)?;
    let Written { position, .. } = context.handle.restore(steps).await?;
    // The digest is only shown if this node has applied exactly the restore.
    let view = context.handle.read(Level::Local).await.ok().filter(|view| view.index == position.index);
    Ok(answer::json(
        StatusCode::OK,
        serde_json::to_vec(&Restored {
            index: position.index,
            epoch: position.epoch.to_string(),
            digest: view.map(|view| format!("{:016x}", view.store.digest())),
            rows: head.rows,
            other_cluster: !head.is_of(&context.setup.home()),
            backup: &head,
        })
        .unwrap_or_default(),
    ))
}

/// Runs on a separate thread: checking a gigabyte of rows takes half a minute.
async fn read(context: &Context, body: Body) -> Result<BackupReader, Problem> {
    let most = context.setup.settings.limits.state_bytes;
    let reader = BackupReader::new(RowSteps::new(context.unique_number(), most), context.setup.home());
    let (pieces, taken) = mpsc::channel(AHEAD);
    let reading = tokio::task::spawn_blocking(move || take(reader, taken));
    let mut body = LongBody::new(body, BACKUP_BYTES_MOST, Instant::now() + ARRIVES_WITHIN);
    while let Some(piece) = body.next().await? {
        let began = Moment::now();
        // An error is reported after the whole body has arrived: closing the connection earlier would lose the response.
        let _ = pieces.send(piece).await;
        body.exclude_pause(began.elapsed());
    }
    drop(pieces);
    reading.await.map_err(|_| lost())?.map_err(|error| bad(&error))
}

fn take(mut reader: BackupReader, mut pieces: mpsc::Receiver<Bytes>) -> Result<BackupReader, BadBackup> {
    while let Some(piece) = pieces.blocking_recv() {
        reader.take(&piece)?;
    }
    Ok(reader)
}

fn bad(error: &BadBackup) -> Problem {
    let problem = match error.is_too_large() {
        true => Problem::new(Code::StateFull, error.to_string()),
        false => Problem::field("body", error.to_string()),
    };
    match error.line() {
        Some(line) => problem.with("line", line),
        None => problem,
    }
}

/// The task ended without a result, and the steps may be with the loop: the outcome is not known.
fn lost() -> Problem {
    outcome_unknown("the restore was interrupted")
}

// The whole state as one text, for an operator to keep: the state that this node has applied, or that of the leader. The call is an order,
// one at a time, and its response is streamed with backpressure.

/// The call is not forwarded: an operator who wants another level than this node's own calls the leader.
/// The state is a frozen copy: writes go on while it is sent, and the backup shows none of them.
pub async fn backup(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    let level = request.query(&["level"])?.level.unwrap_or(Level::Local);
    let place = context.backups.take(request.sharers())?;
    let view = request.in_time(context.handle.read(level)).await??;
    let home = context.setup.home();
    let timeouts = request.head.asker.timeouts();
    Ok(streamed(TEXT, place, timeouts, move |out| {
        let head = BackupHead::new(&home, &view.store, crate::driver::wall_time());
        backup::write(&head, &view.store, out)
    }))
}
