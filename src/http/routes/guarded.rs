//! A guard in front of every route judges the call before its body is read.
//!
//! ```text
//!   a credential ──► known here ─────────────────────────────► its grants ─► the handler
//!        │  └──────► a token that this node does not know
//!        │              │ catch up with the leader, once
//!        │              └─► known now, or refused (401)
//!        └─ none ─────► the grants for everybody
//! ```
//!
//! A forwarded call is judged again where it arrives: both nodes must agree. A stream is judged for as long as it runs: it ends when its
//! token is revoked or has expired.
//!
//! The guard is in front of the handler, and so in front of its body: a caller without a grant cannot make
//! the node read megabytes.
//!
//! The guard judges by this node's copy of the tokens, without a call to the loop. So a node that is cut off
//! still judges the tokens that it knows. The price is that it learns of a revocation late; where a call
//! takes effect, at the leader, it is judged once more (P56).

use std::pin::Pin;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Response, Uri};
use axum::middleware::Next;
use axum::response::IntoResponse;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::unfold;
use hyper::body::Body as _;
use serde_json::json;
use tokio::time::{Duration, Instant, sleep, timeout};

use crate::driver::handle::{Denied, Level};
use crate::http::access::needs::{Asked, Need};
use crate::http::access::{Principal, Shown, Who};
use crate::http::admission::{Origin, Refused, Sharer, Sharers};
use crate::http::answer::stream::Format;
use crate::http::answer::{self, Code, INDEX, Problem, unauthorized};
use crate::http::dispatch;
use crate::http::request::{
    Asker, CallKind, ClientCall, ClientHead, ClientRequest, Context, GivesBack, Stage, no_holder,
};
use crate::store::{Token, TokenId};
use crate::types::{Index, WallTime};

/// A new token arrives here within a round; a caller with an unknown token waits no longer than this.
/// Beyond it the answer is 503, and not 401: the token may be good.
const CATCH_UP_MOST: Duration = Duration::from_secs(1);

/// A follower usually lags behind its leader by less than this.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Operations that may wait for long before they are answered.
const WAITING: [&str; 2] = ["/acquire", "/hold"];

/// Operations by which a node gives back a role of one of its clients.
const GIVING_BACK: [&str; 2] = ["/release", "/untie"];

/// The clock may be set at any time: the expiry of a token is checked this often.
const LOOK_AT_CLOCK: Duration = Duration::from_secs(1);

/// The route of a call, and what it needs.
#[derive(Clone, Copy, Debug)]
pub struct Guarded {
    pub pattern: &'static str,
    pub need: Need,
}

/// The guard as the router calls it.
pub async fn guard(
    State((context, guarded)): State<(Arc<Context>, Guarded)>,
    call: ClientCall,
    next: Next,
) -> Response<Body> {
    guarded.judge(&context, call, |call| next.run(call.into_request())).await
}

impl Guarded {
    /// Judges a call, and gives it to the handler of its route if the caller may make it.
    pub async fn judge<F: Future<Output = Response<Body>>>(
        self,
        context: &Arc<Context>,
        mut call: ClientCall,
        handler: impl FnOnce(ClientCall) -> F,
    ) -> Response<Body> {
        let Guarded { pattern, need } = self;
        // Probes and the page are answered even if the credential is invalid, and without a leader.
        if need == Need::Nothing {
            return handler(call).await;
        }
        let ClientHead { parts, asker } = &mut *call.head;
        if let Err(problem) = check_holder(parts, pattern) {
            return problem.into_response();
        }
        let (origin, entry) = (asker.admitted.origin(), asker.entry.clone());
        let judge = |who: &Who| entry.iter().for_each(|entry| entry.judge(who.clone(), origin));
        // The caller is another node, which has proved its statement. The client's token is not checked: the stream may have ended
        // just because that token was revoked. The handler compares the body with the statement.
        asker.gives_back = gives_back(context, asker, parts, need);
        if asker.gives_back.is_some() {
            let response = handler(call).await;
            if is_forbidden(&response) && context.denied.add(origin, Instant::now()) {
                judge(&Who::Unknown);
            }
            return response;
        }
        match known(context, &asker.shown, origin).await {
            Ok(principal) => asker.is(principal),
            Err(Unknown { answer, counts }) => {
                if counts {
                    judge(&Who::Unknown);
                }
                return answer;
            }
        };
        let principal = &asker.principal;
        let judged = need.of(pattern, &parts.uri).and_then(|asked| principal.check(&asked).map(|()| asked));
        let is_order = match judged {
            Ok(asked) => asked == Asked::Order,
            Err(problem) => {
                // The audit log takes as many lines about this from one address as about wrong credentials.
                if !principal.is_anonymous() && context.denied.add(origin, Instant::now()) {
                    judge(&principal.who);
                }
                return problem.into_response();
            }
        };
        let who = principal.who.clone();
        // An order gets its line before it is carried out, so that there is one even if the order never gets an
        // answer.
        if is_order {
            judge(&who);
            entry.iter().for_each(|entry| context.audit.tell(context.handle.wall(), entry, Stage::Asked));
        }
        let waits = need == Need::OnRole && WAITING.iter().any(|end| parts.uri.path().ends_with(end));
        let response = match &who {
            Who::Token { id, .. } if waits => Box::pin(while_it_is_good(context, handler(call), *id)).await,
            _ => handler(call).await,
        };
        // These needs are known only to the handler: the grants for the operations of a command, and the secret of a lease.
        if is_forbidden(&response) && !is_order && context.denied.add(origin, Instant::now()) {
            judge(&who);
        }
        match &who {
            Who::Token { id, .. } => until_it_ends(context, response, *id),
            Who::Anonymous | Who::Admin | Who::Unknown => response,
        }
    }
}

