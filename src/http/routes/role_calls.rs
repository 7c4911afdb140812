//! The calls about a role that a node makes for a client whose stream it serves: to its own loop or to the leader, as for any client.
//!
//! ```text
//!   hold, tie ─► Calls ─► the client's head with another path and body ─► dispatch, as for any call of that client
//! ```
//!
//! The calls carry the client's credential, so they are judged like calls of the client itself. Giving back
//! is the exception, because the client's token may be what has ended: there the node speaks for itself
//! (`request::GivesBack`).

use std::sync::Arc;

use axum::body::Body;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{Method, Response, StatusCode, Uri};
use axum::response::IntoResponse;
use http_body_util::BodyExt;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Duration, Instant};

use super::roles;
use crate::driver;
use crate::http::access::Principal;
use crate::http::answer::lease::millis;
use crate::http::answer::{JSON, Problem};
use crate::http::dispatch::{self, Settled};
use crate::http::request::{CallKind, ClientHead, ClientRequest, Context, GivesBack, IDEMPOTENCY_KEY};
use crate::http::url;
use crate::protocol::Mode;
use crate::store::{Role, Tenure};
use crate::types::Text;

/// A client's host that acknowledges nothing for this long is treated as dead: twice the silence between two keep-alive messages.
/// So a role that a vanished host held by a stream is free within 15 s: the next message leaves within 5 s.
pub const UNHEARD_MOST: Duration = Duration::from_secs(10);

/// The pause after a failed call that may succeed later. Most of the ttl is left then.
pub const AGAIN: Duration = Duration::from_millis(250);

/// The fields that a grant and a renewal have in common.
#[derive(Debug, Deserialize)]
pub struct Granted {
    pub token: u64,
    expires_in_ms: u64,
}

/// The calls for the client, to this node's loop or to the leader.
pub struct Calls {
    pub context: Arc<Context>,
    /// The head of the client's call, used for the further calls.
    pub head: ClientHead,
    pub mode: Mode,
    pub role: Text,
}

/// A response that is passed on unchanged.
pub struct RefusedCall {
    pub status: StatusCode,
    pub response: Response<Body>,
}

impl From<Problem> for RefusedCall {
    fn from(problem: Problem) -> RefusedCall {
        RefusedCall::of(problem.into_response())
    }
}

impl RefusedCall {
    fn of(response: Response<Body>) -> RefusedCall {
        RefusedCall { status: response.status(), response }
    }
}

/// Returns whether another leader, or the same one a moment later, may accept the call.
/// 504 is among them: the calls that are made again name a token, and do no harm if the first one was carried
/// out.
pub fn may_pass(status: StatusCode) -> bool {
    status.is_server_error()
        || matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::MISDIRECTED_REQUEST)
}

impl Calls {
    pub async fn acquire(&self, claim: Value) -> Result<Granted, RefusedCall> {
        let asked = self.asked("acquire", &claim)?;
        let acquisition = roles::acquisition(&asked)?;
        let taken = roles::acquired(&self.context, asked, false, &self.role, acquisition);
        granted(taken.await?).await
    }

    pub async fn renew(&self, tenure: &Tenure) -> Result<Granted, RefusedCall> {
        let asked = self.asked("renew", &tenure_json(tenure))?;
        granted(roles::renewed(&self.context, &asked, false, &self.role, tenure).await?).await
    }

    pub async fn release(&self, tenure: &Tenure) -> Result<(), RefusedCall> {
        let asked = self.giving_back("release", tenure)?;
        let taken = dispatch::settle(&self.context, &asked, CallKind::Write, false, || async {
            let release = tenure.clone().release(self.role.clone());
            Ok(self.context.handle.write(release, None).await?)
        });
        match taken.await? {
            Settled::Here(_) => Ok(()),
            Settled::Elsewhere(response) if response.status() == StatusCode::OK => Ok(()),
            Settled::Elsewhere(response) => Err(RefusedCall::of(response)),
        }
    }

    pub async fn untie(&self, tenure: &Tenure) -> Result<(), RefusedCall> {
        let asked = self.giving_back("untie", tenure)?;
        match roles::untied(&self.context, &asked, false, &self.role, tenure).await? {
            Settled::Here(()) => Ok(()),
            Settled::Elsewhere(response) if response.status() == StatusCode::OK => Ok(()),
            Settled::Elsewhere(response) => Err(RefusedCall::of(response)),
        }
    }

    /// Builds the call that gives back the client's role. The stream may have ended because its token was revoked, so the client is judged
    /// neither here nor by the leader.
    fn giving_back(&self, order: &str, tenure: &Tenure) -> Result<ClientRequest, Problem> {
        let mut asked = self.asked(order, &tenure_json(tenure))?;
        asked.head.asker.principal = Principal::nobody();
        asked.head.asker.gives_back = Some(GivesBack { token: tenure.token, tie: tenure.tie });
        Ok(asked)
    }

    /// Builds the call as the leader gets it if another node leads.
    /// Each call has the time of one call, counted from here: the stream itself lasts much longer.
    fn asked(&self, order: &str, body: &Value) -> Result<ClientRequest, Problem> {
        let target = format!("{}{}/{order}", roles::PREFIX, url::encode(&self.role));
        let uri: Uri =
            target.parse().map_err(|_| Problem::field("role", "the role call cannot be forwarded"))?;
        let mut head = self.head.clone();
        head.parts.uri = uri;
        let deadline = Instant::now() + self.context.limits.request_timeout;
        Ok(ClientRequest::of_node(head, body.to_string().into(), deadline, self.mode))
    }
}

async fn granted(taken: Settled<driver::Granted<Role>>) -> Result<Granted, RefusedCall> {
    let response = match taken {
        Settled::Here(granted) => {
            let (token, expires_in_ms) = (granted.what.token, millis(granted.expires_in));
            return Ok(Granted { token, expires_in_ms });
        }
        Settled::Elsewhere(response) => response,
    };
    if response.status() != StatusCode::OK {
        return Err(RefusedCall::of(response));
    }
    let bytes = response.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    Ok(serde_json::from_slice(&bytes).map_err(Problem::from)?)
}

impl Granted {
    pub fn expires_in(&self) -> Duration {
        Duration::from_millis(self.expires_in_ms)
    }
}

fn tenure_json(tenure: &Tenure) -> Value {
    let mut said = json!({"instance_id": *tenure.instance, "token": tenure.token});
    if let Some(ttl) = tenure.ttl {
        said["ttl_ms"] = json!(ttl.0 / 1000);
    }
    if let Some(tie) = tenure.tie {
        said["tie"] = json!(tie);
    }
    said
}

/// Removes the headers that belong to the first body.
/// An idempotency key names the client's one call. With it the further calls would get the answer of the
/// first.
pub fn head(asked: &ClientRequest) -> ClientHead {
    let mut head = ClientHead::clone(&asked.head);
    let parts = &mut head.parts;
    parts.method = Method::POST;
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.remove(IDEMPOTENCY_KEY);
    parts.headers.insert(CONTENT_TYPE, JSON);
    head
}
