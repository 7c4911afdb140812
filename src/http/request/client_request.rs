//! A client's call as handlers receive it: its head, its whole body, and the time by which it must be answered.
//!
//! Every route that takes a whole body gets it in this form ([`ClientRequest`]), and its body has the same bounds. A stream of
//! commands, a backup and a whole-data document are read by their handlers instead, which get a [`ClientCall`].

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::request::Parts;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout_at};

use super::asker::Asker;
use super::context::Context;
use super::origin::FORWARDED;
use super::{body, headers};
use crate::http::access::Principal;
use crate::http::admission::{Held, Origin, Sharers};
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

/// The head of a call, and its caller. The work for a call that goes on after its answer keeps this of it.
#[derive(Clone, Debug)]
pub struct ClientHead {
    pub parts: Parts,
    pub asker: Asker,
}

/// A call whose body is not read yet.
#[derive(Debug)]
pub struct ClientCall {
    /// In a box, since a call passes many hands.
    pub head: Box<ClientHead>,
    pub body: Body,
}

#[derive(Debug)]
pub struct ClientRequest {
    pub head: Box<ClientHead>,
    pub body: Bytes,
    /// It counts from the head of the call and includes the time for the body. A handler may extend it by a
    /// wait that the caller has asked for.
    pub deadline: Instant,
    /// The mode of the cluster.
    pub mode: Mode,
    /// The memory of the body is held for as long as the call.
    _held: Option<Held>,
}

impl ClientRequest {
    /// A call that this node makes itself, to its own loop or to the leader.
    pub fn of_node(head: ClientHead, body: Bytes, deadline: Instant, mode: Mode) -> ClientRequest {
        ClientRequest { head: Box::new(head), body, deadline, mode, _held: None }
    }

    pub fn query<'a>(&'a self, known: &[&str]) -> Result<Query<'a>, Problem> {
        Query::parse(self.head.parts.uri.query(), known)
    }

    /// Does the same for the names of two lists.
    pub fn query_of<'a>(&'a self, known: &[&str], more: &[&str]) -> Result<Query<'a>, Problem> {
        match self.head.parts.uri.query() {
            None => Ok(Query::default()),
            Some(_) => self.query(&[known, more].concat()),
        }
    }

    /// For routes that take only `forward`: returns whether the call stays here, with or without a leader.
    pub fn no_forward(&self) -> Result<bool, Problem> {
        Ok(self.query(&["forward"])?.no_forward)
    }

    /// Returns the origin of the call, if it is known.
    pub fn origin(&self) -> Option<Origin> {
        self.head.asker.admitted.origin()
    }

    pub fn sharers(&self) -> Sharers {
        self.head.asker.sharers()
    }

    pub fn principal(&self) -> &Principal {
        &self.head.asker.principal
    }

    /// The call may wait for long from here on: it is counted as a waiting call.
    pub fn wait(&self) -> Result<(), Problem> {
        self.head.asker.admitted.wait()
    }

    pub fn path(&self) -> &str {
        self.head.parts.uri.path()
    }

    /// Another node forwarded the call: it is answered here, or not at all.
    pub fn was_forwarded(&self) -> bool {
        self.head.parts.headers.contains_key(FORWARDED)
    }

    /// Bounds a call to the loop that needs no leader: the loop may hang, the caller may not.
    pub async fn in_time<T>(&self, answer: impl Future<Output = T>) -> Result<T, Problem> {
        timeout_at(self.deadline, answer).await.map_err(|_| CallKind::Read.late(self.mode))
    }

    pub fn check_media_type(&self) -> Result<(), Problem> {
        body::check_media_type(&self.head.parts.headers)
    }

    /// Returns the body as one JSON value.
    pub fn raw(&self) -> Result<&RawValue, Problem> {
        body::raw(&self.body)
    }

    /// Returns the secret that the caller shows in the head of the request (P53).
    pub fn secret(&self) -> Result<Option<SecretHash>, Problem> {
        headers::secret(&self.head.parts.headers)
    }

    /// Returns the keyed call, if the request has an `Idempotency-Key`.
    pub fn idempotent_call(&self) -> Result<Option<KeyedCall>, Problem> {
        headers::idempotent_call(&self.head.parts, &self.head.asker, &self.body)
    }

    /// Parses the body as an object of known members; an empty body is an empty object.
    pub fn object<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Problem> {
        self.check_media_type()?;
        body::object(&self.body)
    }
}

impl ClientCall {
    /// Returns the call as a router takes it.
    pub fn into_request(self) -> Request {
        let ClientCall { head, body } = self;
        let ClientHead { mut parts, asker } = *head;
        parts.extensions.insert(asker);
        Request::from_parts(parts, body)
    }

    /// Reads the body.
    pub async fn whole(self, context: &Context) -> Result<ClientRequest, Problem> {
        let ClientCall { head, body } = self;
        let now = Instant::now();
        let limits = &context.limits;
        let whole_by = now + limits.body_timeout.min(limits.request_timeout);
        let caller = head.asker.connection.as_ref().map(|connection| &connection.caller);
        let (body, held) = body::read_held(body, limits.body_bytes, whole_by, caller).await?;
        // The second of three looks at the token (P56): the guard looked when the head arrived, and the
        // leader looks before it writes. A body may take seconds, and the token may be revoked in that time.
        context.is_still_let_in(&head.asker.principal)?;
        let mode = context.setup.settings.mode;
        Ok(ClientRequest { head, body, deadline: now + limits.request_timeout, mode, _held: held })
    }
}

/// The front has put the caller into the request.
impl<S: Sync> FromRequest<S> for ClientCall {
    type Rejection = Infallible;

    async fn from_request(request: Request, _: &S) -> Result<ClientCall, Infallible> {
        let (mut parts, body) = request.into_parts();
        let asker = parts.extensions.remove().unwrap_or_else(Asker::node);
        Ok(ClientCall { head: Box::new(ClientHead { parts, asker }), body })
    }
}

impl FromRequest<Arc<Context>> for ClientRequest {
    type Rejection = Problem;

    async fn from_request(request: Request, context: &Arc<Context>) -> Result<ClientRequest, Problem> {
        let Ok(call) = ClientCall::from_request(request, context).await;
        call.whole(context).await
    }
}
