//! Forwards a call to the leader, in one hop, and answers with its response. If another node becomes leader first, no response is expected
//! any more: a former leader answers all its open calls when it learns of the new leader, unless it hangs. A call without a response is
//! not sent again (C7), unless it has a key by which the next leader recognizes it.
//!
//! ```text
//!   what came back                            what it shows                        what follows
//!   it could not be dialled                   nothing was sent                     wait for a leader, judge again
//!   421                                       surely not applied (P15)             wait for a hand-over, judge again
//!   any other response, whole                 the leader has decided               it is the answer
//!   nothing, or half a response               it may have been applied             the next leader for a read or a key, else 504
//!   another node leads, and nothing has come  the same                             the same
//! ```

use std::fmt::Display;

use axum::body::Body;
use axum::http::header::{
    ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, IF_MATCH, IF_NONE_MATCH,
    TRANSFER_ENCODING,
};
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use tokio::time::{Duration, Instant, sleep};

use crate::driver::Setup;
use crate::driver::handle::Leadership;
use crate::http::answer::{Code, Problem, REQUEST_ID, outcome_unknown};
use crate::http::request::{
    CallKind, ClientRequest, Context, FIRST_LINE, FORWARDED, IDEMPOTENCY_KEY, IF_ROLE, SECRET, say_origin,
};
use crate::http::spans::TRACEPARENT;
use crate::http::url::url_safe;
use crate::types::NodeId;

/// The request headers that are forwarded, with the body. The others concern only the client and this node.
/// The credential is among them: the leader judges the call again by its own state. `Host` is not: the leader
/// is called by its own address.
const PASSED_ON: [HeaderName; 10] = [
    ACCEPT,
    AUTHORIZATION,
    CONTENT_TYPE,
    IF_MATCH,
    IF_NONE_MATCH,
    IF_ROLE,
    IDEMPOTENCY_KEY,
    FIRST_LINE,
    SECRET,
    TRACEPARENT,
];

/// The response headers that concern only the leader and this node.
const KEPT_BACK: [HeaderName; 3] = [CONNECTION, TRANSFER_ENCODING, HeaderName::from_static("keep-alive")];

#[derive(Debug)]
pub enum Forwarded {
    Answered(Response<Body>),
    /// The call was not sent: the node could not be dialled.
    NotSent,
    /// The node says that it does not lead: the call was surely not applied.
    NotLeader,
    /// The call was sent, and no answer has come: it may have been applied, and another leader may be asked.
    Unanswered,
}

/// The request that is forwarded, and whether another leader may be asked for it as well.
#[derive(Clone, Copy, Debug)]
pub struct What<'a> {
    pub request: &'a ClientRequest,
    pub kind: CallKind,
    pub may_repeat: bool,
}

/// The time for which the former leader's answers may arrive after the first message of the next leader: the former leader has
/// sent all of them before it hands over.
const ANSWERS_LATE: Duration = Duration::from_millis(50);

/// The same for a call that may not be repeated.
/// Its client gets 504 afterwards, so it is worth waiting longer for the answer.
const LAST_CHANCE: Duration = Duration::from_millis(500);

/// If both are there, the answer counts: it says more than a change of leader.
pub async fn call(context: &Context, what: What<'_>, leader: NodeId) -> Result<Forwarded, Problem> {
    let Setup { wall, .. } = &*context.setup;
    if wall.hides(leader) {
        // As long as a dial to a host behind a real partition would take.
        sleep(context.dial_timeout()).await;
        return Ok(Forwarded::NotSent);
    }
    let left = what.request.deadline.saturating_duration_since(Instant::now());
    let late = if what.may_repeat { ANSWERS_LATE } else { LAST_CHANCE };
    tokio::select! {
        biased;
        sent = wall.pass(leader, left, send(context, what, leader)) => match sent {
            Some(sent) => sent,
            None => unanswered(what, leader, &"a wall has come between"),
        },
        () = is_replaced(context, leader, late) => unanswered(what, leader, &"another node now leads"),
    }
}

