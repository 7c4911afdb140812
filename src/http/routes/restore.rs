//! An operator sends a whole-data document to the leader: `/override_all_data` replaces all data by it, `/merge_conflict` adds what is
//! missing here.
//!
//! ```text
//!   body, up to 256 MiB ─► a thread: cut into steps ─► the loop: parts, last record (P46)
//! ```
//!
//! The text is held as a whole, because the document is one JSON value; `backups` takes larger states row by
//! row. Nothing is changed before the whole document has been read.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use bytes::Bytes;
use tokio::time::{Duration, Instant};

use crate::driver::handle::Written;
use crate::http::access::Principal;
use crate::http::admission::Place;
use crate::http::answer::{self, Answer, Code, Problem, outcome_unknown};
use crate::http::request::{ClientCall, Context, check_media_type, read_body};
use crate::store::{BadDocument, Steps, merge_steps, restore_steps};

/// The maximum size of a document: it is held in memory while it is cut into steps.
const DOCUMENT_BYTES_MOST: usize = 256 << 20;
/// The time for a document to arrive.
const ARRIVES_WITHIN: Duration = Duration::from_secs(300);

/// Cuts a document into records; the number distinguishes its steps from those of any other document. Otherwise the last record
/// of one document could apply parts of another one that an attempt had staged before it broke off.
type Cut = fn(&str, u64) -> Result<Steps, BadDocument>;

pub async fn override_all_data(State(context): State<Arc<Context>>, call: ClientCall) -> Answer {
    let Written { position, .. } = restore(context, call, restore_steps).await?;
    let body = format!("{{\"snapshot_id\":0,\"index\":{},\"epoch\":\"{}\"}}", position.index, position.epoch);
    Ok(answer::json(StatusCode::OK, body))
}

/// Sides merge only in available mode.
pub async fn merge_conflict(State(context): State<Arc<Context>>, call: ClientCall) -> Answer {
    let cluster = &context.setup.cluster;
    if !context.setup.settings.is_available() {
        let mode = &cluster.mode;
        let detail = format!("the cluster runs in {mode} mode, which never has two histories to merge");
        return Err(Problem::new(Code::ModeMismatch, detail).with("mode", mode.as_str()));
    }
    let Written { position, reply, .. } = restore(context, call, merge_steps).await?;
    let rest = reply.json.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or_default();
    let comma = if rest.is_empty() { "" } else { "," };
    let body = format!("{{\"index\":{},\"epoch\":\"{}\"{comma}{rest}}}", position.index, position.epoch);
    Ok(answer::json(StatusCode::OK, body))
}

async fn restore(context: Arc<Context>, call: ClientCall, cut: Cut) -> Result<Written, Problem> {
    check_media_type(&call.head.parts.headers)?;
    if let Some(leader) = context.other_leader() {
        // The call is not forwarded: the document is large, and an operator who replaces all data must name the node.
        let detail = format!("node {} leads; send the document there", leader.0);
        return Err(Problem::new(Code::NotLeader, detail).leader(leader));
    }
    // One place for both kinds of documents and for backups: the memory of one is the bound.
    let place = context.restores.take(call.head.asker.sharers())?;
    // A restore that has begun runs to its end, even if the caller disconnects.
    tokio::spawn(carry_out(context, call.head.asker.principal, call.body, cut, place))
        .await
        .map_err(|_| lost())?
}

async fn carry_out(
    context: Arc<Context>,
    principal: Principal,
    body: Body,
    how: Cut,
    _place: Place,
) -> Result<Written, Problem> {
    let text = read_body(body, DOCUMENT_BYTES_MOST, Instant::now() + ARRIVES_WITHIN).await?;
    let number = context.unique_number();
    let document = cut(text, number, how).await?;
    context.is_still_let_in(&principal)?;
    Ok(context.handle.restore(document).await?)
}

async fn cut(text: Bytes, number: u64, how: Cut) -> Result<Steps, Problem> {
    let cutting = tokio::task::spawn_blocking(move || {
        let text =
            std::str::from_utf8(&text).map_err(|_| Problem::new(Code::BadJson, "the body is not UTF-8"))?;
        how(text, number).map_err(|bad| match bad.path.as_str() {
            path if bad.is_too_large() => {
                Problem::new(Code::BodyTooLarge, bad.to_string()).with("field", path)
            }
            "" => Problem::new(Code::BadJson, bad.to_string()),
            path => Problem::field(path, bad.to_string()),
        })
    });
    cutting.await.map_err(|_| lost())?
}

fn lost() -> Problem {
    outcome_unknown("the restore was interrupted")
}
