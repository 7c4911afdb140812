//! One attempt of a call at one node, and what it tells.

use std::time::Duration;

use reqwest::{Client, Response, Url};
use tokio::time::timeout;

use super::call::{Answer, Call, Repeat};
use super::clock::Clock;

/// The largest page is a quarter of this; what is no node may send anything.
const BODY_BYTES_MAX: usize = 16 << 20;

#[derive(Debug)]
pub enum Attempt {
    /// The node has decided.
    Answered(Answer),
    /// Another node leads.
    Elsewhere { leader: Option<String>, why: String },
    /// It has surely not happened.
    NotDone { why: String },
    /// It may have happened.
    Doubtful { why: String },
}

pub async fn attempt(
    http: &Client,
    clock: &Clock,
    credential: Option<&str>,
    url: &Url,
    call: &Call,
    limit: Duration,
) -> Attempt {
    let address = match url.join(&call.path) {
        Ok(address) => address,
        Err(error) => return Attempt::NotDone { why: error.to_string() },
    };
    let mut request = http.request(call.method.clone(), address);
    if let Some(credential) = credential {
        request = request.bearer_auth(credential);
    }
    if let Repeat::Keyed(key) = &call.repeat {
        request = request.header("idempotency-key", key);
    }
    for (name, value) in &call.headers {
        request = request.header(*name, value);
    }
    if let Some(body) = &call.body {
        request = request.header("content-type", "application/json").body(body.clone());
    }
    let sent = clock.now();
    let read = async { whole(request.send().await?).await };
    match timeout(limit, read).await {
        Err(_) => Attempt::Doubtful { why: "no answer in time".to_string() },
        Ok(Err(error)) if error.is_connect() || error.is_builder() => {
            Attempt::NotDone { why: root_of(&error) }
        }
        Ok(Err(error)) => Attempt::Doubtful { why: root_of(&error) },
        Ok(Ok(None)) => Attempt::Doubtful { why: format!("more than {BODY_BYTES_MAX} bytes") },
        Ok(Ok(Some((status, headers, body)))) => {
            let url = url.to_string();
            judged(Answer { url, status, headers, body, sent, after_doubt: false })
        }
    }
}

pub type Whole = (reqwest::StatusCode, reqwest::header::HeaderMap, Vec<u8>);

/// None if it is too much.
pub async fn whole(mut response: Response) -> Result<Option<Whole>, reqwest::Error> {
    let (status, headers, mut body) = (response.status(), response.headers().clone(), Vec::new());
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > BODY_BYTES_MAX {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some((status, headers, body)))
}

/// What a node answers is its word only if it is a node's: a proxy's 502 says nothing of what happened.
fn judged(answer: Answer) -> Attempt {
    let problem = answer.problem();
    let why = || match &problem {
        Some(problem) => problem.to_string(),
        None => format!("status {}", answer.status),
    };
    match (answer.status.as_u16(), &problem) {
        (421, Some(problem)) => {
            let leader = problem.leader_node.as_ref().map(|leader| leader.url.clone());
            Attempt::Elsewhere { leader, why: why() }
        }
        (429 | 503, Some(_)) => Attempt::NotDone { why: why() },
        (504, _) | (500.., None) => Attempt::Doubtful { why: why() },
        _ => Attempt::Answered(answer),
    }
}

/// The innermost cause: what a person can act on.
pub fn root_of(error: &dyn std::error::Error) -> String {
    let mut root = error;
    while let Some(source) = root.source() {
        root = source;
    }
    root.to_string()
}
