//! Asks all other nodes at once, in one hop. A node that does not answer in time is left out, and the reason is reported.
//!
//! The nodes are asked at the same time, so the call takes as long as its slowest node, and at most `within`.
//! Each node is asked once, and asks no further nodes: `Eldest-Forwarded` says that the call is to stay
//! there.

use std::time::Duration;

use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use axum::http::{HeaderMap, Method, StatusCode};
use bytes::{Bytes, BytesMut};
use futures_util::future::join_all;
use tokio::time::timeout;

use crate::driver::Member;
use crate::http::admission::Origin;
use crate::http::answer::JSON;
use crate::http::request::{Context, FORWARDED, say_origin};
use crate::http::url::url_safe;
use crate::types::NodeId;

#[derive(Debug)]
pub struct Question<'a> {
    pub method: Method,
    /// Path and query.
    pub target: &'a str,
    /// The caller's credentials: the other nodes check them, too.
    pub shown: &'a HeaderMap,
    /// The address of the caller: the call counts for this address, not for the address of this node.
    pub origin: Option<Origin>,
    /// The body, in JSON.
    pub body: Option<Bytes>,
    pub within: Duration,
    /// The maximum size of an answer. A node with a longer one is left out.
    pub bytes_most: usize,
}

/// The reason why a node is left out.
#[derive(Debug)]
pub struct Silence {
    pub why: String,
    /// The node was asked, and may still carry out the call.
    /// A message to a channel may still be delivered there (`routes::channels`).
    pub is_open: bool,
}

impl Silence {
    fn open(why: impl Into<String>) -> Silence {
        Silence { why: why.into(), is_open: true }
    }

    fn over(why: impl Into<String>) -> Silence {
        Silence { why: why.into(), is_open: false }
    }
}

/// Returns the answer of each other node, or why it has none. `head` has further headers for each node.
pub async fn ask_others(
    context: &Context,
    question: &Question<'_>,
    head: impl Fn(NodeId, &mut HeaderMap),
) -> Vec<(Member, Result<Bytes, Silence>)> {
    let others = context.setup.others();
    let calls = others.iter().map(|member| {
        let mut headers = HeaderMap::new();
        head(member.id, &mut headers);
        async {
            match timeout(question.within, ask(context, member, question, headers)).await {
                Ok(said) => said,
                Err(_) => {
                    let within = question.within.as_millis();
                    Err(Silence::open(format!("it did not answer within {within} ms")))
                }
            }
        }
    });
    let said = join_all(calls).await;
    others.into_iter().zip(said).collect()
}

async fn ask(
    context: &Context,
    member: &Member,
    question: &Question<'_>,
    headers: HeaderMap,
) -> Result<Bytes, Silence> {
    let call = call(context, member, question, headers);
    let swallowed = || Silence::open("it cannot be reached");
    context.setup.wall.pass(member.id, question.within, call).await.ok_or_else(swallowed)?
}

async fn call(
    context: &Context,
    member: &Member,
    question: &Question<'_>,
    mut headers: HeaderMap,
) -> Result<Bytes, Silence> {
    let url =
        context.url(member.id).ok_or_else(|| Silence::over("it is no longer a member of the cluster"))?;
    if let Some(shown) = question.shown.get(AUTHORIZATION) {
        headers.insert(AUTHORIZATION, shown.clone());
    }
    headers.insert(FORWARDED, HeaderValue::from(context.me().0));
    if let Some(origin) = question.origin {
        say_origin(&mut headers, &context.setup, member.id, origin);
    }
    let target = format!("{url}{}", url_safe(question.target));
    let mut sending = context.client.request(question.method.clone(), target).headers(headers);
    if let Some(body) = &question.body {
        sending = sending.header(CONTENT_TYPE, JSON).body(body.clone());
    }
    let mut response = sending.send().await.map_err(|error| match error.is_connect() {
        true => Silence::over("cannot connect to it"),
        false => Silence::open("its answer did not arrive"),
    })?;
    let status = response.status();
    if status != StatusCode::OK {
        return Err(Silence::over(format!("it answered {}", status.as_u16())));
    }
    let mut answer = BytesMut::new();
    // The node has answered, so the call is over there, even if this node cannot read the answer.
    while let Some(piece) = response.chunk().await.map_err(|_| Silence::over("its answer broke off"))? {
        answer.extend_from_slice(&piece);
        if answer.len() > question.bytes_most {
            let most = question.bytes_most;
            return Err(Silence::over(format!("its answer has more than {most} bytes")));
        }
    }
    Ok(answer.freeze())
}
