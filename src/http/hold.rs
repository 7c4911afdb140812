//! A role that is held for as long as a connection is open: `curl -N` is enough.
//!
//! The node that serves the stream acquires, renews and releases, by the same calls that a client would make. If it dies, or the
//! client's host does, nobody renews and the lease lapses.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{Method, Response, StatusCode, Uri};
use axum::response::IntoResponse;
use bytes::Bytes;
use futures_util::stream::unfold;
use http_body_util::BodyExt;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Duration, Instant, sleep_until, timeout, timeout_at};

use super::answers::JSON;
use super::asked::Asked;
use super::context::Context;
use super::headers::IDEMPOTENCY_KEY;
use super::life::Life;
use super::problem::Problem;
use super::query::Query;
use super::stream::{self, Format};
use super::{path, roles};
use crate::driver::api::{Denied, Leadership};
use crate::store::ROLE_TTL;
use crate::types::Text;

/// What the stream takes from the query: the body of `acquire`, for a tool that has no body to send.
const PARAMETERS: [&str; 6] = ["instance_id", "ttl_ms", "wait_ms", "priority", "address", "format"];

/// Renewed three times within its ttl: two may fail.
const RENEWALS: u32 = 3;

/// After a renewal that failed. The lease has most of its ttl left then.
const AGAIN: Duration = Duration::from_millis(250);

/// What a holder stops short of the end of its lease: clocks run apart, by 1% at most.
const DRIFT_PERCENT: u32 = 1;
const DRIFT: Duration = Duration::from_millis(10);

/// A client's host that acknowledges nothing for so long is gone: twice the silence between two signs of life.
const UNHEARD_MOST: Duration = Duration::from_secs(10);

/// What a node that ends takes to give the role back: the drain of its connections lasts longer.
const FAREWELL: Duration = Duration::from_secs(1);

/// What the answers have in common; a release says no time.
#[derive(Debug, Deserialize)]
struct Granted {
    token: u64,
    #[serde(default)]
    expires_in_ms: u64,
}

/// A role held here for a client.
struct Holding {
    context: Arc<Context>,
    asked: Asked,
    role: Text,
    instance: String,
    token: u64,
    /// What is said first, and nothing afterwards.
    first: Option<Bytes>,
    format: Format,
    silence: Duration,
    renew_at: Instant,
    /// Until then the lease is certain.
    certain_until: Instant,
    end: Option<End>,
    /// Closed when the node ends.
    life: watch::Receiver<Leadership>,
    _seat: OwnedSemaphorePermit,
}

/// What has been said last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Lost,
    /// The role is given back once the client has been told.
    Stopping,
}

pub async fn hold(context: Arc<Context>, asked: &Asked, role: Text) -> Result<Response<Body>, Problem> {
    let query = asked.query(&PARAMETERS)?;
    let format = query.format.as_deref().map_or(Ok(Format::Sse), Format::parse)?;
    let claim = claim(&query)?;
    let Ok(seat) = context.holds.clone().try_acquire_owned() else {
        return Err(Denied::TooMany { bound: "roles held by streams of this node" }.into());
    };
    if let Some(life) = asked.parts.extensions.get::<Arc<Life>>() {
        life.end_unheard(UNHEARD_MOST);
    }
    let instance = query.more("instance_id").unwrap_or_default().to_string();
    let sent = Instant::now();
    let waited = claim.contains_key("wait_ms");
    let ttl_ms = claim.get("ttl_ms").and_then(Value::as_u64).unwrap_or(ROLE_TTL.0 / 1000);
    let granted = match ask(&context, asked, &role, "acquire", &Value::Object(claim)).await {
        Ok(granted) => granted,
        Err(refused) => return Ok(refused.response),
    };
    let ttl = Duration::from_millis(granted.expires_in_ms);
    let members = json!({"role": role, "instance_id": instance, "token": granted.token, "ttl_ms": ttl_ms});
    let now = Instant::now();
    let holding = Holding {
        asked: renewed_head(asked),
        role,
        instance,
        token: granted.token,
        first: Some(format.event("held", None, members)),
        format,
        silence: stream::silence(&context.limits),
        // What was waited for was granted at some moment of the wait.
        renew_at: if waited { now } else { sent + ttl / RENEWALS },
        certain_until: certain_until(if waited { now } else { sent }, ttl),
        end: None,
        life: context.handle.leadership(),
        context,
        _seat: seat,
    };
    Ok(stream::response(format, unfold(holding, next)))
}

fn certain_until(sent: Instant, expires_in: Duration) -> Instant {
    sent + expires_in.saturating_sub(expires_in / 100 * DRIFT_PERCENT + DRIFT)
}

/// The body of `acquire` that the query says.
fn claim(query: &Query) -> Result<Map<String, Value>, Problem> {
    let mut claim = Map::new();
    for name in ["instance_id", "address"] {
        claim.extend(query.more(name).map(|text| (name.to_string(), Value::from(text))));
    }
    for name in ["ttl_ms", "wait_ms", "priority"] {
        if let Some(text) = query.more(name) {
            let number: i64 = text.parse().map_err(|_| Problem::field(name, "is no whole number"))?;
            claim.insert(name.to_string(), number.into());
        }
    }
    Ok(claim)
}

