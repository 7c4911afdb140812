//! One attempt of a call at one node, and its outcome.

use std::time::Duration;

use reqwest::{Client, Url};

use super::answer::Answer;
use super::call::{Call, Repeat};
use super::exchange::{Broken, exchange, prepared};
use crate::clock::Clock;
use crate::problem::WRONG_CLUSTER;

/// The outcome of one attempt.
#[derive(Debug)]
pub enum Attempt {
    /// The node has answered, and the answer is final.
    Answered(Answer),
    /// Another node leads.
    Elsewhere { leader: Option<String>, why: String },
    /// The call was certainly not applied.
    NotDone { why: String },
    /// The call may have been applied.
    Doubtful { why: String },
}

/// Sends the call once to this node, and judges the outcome.
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
    let mut request = prepared(http, credential, &call.method, address, &call.headers, &call.body);
    if let Repeat::Keyed(key) = &call.repeat {
        request = request.header("idempotency-key", key);
    }
    match exchange(request, clock, url.as_str(), limit).await {
        Ok(answer) => judged(answer),
        Err(Broken::NotSent { why }) => Attempt::NotDone { why },
        Err(Broken::NoAnswer { why } | Broken::TooLarge { why }) => Attempt::Doubtful { why },
    }
}

/// Judges an answer. Only a node's own answer is authoritative: a proxy's 502 says nothing about what happened.
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
        (409, Some(problem)) if problem.code == WRONG_CLUSTER => Attempt::NotDone { why: why() },
        (504, _) | (500.., None) => Attempt::Doubtful { why: why() },
        _ => Attempt::Answered(answer),
    }
}
