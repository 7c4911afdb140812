//! This node forwards a call to the leader, in one hop. Whatever comes back is the answer; a call that was sent and
//! brought nothing back is not sent again (C7).

use std::fmt::Display;

use axum::body::Body;
use axum::http::header::{
    ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, IF_MATCH, IF_NONE_MATCH,
    TRANSFER_ENCODING,
};
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use tokio::time::{Instant, sleep};

use crate::driver::Setup;
use crate::http::answer::{Code, Problem, REQUEST_ID, outcome_unknown};
use crate::http::request::{
    ClientRequest, Context, FIRST_LINE, FORWARDED, IDEMPOTENCY_KEY, Kind, SECRET, say_origin, url_safe,
};
use crate::http::spans::TRACEPARENT;
use crate::types::NodeId;

/// What goes along, besides the body. The rest is between the client and this node.
const PASSED_ON: [HeaderName; 10] = [
    ACCEPT,
    AUTHORIZATION,
    CONTENT_TYPE,
    IF_MATCH,
    IF_NONE_MATCH,
    IDEMPOTENCY_KEY,
    FIRST_LINE,
    REQUEST_ID,
    SECRET,
    TRACEPARENT,
];

/// What is between the leader and this node.
const KEPT_BACK: [HeaderName; 3] = [CONNECTION, TRANSFER_ENCODING, HeaderName::from_static("keep-alive")];

#[derive(Debug)]
pub enum Forwarded {
    Answered(Response<Body>),
    /// Nothing was sent: the node could not be dialled.
    NotSent,
    /// It says that it does not lead: surely not applied.
    NotLeader,
}

pub async fn call(
    context: &Context,
    request: &ClientRequest,
    kind: Kind,
    leader: NodeId,
) -> Result<Forwarded, Problem> {
    let Setup { wall, .. } = &*context.setup;
    if wall.hides(leader) {
        sleep(context.dial_timeout()).await;
        return Ok(Forwarded::NotSent);
    }
    let left = request.deadline.saturating_duration_since(Instant::now());
    match wall.pass(leader, left, send(context, request, kind, leader)).await {
        Some(sent) => sent,
        None => Err(lost(kind, leader, &"a wall has come between")),
    }
}

async fn send(
    context: &Context,
    request: &ClientRequest,
    kind: Kind,
    leader: NodeId,
) -> Result<Forwarded, Problem> {
    let Some(url) = context.url(leader) else {
        return Ok(Forwarded::NotSent);
    };
    let target = request.parts.uri.path_and_query().map_or("/", |target| target.as_str());
    let sending = context
        .client
        .request(request.parts.method.clone(), format!("{url}{}", url_safe(target)))
        .headers(passed_on(context, request, leader))
        .body(request.body.clone())
        .timeout(request.deadline.saturating_duration_since(Instant::now()))
        .send();
    match sending.await {
        Ok(response) if response.status() == StatusCode::MISDIRECTED_REQUEST => Ok(Forwarded::NotLeader),
        Ok(response) => {
            let answer = answer(&request.parts.method, response).await;
            answer.map(Forwarded::Answered).map_err(|error| lost(kind, leader, &error))
        }
        Err(error) if error.is_connect() => Ok(Forwarded::NotSent),
        Err(error) if error.is_builder() => Err(Problem::field("path", "the path cannot be passed on")),
        Err(error) => Err(lost(kind, leader, &error)),
    }
}

fn passed_on(context: &Context, request: &ClientRequest, to: NodeId) -> HeaderMap {
    let mut passed = HeaderMap::with_capacity(PASSED_ON.len() + 2);
    for name in PASSED_ON {
        for value in request.parts.headers.get_all(&name) {
            passed.append(&name, value.clone());
        }
    }
    passed.insert(FORWARDED, HeaderValue::from(context.me().0));
    if let Some(origin) = request.origin() {
        say_origin(&mut passed, &context.setup, to, origin);
    }
    passed
}

async fn answer(method: &Method, response: reqwest::Response) -> Result<Response<Body>, reqwest::Error> {
    let status = response.status();
    let mut headers = response.headers().clone();
    for name in KEPT_BACK {
        headers.remove(name);
    }
    // Where no body is sent, the length is that of the body which would be.
    if method != Method::HEAD && status != StatusCode::NOT_MODIFIED {
        headers.remove(CONTENT_LENGTH);
    }
    let mut answer = Response::new(Body::from(response.bytes().await?));
    *answer.status_mut() = status;
    *answer.headers_mut() = headers;
    Ok(answer)
}

fn lost(kind: Kind, leader: NodeId, error: &dyn Display) -> Problem {
    tracing::debug!(leader = leader.0, %error, "a call that was passed on brought no answer");
    match kind {
        Kind::Write => outcome_unknown(&format!("node {} took the call and did not answer", leader.0)),
        Kind::Read => Problem::new(Code::NoLeader, format!("node {} leads and does not answer", leader.0)),
    }
}
