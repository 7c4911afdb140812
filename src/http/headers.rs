//! The headers of our own: what every answer says about the node that gave it.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

use super::context::Context;
use crate::types::{Epoch, Index, NodeId, Position};

pub const NODE: HeaderName = HeaderName::from_static("eldest-node");
pub const LEADER: HeaderName = HeaderName::from_static("eldest-leader");
pub const EPOCH: HeaderName = HeaderName::from_static("eldest-epoch");
pub const INDEX: HeaderName = HeaderName::from_static("eldest-index");
pub const ACKS: HeaderName = HeaderName::from_static("eldest-acks");
pub const AGE: HeaderName = HeaderName::from_static("eldest-age-ms");
/// The node that passed a client's call on; it is never passed on again.
pub const FORWARDED: HeaderName = HeaderName::from_static("eldest-forwarded");
/// An earlier call with the same key was answered; this is its answer.
pub const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// A request id of a client's own. It is repeated in answers, problems and logs, so it is short and plain.
const REQUEST_ID_MOST: usize = 128;

/// Where and when what is answered was so.
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

/// Adds what the handler did not say itself. An answer from another node says it all about that node.
pub fn complete(headers: &mut HeaderMap, context: &Context, request_id: HeaderValue) {
    if !headers.contains_key(NODE) {
        headers.insert(NODE, context.node_value());
        let pulse = context.handle.pulse();
        if !headers.contains_key(LEADER) {
            set_leader(headers, pulse.leader());
        }
        if !headers.contains_key(EPOCH) {
            set_view(headers, pulse.epoch(), pulse.applied());
        }
    }
    headers.insert(REQUEST_ID, request_id);
}

/// The client's own id if it is usable, or a new one. The request carries it from here on.
pub fn request_id(headers: &mut HeaderMap, context: &Context) -> HeaderValue {
    let usable = |value: &&HeaderValue| {
        let bytes = value.as_bytes();
        (1..=REQUEST_ID_MOST).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic)
    };
    if let Some(given) = headers.get(REQUEST_ID).filter(usable) {
        return given.clone();
    }
    let made = value_of(context.request_id());
    headers.insert(REQUEST_ID, made.clone());
    made
}

fn epoch_value(epoch: Epoch) -> HeaderValue {
    value_of(epoch.to_string())
}

/// Of text of our own making.
pub fn value_of(text: String) -> HeaderValue {
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static(""))
}
