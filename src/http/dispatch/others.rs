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
use serde::Deserialize;
use tokio::time::{Instant, timeout};

use crate::driver::{Member, cause};
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
    /// Nodes that will hardly answer. Each has a shorter time.
    pub unheard: &'a [NodeId],
    /// The maximum size of an answer. A node with a longer one is left out.
    pub bytes_most: usize,
}

/// The time of a node from which the leader hears nothing. One that is frozen takes the call and never answers.
const UNHEARD_MOST: Duration = Duration::from_millis(200);

impl Question<'_> {
    fn within(&self, member: NodeId) -> Duration {
        if self.unheard.contains(&member) { self.within.min(UNHEARD_MOST) } else { self.within }
    }
}

/// The reason why a node is left out.
#[derive(Debug)]
pub struct Silence {
    pub why: String,
    pub kind: SilenceKind,
    /// The node was asked, and may still carry out the call.
    /// A message to a channel may still be delivered there (`routes::channels`).
    pub is_open: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SilenceKind {
    /// No connection was made.
    NotReached,
    /// The call was sent, perhaps on a connection of before, and no answer has come.
    NoAnswer,
    /// The node refused the call, with the code and the detail of its problem.
    Refused { code: String, detail: String },
    /// The answer breaks off, is too long, or is not that of a node.
    Unusable,
}

/// The characters of a refusal that are shown. Another server may say anything.
const SAID_MOST: usize = 500;

/// The part of a problem that says why.
#[derive(Deserialize)]
struct Refusal {
    code: String,
    #[serde(default)]
    detail: String,
}

impl Silence {
    fn open(kind: SilenceKind, why: impl Into<String>) -> Silence {
        Silence { why: why.into(), kind, is_open: true }
    }

    fn over(kind: SilenceKind, why: impl Into<String>) -> Silence {
        Silence { why: why.into(), kind, is_open: false }
    }
}

/// The answer of one node, or why there is none.
#[derive(Debug)]
pub struct Said {
    pub member: Member,
    pub answer: Result<Bytes, Silence>,
    /// When the answer was there, or the node was given up.
    pub at: Instant,
}

/// Asks each other node. `head` has further headers for each node.
pub async fn ask_others(
    context: &Context,
    question: &Question<'_>,
    head: impl Fn(NodeId, &mut HeaderMap),
) -> Vec<Said> {
    let calls = context.setup.others().into_iter().map(|member| {
        let mut headers = HeaderMap::new();
        head(member.id, &mut headers);
        async move {
            let within = question.within(member.id);
            let answer = match timeout(within, ask(context, &member, question, headers)).await {
                Ok(said) => said,
                Err(_) => {
                    let why = format!("it did not answer within {} ms", within.as_millis());
                    Err(Silence::open(SilenceKind::NoAnswer, why))
                }
            };
            Said { member, answer, at: Instant::now() }
        }
    });
    join_all(calls).await
}

async fn ask(
    context: &Context,
    member: &Member,
    question: &Question<'_>,
    headers: HeaderMap,
) -> Result<Bytes, Silence> {
    let call = call(context, member, question, headers);
    let swallowed = || Silence::open(SilenceKind::NotReached, "it cannot be reached");
    context.setup.wall.pass(member.id, question.within, call).await.ok_or_else(swallowed)?
}

async fn call(
    context: &Context,
    member: &Member,
    question: &Question<'_>,
    mut headers: HeaderMap,
) -> Result<Bytes, Silence> {
    let removed = || Silence::over(SilenceKind::NotReached, "it is no longer a member of the cluster");
    let url = context.url(member.id).ok_or_else(removed)?;
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
        true => Silence::over(SilenceKind::NotReached, format!("cannot connect to it: {}", cause(&error))),
        false => Silence::open(SilenceKind::NoAnswer, "its answer did not arrive"),
    })?;
    let status = response.status();
    let mut answer = BytesMut::new();
    // The node has answered, so the call is over there, even if this node cannot read the answer.
    let broken = |_| Silence::over(SilenceKind::Unusable, "its answer broke off");
    while let Some(piece) = response.chunk().await.map_err(broken)? {
        answer.extend_from_slice(&piece);
        if answer.len() > question.bytes_most {
            let most = question.bytes_most;
            return Err(Silence::over(
                SilenceKind::Unusable,
                format!("its answer has more than {most} bytes"),
            ));
        }
    }
    if status == StatusCode::OK {
        return Ok(answer.freeze());
    }
    Err(match serde_json::from_slice(&answer) {
        Ok(Refusal { code, detail }) => {
            let short =
                |text: String| text.chars().filter(|c| !c.is_control()).take(SAID_MOST).collect::<String>();
            let (code, detail) = (short(code), short(detail));
            let why = format!("it answered {} {code}", status.as_u16());
            Silence::over(SilenceKind::Refused { code, detail }, why)
        }
        Err(_) => Silence::over(SilenceKind::Unusable, format!("it answered {}", status.as_u16())),
    })
}