/// Rejects a condition on a route that does not check it: otherwise it would pass as fulfilled.
fn check_holder(parts: &Parts, pattern: &str) -> Result<(), Problem> {
    let takes = pattern.starts_with("/v1/docs/") && matches!(parts.method, Method::PUT | Method::DELETE);
    match takes || parts.method.is_safe() {
        true => Ok(()),
        false => no_holder(&parts.headers),
    }
}

/// The problem travels in the response until the front renders it, so its code can be read here.
fn is_forbidden(response: &Response<Body>) -> bool {
    response.extensions().get().is_some_and(|problem: &Problem| problem.code() == Code::Forbidden)
}

/// Another node gives back a role that one of its clients held by a stream, even if that client's token was revoked.
fn gives_back(context: &Context, asker: &Asker, parts: &Parts, need: Need) -> Option<GivesBack> {
    let path = parts.uri.path();
    let gives = need == Need::OnRole && GIVING_BACK.iter().any(|end| path.ends_with(end));
    gives.then(|| GivesBack::heard(&parts.headers, &context.setup, asker.certified(), path)).flatten()
}

/// Judges a waiting call for as long as it waits. A caller that is cut off here counts as disconnected, and is granted nothing (P41). A
/// grant from before the token ended is still answered.
/// `biased`: the answer is looked at first. A grant that exists must reach its caller, or an instance would
/// hold the role without knowing it.
async fn while_it_is_good(
    context: &Arc<Context>,
    answered: impl Future<Output = Response<Body>>,
    id: TokenId,
) -> Response<Body> {
    tokio::select! {
        biased;
        response = answered => response,
        why = end(context.clone(), id) => unauthorized(why).into_response(),
    }
}

/// The answer to a call of an unknown caller.
struct Unknown {
    answer: Response<Body>,
    /// The credential is wrong, so the audit log gets a line about it.
    counts: bool,
}

impl Unknown {
    fn not_counted(problem: Problem) -> Unknown {
        Unknown { answer: problem.into_response(), counts: false }
    }
}

/// Returns the principal of the call.
/// The order saves work at the leader: tokens from an address that has used up its refusals are not looked up
/// there.
async fn known(context: &Arc<Context>, shown: &Shown, origin: Option<Origin>) -> Result<Principal, Unknown> {
    match shown {
        Shown::Nothing => return Ok(context.guard.anonymous()),
        Shown::Right(principal) => return Ok(principal.clone()),
        Shown::UnknownToken(headers) if !context.refused.is_full(origin, Instant::now()) => {
            Box::pin(catch_up(context, origin)).await.map_err(Unknown::not_counted)?;
            if let Shown::Right(principal) = context.look(headers) {
                return Ok(principal);
            }
        }
        Shown::UnknownToken(_) | Shown::Wrong => {}
    }
    if !context.refused.add(origin, Instant::now()) {
        return Err(Unknown::not_counted(Refused::too_many()));
    }
    let detail = "the credential is invalid, revoked or expired";
    Err(Unknown { answer: unauthorized(detail).into_response(), counts: true })
}

