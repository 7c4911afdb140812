//! Whole-data documents that an operator brings, on the leader: `/override_all_data` replaces everything by one,
//! `/merge_conflict` takes in what is not here yet.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{Response, StatusCode};
use bytes::Bytes;
use tokio::time::{Duration, Instant};

use super::answers;
use super::body;
use super::context::Context;
use super::problem::{Code, Problem};
use crate::driver::api::Written;
use crate::store::{BadDocument, give_up_restore, merge_steps, restore_steps};
use crate::types::Payload;

/// The largest document: it is held in memory while it is cut into steps.
const DOCUMENT_BYTES_MOST: usize = 256 << 20;
/// What a document may take to arrive.
const ARRIVES_WITHIN: Duration = Duration::from_secs(300);

/// How a document becomes records; the number tells its steps from any other's.
type Steps = fn(&str, u64) -> Result<Vec<Payload>, BadDocument>;

pub async fn override_all_data(
    State(context): State<Arc<Context>>,
    request: Request,
) -> Result<Response<Body>, Problem> {
    let (parts, body) = request.into_parts();
    context.admin.check(&parts.headers)?;
    let Written { position, .. } = take(context, &parts, body, restore_steps).await?;
    let body = format!("{{\"snapshot_id\":0,\"index\":{},\"epoch\":\"{}\"}}", position.index, position.epoch);
    Ok(answers::json(StatusCode::OK, body))
}

/// Sides merge in available mode only.
pub async fn merge_conflict(
    State(context): State<Arc<Context>>,
    request: Request,
) -> Result<Response<Body>, Problem> {
    let (parts, body) = request.into_parts();
    context.admin.check(&parts.headers)?;
    let cluster = &context.setup.cluster;
    if !context.setup.settings.is_available() {
        let mode = &cluster.mode;
        let detail =
            format!("the cluster runs in {mode} mode, in which there are never two histories to merge");
        return Err(Problem::new(Code::ModeMismatch, detail).with("mode", mode.as_str()));
    }
    let Written { position, reply, .. } = take(context, &parts, body, merge_steps).await?;
    let rest = reply.json.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or_default();
    let comma = if rest.is_empty() { "" } else { "," };
    let body = format!("{{\"index\":{},\"epoch\":\"{}\"{comma}{rest}}}", position.index, position.epoch);
    Ok(answers::json(StatusCode::OK, body))
}

async fn take(context: Arc<Context>, parts: &Parts, body: Body, steps: Steps) -> Result<Written, Problem> {
    body::check_media_type(&parts.headers)?;
    if let Some(leader) = context.elsewhere() {
        // Not passed on: it is large, and who changes everything says on which node.
        let detail = format!("node {} leads; send the document there", leader.0);
        return Err(Problem::new(Code::NotLeader, detail).leader(leader));
    }
    // Once begun it goes on to its end, whether or not anybody still waits for the answer.
    tokio::spawn(carry_out(context, body, steps)).await.map_err(|_| lost())?
}

async fn carry_out(context: Arc<Context>, body: Body, steps: Steps) -> Result<Written, Problem> {
    let Some(_seat) = context.restores.enter() else {
        let problem = Problem::new(Code::TooManyRequests, "another document is being taken in");
        return Err(problem.with("bound", "documents at a time"));
    };
    let text = body::read(body, DOCUMENT_BYTES_MOST, Instant::now() + ARRIVES_WITHIN).await?;
    let number = context.draw();
    let steps = cut(text, number, steps).await?;
    Ok(context.handle.restore(steps, give_up_restore(number)).await?)
}

async fn cut(text: Bytes, number: u64, steps: Steps) -> Result<Vec<Payload>, Problem> {
    let cutting = tokio::task::spawn_blocking(move || {
        let text =
            std::str::from_utf8(&text).map_err(|_| Problem::new(Code::BadJson, "the body is not UTF-8"))?;
        steps(text, number).map_err(|bad| match bad.path.as_str() {
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
    super::errors::outcome_unknown("taking the document in broke off")
}
