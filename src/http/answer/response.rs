//! Responses: their bodies, and the headers that state which node answered, and from which state.

use std::cell::RefCell;
use std::sync::Arc;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, ETAG, HeaderName, HeaderValue};
use axum::http::{HeaderMap, Response, StatusCode};
use bytes::Bytes;
use serde::Serialize;

use crate::driver::handle::Written;
use crate::store::Json;
use crate::types::{Epoch, Index, NodeId, Position, Text};

pub const NODE: HeaderName = HeaderName::from_static("eldest-node");
pub const LEADER: HeaderName = HeaderName::from_static("eldest-leader");
pub const EPOCH: HeaderName = HeaderName::from_static("eldest-epoch");
pub const INDEX: HeaderName = HeaderName::from_static("eldest-index");
pub const ACKS: HeaderName = HeaderName::from_static("eldest-acks");
pub const AGE: HeaderName = HeaderName::from_static("eldest-age-ms");
/// An earlier call with the same key was answered; this response repeats its result.
pub const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// The number of lines at the end of a chunk that were not taken because another node leads. Sent between nodes.
/// Those lines have reached no log, so the node that forwarded them decides them again.
pub const NOT_TAKEN: HeaderName = HeaderName::from_static("eldest-not-taken");
/// The ttl of a document, its remaining time, and the lease that it ends with.
pub const TTL: HeaderName = HeaderName::from_static("eldest-ttl-ms");
pub const EXPIRES_IN: HeaderName = HeaderName::from_static("eldest-expires-in-ms");
pub const WITH: HeaderName = HeaderName::from_static("eldest-with");
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

pub const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// Most responses have about this many headers.
const HEADERS: usize = 10;

pub fn json(status: StatusCode, body: impl Into<Bytes>) -> Response<Body> {
    typed(status, JSON, body)
}

pub fn typed(status: StatusCode, kind: HeaderValue, body: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::from(body.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.reserve(HEADERS);
    headers.insert(CONTENT_TYPE, kind);
    response
}

/// A response with plain data of our own.
pub fn data(value: &impl Serialize) -> Response<Body> {
    json(StatusCode::OK, serde_json::to_vec(value).unwrap_or_default())
}

/// A response with any value of the store that writes itself as JSON.
pub fn stored(value: &impl Json) -> Response<Body> {
    json(StatusCode::OK, value.to_json())
}

/// Writes a command's position in the log, and its result.
/// The result is JSON already, and is put in as it is.
pub fn push_command(text: &mut String, written: &Written) {
    let (position, reply) = (written.position, &written.reply.json);
    // The result of a batch is the array of its operations' results; the result of a single command is an object.
    let name = if reply.starts_with('[') { "results" } else { "result" };
    let begin = format_args!("{{\"index\":{},\"epoch\":\"{}\",\"{name}\":", position.index, position.epoch);
    std::fmt::Write::write_fmt(text, begin).unwrap_or_default();
    text.push_str(reply);
    text.push('}');
}

/// A response with only the result of a command.
pub fn result(written: &Written, status: StatusCode) -> Response<Body> {
    json(status, shared(written.reply.json.clone()))
}

pub fn empty() -> Response<Body> {
    Response::new(Body::empty())
}

/// Wraps text of the store without a copy.
/// A document has up to 1 MiB; the state and all of its readers share one copy.
pub fn shared(text: Text) -> Bytes {
    struct Shared(Arc<str>);
    impl AsRef<[u8]> for Shared {
        fn as_ref(&self) -> &[u8] {
            self.0.as_bytes()
        }
    }
    Bytes::from_owner(Shared(text))
}

/// Sets the position of the state that the response shows.
pub fn set_position(headers: &mut HeaderMap, position: Position) {
    set_view(headers, position.epoch, position.index);
}

pub fn set_view(headers: &mut HeaderMap, epoch: Epoch, index: Index) {
    headers.insert(EPOCH, epoch_value(epoch));
    headers.insert(INDEX, HeaderValue::from(index));
}

pub fn set_leader(headers: &mut HeaderMap, leader: Option<NodeId>) {
    if let Some(leader) = leader {
        headers.insert(LEADER, HeaderValue::from(leader.0));
    }
}

/// An epoch lasts for long, so its text is kept.
fn epoch_value(epoch: Epoch) -> HeaderValue {
    thread_local! {
        static LAST: RefCell<(Epoch, HeaderValue)> = RefCell::new((Epoch::default(), value_of(Epoch::default().to_string())));
    }
    LAST.with_borrow_mut(|(last, value)| {
        if *last != epoch {
            (*last, *value) = (epoch, value_of(epoch.to_string()));
        }
        value.clone()
    })
}

/// Makes a header value of text that this node has produced.
/// A text that a header cannot hold gives an empty value, and no failure: the response is worth more than its
/// header.
pub fn value_of(text: String) -> HeaderValue {
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static(""))
}

pub fn set_etag(headers: &mut HeaderMap, rev: &str) {
    let mut tag = String::with_capacity(rev.len() + 2);
    tag.push('"');
    tag.push_str(rev);
    tag.push('"');
    headers.insert(ETAG, value_of(tag));
}
