//! `/override_all_data`: an operator replaces all data by a document, on the leader.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode};
use bytes::Bytes;
use tokio::time::{Duration, Instant};

use super::answers;
use super::body;
use super::context::Context;
use super::problem::{Code, Problem};
use crate::driver::api::Written;
use crate::store::{give_up_restore, restore_steps};
use crate::types::Payload;
use crate::wire::header;

/// The largest document: it is held in memory while it is cut into steps.
const DOCUMENT_BYTES_MOST: usize = 256 << 20;
/// What a document may take to arrive.
const ARRIVES_WITHIN: Duration = Duration::from_secs(300);

pub async fn override_all_data(
    State(context): State<Arc<Context>>,
    request: Request,
) -> Result<Response<Body>, Problem> {
    let (parts, body) = request.into_parts();
    if parts.headers.contains_key(header::MESSAGE) {
        let detail = "in safe mode no node overrides another one";
        return Err(Problem::new(Code::ModeMismatch, detail));
    }
    context.admin.check(&parts.headers)?;
    body::check_media_type(&parts.headers)?;
    if let Some(leader) = context.elsewhere() {
        // Not passed on: it is large, and who replaces everything says on which node.
        let detail = format!("node {} leads; restore there", leader.0);
        return Err(Problem::new(Code::NotLeader, detail).leader(leader));
    }
    // Once begun it goes on to its end, whether or not anybody still waits for the answer.
    let Written { position, .. } = tokio::spawn(restore(context, body)).await.map_err(|_| lost())??;
    let body = format!("{{\"snapshot_id\":0,\"index\":{},\"epoch\":\"{}\"}}", position.index, position.epoch);
    Ok(answers::json(StatusCode::OK, body))
}

async fn restore(context: Arc<Context>, body: Body) -> Result<Written, Problem> {
    let Some(_seat) = context.restores.enter() else {
        let problem = Problem::new(Code::TooManyRequests, "another restore is under way");
        return Err(problem.with("bound", "restores at a time"));
    };
    let text = body::read(body, DOCUMENT_BYTES_MOST, Instant::now() + ARRIVES_WITHIN).await?;
    let number = context.draw();
    let steps = cut(text, number).await?;
    Ok(context.handle.restore(steps, give_up_restore(number)).await?)
}

async fn cut(text: Bytes, restore: u64) -> Result<Vec<Payload>, Problem> {
    let cutting = tokio::task::spawn_blocking(move || {
        let text =
            std::str::from_utf8(&text).map_err(|_| Problem::new(Code::BadJson, "the body is not UTF-8"))?;
        restore_steps(text, restore).map_err(|bad| match bad.path.as_str() {
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
    super::errors::outcome_unknown("the restore broke off")
}
