//! A client's request as handlers receive it: its head, its whole body, and the time by which it must be answered.
//!
//! Every route that takes a whole body gets it in this form, and its body has the same bounds. A stream of
//! commands, a backup and a whole-data document are read by their handlers instead.

use std::sync::Arc;

use axum::extract::{FromRequest, Request};
use axum::http::request::Parts;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout_at};

use super::context::Context;
use super::{body, headers};
use crate::http::access::Principal;
use crate::http::admission::{Admitted, Caller, Origin, Sharer, Sharers};
use crate::http::answer::{Code, Problem, outcome_unknown};
use crate::http::url::Query;
use crate::protocol::Mode;
use crate::store::SecretHash;
use crate::types::KeyedCall;

/// Decides which problem is sent if no answer comes in time, and whether another leader may be asked (`dispatch::leader`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// It may be repeated as it is. Renewals are of this kind as well, since they make no record (P39).
    Read,
    Write,
    /// A call for which no idempotency key is kept.
    Order,
}

impl CallKind {
    /// Returns the problem for a call whose time is up after it was given to the loop or to another node.
    /// A read has no effect, so it is refused. A write may have reached a log, and a refusal would say that
    /// it did not (P15).
    pub fn late(self, mode: Mode) -> Problem {
        let code = match (self, mode) {
            (CallKind::Write | CallKind::Order, _) => {
                return outcome_unknown("the call timed out before it was decided");
            }
            (CallKind::Read, Mode::Safe) => Code::NoQuorum,
            // In available mode no read waits for a majority.
            (CallKind::Read, Mode::Available) => Code::NoLeader,
        };
        Problem::new(code, "the call timed out before anything was read")
    }
}

#[derive(Debug)]
pub struct ClientRequest {
    pub parts: Parts,
    pub body: Bytes,
    /// It counts from the head of the call and includes the time for the body. A handler may extend it by a
    /// wait that the caller has asked for.
    pub deadline: Instant,
    /// The mode of the cluster.
    pub mode: Mode,
}

impl ClientRequest {
    pub fn query<'a>(&'a self, known: &[&str]) -> Result<Query<'a>, Problem> {
        Query::parse(self.parts.uri.query(), known)
    }

    /// For routes that take only `forward`: returns whether the call stays here, with or without a leader.
    pub fn no_forward(&self) -> Result<bool, Problem> {
        Ok(self.query(&["forward"])?.no_forward)
    }

    /// Returns the origin of the call, if it is known.
    pub fn origin(&self) -> Option<Origin> {
        self.parts.extensions.get::<Admitted>()?.origin()
    }

    pub fn sharers(&self) -> Sharers {
        sharers(&self.parts)
    }

    /// Returns the principal of the call.
    pub fn principal(&self) -> Principal {
        principal(&self.parts)
    }

    /// The call may wait for long from here on: it is counted as a waiting call.
    pub fn wait(&self) -> Result<(), Problem> {
        self.parts.extensions.get::<Admitted>().map_or(Ok(()), Admitted::wait)
    }

    pub fn path(&self) -> &str {
        self.parts.uri.path()
    }

    /// Another node forwarded the call: it is answered here, or not at all.
    pub fn was_forwarded(&self) -> bool {
        self.parts.headers.contains_key(headers::FORWARDED)
    }

    /// Bounds a call to the loop that needs no leader: the loop may hang, the caller may not.
    pub async fn in_time<T>(&self, answer: impl Future<Output = T>) -> Result<T, Problem> {
        timeout_at(self.deadline, answer).await.map_err(|_| CallKind::Read.late(self.mode))
    }

    pub fn check_media_type(&self) -> Result<(), Problem> {
        body::check_media_type(&self.parts.headers)
    }

    /// Returns the body as one JSON value.
    pub fn raw(&self) -> Result<&RawValue, Problem> {
        body::raw(&self.body)
    }

    /// Returns the secret that the caller shows in the head of the request (P53).
    pub fn secret(&self) -> Result<Option<SecretHash>, Problem> {
        headers::secret(&self.parts.headers)
    }

    /// Returns the keyed call, if the request has an `Idempotency-Key`.
    pub fn idempotent_call(&self) -> Result<Option<KeyedCall>, Problem> {
        headers::idempotent_call(&self.parts, &self.body)
    }

    /// Parses the body as an object of known members; an empty body is an empty object.
    pub fn object<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Problem> {
        self.check_media_type()?;
        body::object(&self.body)
    }
}

/// Returns the principal that the guard of the route has set.
/// Without a guard it is a principal without any grant, so a route that forgets its guard refuses.
pub fn principal(parts: &Parts) -> Principal {
    parts.extensions.get().cloned().unwrap_or_else(Principal::nobody)
}

/// Returns the sharers that a call counts for. The guard may know more of its principal than was known when the call was admitted.
pub fn sharers(parts: &Parts) -> Sharers {
    let admitted = parts.extensions.get::<Admitted>().map(|admitted| admitted.sharers).unwrap_or_default();
    let judged = parts.extensions.get().map(|principal: &Principal| Sharer::of(&principal.who));
    Sharers { principal: judged.or(admitted.principal), ..admitted }
}

impl FromRequest<Arc<Context>> for ClientRequest {
    type Rejection = Problem;

    async fn from_request(request: Request, context: &Arc<Context>) -> Result<ClientRequest, Problem> {
        let now = Instant::now();
        let (mut parts, body) = request.into_parts();
        let limits = &context.limits;
        let whole_by = now + limits.body_timeout.min(limits.request_timeout);
        let caller = parts.extensions.get::<Arc<Caller>>();
        let (body, held) = body::read_held(body, limits.body_bytes, whole_by, caller).await?;
        // The second of three looks at the token (P56): the guard looked when the head arrived, and the
        // leader looks before it writes. A body may take seconds, and the token may be revoked in that time.
        context.is_still_let_in(&principal(&parts))?;
        if let Some(held) = held {
            // The memory is held as long as the request or its head exists.
            parts.extensions.insert(Arc::new(held));
        }
        let mode = context.setup.settings.mode;
        Ok(ClientRequest { parts, body, deadline: now + limits.request_timeout, mode })
    }
}
