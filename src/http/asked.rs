//! A client's call as handlers take it: head, whole body, and the time by which it is answered.

use std::sync::Arc;

use axum::extract::{FromRequest, Request};
use axum::http::request::Parts;
use bytes::Bytes;
use serde::Deserialize;
use tokio::time::{Instant, timeout_at};

use super::body;
use super::context::Context;
use super::headers::FORWARDED;
use super::problem::Problem;
use super::query::Query;
use super::turn::Kind;
use crate::protocol::Mode;

#[derive(Debug)]
pub struct Asked {
    pub parts: Parts,
    pub body: Bytes,
    pub deadline: Instant,
    /// The cluster's.
    pub mode: Mode,
}

impl Asked {
    pub fn query<'a>(&'a self, known: &[&str]) -> Result<Query<'a>, Problem> {
        Query::parse(self.parts.uri.query(), known)
    }

    pub fn path(&self) -> &str {
        self.parts.uri.path()
    }

    /// Another node passed it on: it is answered here, or not at all.
    pub fn was_forwarded(&self) -> bool {
        self.parts.headers.contains_key(FORWARDED)
    }

    /// For what the loop is asked without a leader's part in it: it may hang, the caller may not.
    pub async fn in_time<T>(&self, answer: impl Future<Output = T>) -> Result<T, Problem> {
        timeout_at(self.deadline, answer).await.map_err(|_| Kind::Read.late(self.mode))
    }

    /// The body as an object of known members; nothing is an empty object.
    pub fn object<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Problem> {
        body::check_media_type(&self.parts.headers)?;
        body::object(&self.body)
    }
}

impl FromRequest<Arc<Context>> for Asked {
    type Rejection = Problem;

    async fn from_request(request: Request, context: &Arc<Context>) -> Result<Asked, Problem> {
        let now = Instant::now();
        let (parts, body) = request.into_parts();
        let limits = &context.limits;
        let whole_by = now + limits.body_timeout.min(limits.request_timeout);
        let body = body::read(body, limits.body_bytes, whole_by).await?;
        let mode = context.setup.settings.mode;
        Ok(Asked { parts, body, deadline: now + limits.request_timeout, mode })
    }
}
