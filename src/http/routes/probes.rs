//! Probes tell people, load balancers and supervisors how this node is.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use serde_json::json;
use tokio::time::Instant;

use crate::driver::handle::{Denied, Level};
use crate::http::answer::{self, Answer, Code, Failure, Problem, TEXT};
use crate::http::dispatch;
use crate::http::request::{ClientRequest, Context, Kind};

/// Who asks whether a node is ready asks again soon; a late yes is a no.
const READY_MOST: Duration = Duration::from_secs(1);

const HELP: &str = include_str!("help.txt");

pub fn root() -> Response<Body> {
    answer::typed(StatusCode::OK, TEXT, HELP)
}

/// The process lives and takes calls. That the loop lives is not request: if it ends, the process does.
pub async fn livez() -> Response<Body> {
    answer::typed(StatusCode::OK, TEXT, "ok\n")
}

pub async fn status(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    request.query(&[])?;
    match request.in_time(context.handle.status()).await? {
        Some(status) => Ok(answer::data(&status)),
        None => Err(Denied::Stopping.into()),
    }
}

/// Makes a linear read, the way a client's would go: here on the leader, in one hop to it elsewhere.
pub async fn readyz(State(context): State<Arc<Context>>, mut request: ClientRequest) -> Answer {
    request.query(&[])?;
    request.deadline = request.deadline.min(Instant::now() + READY_MOST);
    let confirmed = dispatch::at_leader(&context, &request, Kind::Read, false, || confirm(&context)).await;
    confirmed.map_err(|problem| problem.status(StatusCode::SERVICE_UNAVAILABLE))
}

async fn confirm(context: &Context) -> Result<Response<Body>, Failure> {
    context.handle.read(Level::Linear).await?;
    Ok(answer::data(&json!({"ready": true})))
}

/// Whether writes sent here need no hop. By the lease, at the moment of answering.
pub async fn leader(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    request.query(&[])?;
    if request.in_time(context.handle.is_leader()).await? {
        return Ok(answer::data(&json!({"leader": true})));
    }
    Err(Problem::new(Code::NotLeader, "this node does not lead").status(StatusCode::SERVICE_UNAVAILABLE))
}