/// Waits until this node has applied what the leader had when it was asked.
/// A read at the level `linear` proves how far the log had come when this call arrived, so a token that was
/// made before it is in the state that this node waits for.
async fn catch_up(context: &Arc<Context>, origin: Option<Origin>) -> Result<(), Problem> {
    let deadline = Instant::now() + CATCH_UP_MOST;
    // Unknown tokens have one share of the waiting places, so guesses leave places to calls that wait for a
    // leader.
    let _place = context.waiting.take(Sharers { origin, principal: Some(Sharer::UnknownToken) })?;
    let asked = probe(context, deadline);
    let confirmed = dispatch::at_leader(context, &asked, CallKind::Read, false, || async {
        let view = context.handle.read(Level::Linear).await?;
        let mut response = answer::empty();
        answer::set_view(response.headers_mut(), view.epoch, view.index);
        Ok(response)
    });
    let confirmed = asked.in_time(confirmed).await??;
    let reach = index(confirmed.headers());
    let mut access = context.handle.access();
    while context.handle.pulse().applied() < reach {
        if Instant::now() >= deadline {
            return Err(Denied::CatchingUp.into());
        }
        tokio::select! {
            changed = access.changed() => changed.map_err(|_| Problem::from(Denied::Stopping))?,
            () = sleep(LOOK_AGAIN) => {}
        }
    }
    Ok(())
}

/// An empty linear read, as any node accepts it. It has no credential: it is this node's own question, and the route needs none.
fn probe(context: &Context, deadline: Instant) -> ClientRequest {
    let (mut parts, ()) = axum::http::Request::new(()).into_parts();
    parts.uri = Uri::from_static("/readyz");
    let head = ClientHead { parts, asker: Asker::node() };
    ClientRequest::of_node(head, Bytes::new(), deadline, context.setup.settings.mode)
}

fn index(headers: &HeaderMap) -> Index {
    headers.get(INDEX).and_then(|index| index.to_str().ok()?.parse().ok()).unwrap_or_default()
}

/// The last piece of a stream says that its token is no longer valid; a stream whose format has no such message breaks off. A
/// body of known length exists already, so nothing in it is newer than the judgement of the call.
fn until_it_ends(context: &Arc<Context>, response: Response<Body>, id: TokenId) -> Response<Body> {
    let format = match response.headers().get(CONTENT_TYPE).map(|kind| kind.as_bytes()) {
        _ if response.body().size_hint().exact().is_some() => return response,
        Some(b"text/event-stream") => Some(Format::Sse),
        Some(b"application/x-ndjson") => Some(Format::Ndjson),
        _ => None,
    };
    let end: Pin<Box<dyn Future<Output = &'static str> + Send>> = Box::pin(end(context.clone(), id));
    response.map(|body| {
        let stream = Some((body.into_data_stream(), end));
        Body::from_stream(unfold(stream, move |stream| async move {
            let (mut pieces, mut end) = stream?;
            tokio::select! {
                biased;
                // Before the next piece: no event leaves after the token is known to have ended.
                why = &mut end => {
                    let Some(format) = format else {
                        return Some((Err(axum::Error::new(why)), None));
                    };
                    let members = json!({"code": "unauthorized", "detail": why, "retryable": false});
                    Some((Ok(format.event("error", None, members)), None))
                }
                piece = pieces.next() => Some((piece?, Some((pieces, end)))),
            }
        }))
    })
}

/// Waits until the token is no longer valid, and returns why.
/// Two things end a token: a record, which the watch announces, and its time, which only the clock shows. The
/// wall clock may be set, so it is looked at often, and not once at the end that it foretold.
async fn end(context: Arc<Context>, id: TokenId) -> &'static str {
    let mut access = context.handle.access();
    loop {
        let tokens = access.borrow_and_update().clone();
        let now = context.handle.wall();
        if let Err(why) = tokens.judge(id, now) {
            return why;
        }
        let end = tokens.get(id).and_then(Token::ends_at);
        let look = end.map_or(LOOK_AT_CLOCK, |end| left(now, end).min(LOOK_AT_CLOCK));
        if timeout(look, access.changed()).await.is_ok_and(|changed| changed.is_err()) {
            // The node stops, and its streams say so.
            return std::future::pending().await;
        }
    }
}

fn left(now: WallTime, end: WallTime) -> Duration {
    Duration::from_micros(end.0.saturating_sub(now.0))
}