/// Returns when another node leads, and has led for the time `late`. The other node must still lead after the pause: no call is
/// given up for a change that lasts a moment.
async fn is_replaced(context: &Context, leader: NodeId, late: Duration) {
    let mut leadership = context.handle.leadership();
    let by_another = |now: &Leadership| now.leader.is_some_and(|leads| leads != leader);
    loop {
        if leadership.wait_for(by_another).await.is_err() {
            // The loop has ended, and with it all open calls.
            return std::future::pending().await;
        }
        sleep(late).await;
        if by_another(&leadership.borrow_and_update()) {
            return;
        }
    }
}

/// The response is read as a whole before anything of it is passed on. If it breaks off, the client gets an
/// answer that says so, and not half of another one.
async fn send(context: &Context, what: What<'_>, leader: NodeId) -> Result<Forwarded, Problem> {
    let request = what.request;
    let Some(url) = context.url(leader) else {
        return Ok(Forwarded::NotSent);
    };
    let target = request.head.parts.uri.path_and_query().map_or("/", |target| target.as_str());
    let sending = context
        .client
        .request(request.head.parts.method.clone(), format!("{url}{}", url_safe(target)))
        .headers(passed_on(context, request, leader))
        .body(request.body.clone())
        .timeout(request.deadline.saturating_duration_since(Instant::now()))
        .send();
    match sending.await {
        Ok(response) if response.status() == StatusCode::MISDIRECTED_REQUEST => Ok(Forwarded::NotLeader),
        Ok(response) => match answer(&request.head.parts.method, response).await {
            Ok(answer) => Ok(Forwarded::Answered(answer)),
            Err(error) => unanswered(what, leader, &error),
        },
        // This error alone shows that no byte of the call has left. A time-out or a broken connection does
        // not.
        Err(error) if error.is_connect() => Ok(Forwarded::NotSent),
        Err(error) if error.is_builder() => Err(Problem::field("path", "the path cannot be forwarded")),
        Err(error) => unanswered(what, leader, &error),
    }
}

/// Headers that are not listed do not travel, so a client cannot make the statements that this node adds.
fn passed_on(context: &Context, request: &ClientRequest, to: NodeId) -> HeaderMap {
    let mut passed = HeaderMap::with_capacity(PASSED_ON.len() + 4);
    for name in PASSED_ON {
        for value in request.head.parts.headers.get_all(&name) {
            passed.append(&name, value.clone());
        }
    }
    passed.insert(REQUEST_ID, request.head.asker.request_id.clone());
    passed.insert(FORWARDED, HeaderValue::from(context.me().0));
    if let Some(origin) = request.origin() {
        say_origin(&mut passed, &context.setup, to, origin);
    }
    if let Some(word) = &request.head.asker.gives_back {
        word.say(&mut passed, &context.setup, to, request.path());
    }
    passed
}

async fn answer(method: &Method, response: reqwest::Response) -> Result<Response<Body>, reqwest::Error> {
    let status = response.status();
    let mut headers = response.headers().clone();
    for name in KEPT_BACK {
        headers.remove(name);
    }
    // A response to HEAD, and a 304, keep the length of the body that they would have.
    if method != Method::HEAD && status != StatusCode::NOT_MODIFIED {
        headers.remove(CONTENT_LENGTH);
    }
    let mut answer = Response::new(Body::from(response.bytes().await?));
    *answer.status_mut() = status;
    *answer.headers_mut() = headers;
    Ok(answer)
}

fn unanswered(what: What<'_>, leader: NodeId, error: &dyn Display) -> Result<Forwarded, Problem> {
    tracing::debug!(leader = leader.0, %error, "a forwarded call got no answer");
    match what.kind {
        _ if what.may_repeat => Ok(Forwarded::Unanswered),
        CallKind::Read => {
            Err(Problem::new(Code::NoLeader, format!("node {} leads and does not answer", leader.0)))
        }
        CallKind::Write | CallKind::Order => {
            Err(outcome_unknown(&format!("node {} accepted the call and did not answer", leader.0)))
        }
    }
}
