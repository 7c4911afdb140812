//! Bodies of answers.

use std::sync::Arc;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::http::{Response, StatusCode};
use bytes::Bytes;
use serde::Serialize;

use crate::types::Text;

pub const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

pub fn json(status: StatusCode, body: impl Into<Bytes>) -> Response<Body> {
    typed(status, JSON, body)
}

pub fn typed(status: StatusCode, kind: HeaderValue, body: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::from(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// Of plain data of our own.
pub fn data(value: &impl Serialize) -> Response<Body> {
    json(StatusCode::OK, serde_json::to_vec(value).unwrap_or_default())
}

pub fn empty() -> Response<Body> {
    Response::new(Body::empty())
}

/// Text of the store without a copy.
pub fn shared(text: Text) -> Bytes {
    struct Shared(Arc<str>);
    impl AsRef<[u8]> for Shared {
        fn as_ref(&self) -> &[u8] {
            self.0.as_bytes()
        }
    }
    Bytes::from_owner(Shared(text))
}
