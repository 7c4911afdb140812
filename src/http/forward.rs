//! One hop to the leader. Whatever comes back is the answer; what left and brought nothing back is not sent again (C7).

use std::fmt::Display;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{
    ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, IF_MATCH, IF_NONE_MATCH,
    TRANSFER_ENCODING,
};
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use reqwest::Client;
use tokio::time::{Instant, sleep};

use super::asked::Asked;
use super::context::Context;
use super::errors::outcome_unknown;
use super::headers::{FORWARDED, IDEMPOTENCY_KEY, REQUEST_ID};
use super::path::tame;
use super::problem::{Code, Problem};
use super::turn::Kind;
use crate::config::HttpLimits;
use crate::driver::Setup;
use crate::protocol::Timing;
use crate::types::NodeId;

/// Idle connections kept to one node: a follower that serves many clients has as many calls under way.
const IDLE_MOST: usize = 256;

/// The least that a dial may take: on a busy machine even the loopback is not faster.
const DIAL_LEAST: Duration = Duration::from_millis(100);

/// What goes along, besides the body. The rest is between the client and this node.
const PASSED_ON: [HeaderName; 7] =
    [ACCEPT, AUTHORIZATION, CONTENT_TYPE, IF_MATCH, IF_NONE_MATCH, IDEMPOTENCY_KEY, REQUEST_ID];

/// What is between the leader and this node.
const KEPT_BACK: [HeaderName; 3] = [CONNECTION, TRANSFER_ENCODING, HeaderName::from_static("keep-alive")];

#[derive(Debug)]
pub enum Sent {
    Answer(Response<Body>),
    /// Nothing was sent: the node could not be dialled.
    NeverLeft,
    /// It says that it does not lead: surely not applied.
    Moved,
}

/// Idle connections are given up well before a server closes them, or a write could race with the closing; every node
/// has the same time-outs.
pub fn client(timing: &Timing, limits: &HttpLimits) -> Result<Client, reqwest::Error> {
    Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .retry(reqwest::retry::never())
        .connect_timeout(dial(timing))
        .pool_idle_timeout(limits.idle_timeout / 2)
        .pool_max_idle_per_host(IDLE_MOST)
        .tcp_nodelay(true)
        .http1_only()
        .build()
}

fn dial(timing: &Timing) -> Duration {
    Duration::from_micros(timing.heartbeat.times(2).0).max(DIAL_LEAST)
}

pub async fn call(context: &Context, asked: &Asked, kind: Kind, leader: NodeId) -> Result<Sent, Problem> {
    let Setup { wall, settings, .. } = &*context.setup;
    if wall.hides(leader) {
        sleep(dial(&settings.timing)).await;
        return Ok(Sent::NeverLeft);
    }
    let left = asked.deadline.saturating_duration_since(Instant::now());
    match wall.pass(leader, left, send(context, asked, kind, leader)).await {
        Some(sent) => sent,
        None => Err(lost(kind, leader, &"a wall has come between")),
    }
}

async fn send(context: &Context, asked: &Asked, kind: Kind, leader: NodeId) -> Result<Sent, Problem> {
    let Some(url) = context.url(leader) else {
        return Ok(Sent::NeverLeft);
    };
    let target = asked.parts.uri.path_and_query().map_or("/", |target| target.as_str());
    let sending = context
        .client
        .request(asked.parts.method.clone(), format!("{url}{}", tame(target)))
        .headers(passed_on(&asked.parts.headers, context.me()))
        .body(asked.body.clone())
        .timeout(asked.deadline.saturating_duration_since(Instant::now()))
        .send();
    match sending.await {
        Ok(response) if response.status() == StatusCode::MISDIRECTED_REQUEST => Ok(Sent::Moved),
        Ok(response) => {
            let answer = answer(&asked.parts.method, response).await;
            answer.map(Sent::Answer).map_err(|error| lost(kind, leader, &error))
        }
        Err(error) if error.is_connect() => Ok(Sent::NeverLeft),
        Err(error) if error.is_builder() => Err(Problem::field("path", "the path cannot be passed on")),
        Err(error) => Err(lost(kind, leader, &error)),
    }
}

fn passed_on(headers: &HeaderMap, me: NodeId) -> HeaderMap {
    let mut passed = HeaderMap::with_capacity(PASSED_ON.len() + 1);
    for name in PASSED_ON {
        for value in headers.get_all(&name) {
            passed.append(&name, value.clone());
        }
    }
    passed.insert(FORWARDED, HeaderValue::from(me.0));
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
