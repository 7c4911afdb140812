//! `GET /openapi.json` describes the API for tools.

use std::sync::LazyLock;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{CACHE_CONTROL, ETAG, HeaderValue, IF_NONE_MATCH};
use axum::http::{Response, StatusCode};
use bytes::Bytes;

use crate::http::answer::{self, JSON, empty, value_of};
use crate::http::openapi::document;

/// The text is built once: it does not change while the process lives.
static TEXT: LazyLock<(Bytes, HeaderValue)> = LazyLock::new(|| {
    let text = document().to_string();
    let tag = value_of(format!("\"{}\"", &blake3::hash(text.as_bytes()).to_hex()[..32]));
    (text.into(), tag)
});

pub async fn openapi(request: Request) -> Response<Body> {
    let (text, tag) = &*TEXT;
    let known = request.headers().get(IF_NONE_MATCH).is_some_and(|given| given == tag);
    let mut response = match known {
        true => empty(),
        false => answer::typed(StatusCode::OK, JSON, text.clone()),
    };
    if known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    response.headers_mut().insert(ETAG, tag.clone());
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}
