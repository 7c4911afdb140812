//! Looking at the node: for people, for load balancers, for supervisors.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use serde_json::json;
use tokio::time::Instant;

use super::answers::{self, TEXT};
use super::asked::Asked;
use super::context::Context;
use super::errors::Failure;
use super::problem::{Code, Problem};
use super::turn;
use crate::driver::api::{Denied, Level};

/// Who asks whether a node is ready asks again soon; a late yes is a no.
const READY_MOST: Duration = Duration::from_secs(1);

const HELP: &str = include_str!("help.txt");

pub async fn root() -> Response<Body> {
    answers::typed(StatusCode::OK, TEXT, HELP)
}

/// The process lives and takes calls. That the loop lives is not asked: if it ends, the process does.
pub async fn livez() -> Response<Body> {
    answers::typed(StatusCode::OK, TEXT, "ok\n")
}

pub async fn status(State(context): State<Arc<Context>>, asked: Asked) -> Result<Response<Body>, Problem> {
    asked.query(&[])?;
    match asked.in_time(context.handle.status()).await? {
        Some(status) => Ok(answers::data(&status)),
        None => Err(Denied::Stopping.into()),
    }
}

/// Makes a linear read, the way a client's would go: here on the leader, in one hop to it elsewhere.
pub async fn readyz(
    State(context): State<Arc<Context>>,
    mut asked: Asked,
) -> Result<Response<Body>, Problem> {
    asked.query(&[])?;
    asked.deadline = asked.deadline.min(Instant::now() + READY_MOST);
    let confirmed = turn::take(&context, &asked, turn::Kind::Read, false, || confirm(&context)).await;
    confirmed.map_err(|problem| problem.status(StatusCode::SERVICE_UNAVAILABLE))
}

async fn confirm(context: &Context) -> Result<Response<Body>, Failure> {
    context.handle.read(Level::Linear).await?;
    Ok(answers::data(&json!({"ready": true})))
}

/// Whether writes sent here need no hop. By the lease, at the moment of answering.
pub async fn leader(State(context): State<Arc<Context>>, asked: Asked) -> Result<Response<Body>, Problem> {
    asked.query(&[])?;
    if asked.in_time(context.handle.is_leader()).await? {
        return Ok(answers::data(&json!({"leader": true})));
    }
    Err(Problem::new(Code::NotLeader, "this node does not lead").status(StatusCode::SERVICE_UNAVAILABLE))
}