async fn next(mut holding: Holding) -> Option<(Result<Bytes, Infallible>, Holding)> {
    if let Some(first) = holding.first.take() {
        return Some((Ok(first), holding));
    }
    if let Some(end) = holding.end {
        if end == End::Stopping {
            // Beyond this time it lapses.
            let _ = timeout(FAREWELL, holding.release()).await;
        }
        return None;
    }
    let piece = holding.go_on().await;
    Some((Ok(piece), holding))
}

impl Holding {
    /// What is to be said next.
    async fn go_on(&mut self) -> Bytes {
        let speak_at = Instant::now() + self.silence;
        while self.renew_at <= speak_at {
            if !self.rest(self.renew_at).await {
                return self.stop();
            }
            if !self.renew().await {
                self.end = Some(End::Lost);
                let members = json!({"role": self.role, "token": self.token});
                return self.format.event("lost", None, members);
            }
        }
        match self.rest(speak_at).await {
            true => self.format.sign_of_life(),
            false => self.stop(),
        }
    }

    /// False if the node ends meanwhile.
    async fn rest(&mut self, until: Instant) -> bool {
        let node_ends = async { while self.life.changed().await.is_ok() {} };
        timeout_at(until, node_ends).await.is_err()
    }

    fn stop(&mut self) -> Bytes {
        self.end = Some(End::Stopping);
        self.format
            .end("stopping", "this node is about to end and gives the role back; hold it at another one")
    }

    fn release(&self) -> impl Future<Output = ()> + Send + use<> {
        let (context, asked, role) = (self.context.clone(), renewed_head(&self.asked), self.role.clone());
        let body = json!({"instance_id": self.instance, "token": self.token});
        let until = self.certain_until;
        async move {
            while Instant::now() < until {
                match ask(&context, &asked, &role, "release", &body).await {
                    Err(refused) if refused.status.is_server_error() => {
                        sleep_until(Instant::now() + AGAIN).await;
                    }
                    Ok(_) | Err(_) => break,
                }
            }
        }
    }

    /// False once the lease is not certain any more.
    async fn renew(&mut self) -> bool {
        let sent = Instant::now();
        let body = json!({"instance_id": self.instance, "token": self.token});
        let asking = ask(&self.context, &self.asked, &self.role, "renew", &body);
        match timeout_at(self.certain_until, asking).await {
            Ok(Ok(granted)) => {
                let expires_in = Duration::from_millis(granted.expires_in_ms);
                self.certain_until = certain_until(sent, expires_in);
                self.renew_at = sent + expires_in / RENEWALS;
                true
            }
            Ok(Err(refused)) if refused.status == StatusCode::GONE => false,
            Ok(Err(_)) => {
                self.renew_at = Instant::now() + AGAIN;
                self.renew_at < self.certain_until
            }
            Err(_) => false,
        }
    }
}

/// The client has gone.
impl Drop for Holding {
    fn drop(&mut self) {
        if self.end.is_none() {
            tokio::spawn(self.release());
        }
    }
}

/// Calls another route of this node, as the client would.
async fn ask(
    context: &Arc<Context>,
    asked: &Asked,
    role: &Text,
    order: &str,
    body: &Value,
) -> Result<Granted, Refused> {
    let asked = call(context, asked, role, order, body)?;
    let response = roles::answered(context, asked).await?;
    if response.status() != StatusCode::OK {
        return Err(Refused { status: response.status(), response });
    }
    let bytes = response.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    Ok(serde_json::from_slice(&bytes).map_err(Problem::from)?)
}

/// An answer that is passed on as it is.
struct Refused {
    status: StatusCode,
    response: Response<Body>,
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Refused {
        let response = problem.into_response();
        Refused { status: response.status(), response }
    }
}

fn call(context: &Context, asked: &Asked, role: &str, order: &str, body: &Value) -> Result<Asked, Problem> {
    let target = format!("{}{}/{order}", roles::PREFIX, path::encode(role));
    let uri: Uri = target.parse().map_err(|_| Problem::field("role", "the role cannot be passed on"))?;
    let mut call = renewed_head(asked);
    call.parts.method = Method::POST;
    call.parts.uri = uri;
    call.body = body.to_string().into();
    call.deadline = Instant::now() + context.limits.request_timeout;
    Ok(call)
}

/// The same caller's, for another call: what belonged to the first body goes.
fn renewed_head(asked: &Asked) -> Asked {
    let mut parts = asked.parts.clone();
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.remove(IDEMPOTENCY_KEY);
    parts.headers.insert(CONTENT_TYPE, JSON);
    Asked { parts, body: Bytes::new(), deadline: asked.deadline, mode: asked.mode }
}
