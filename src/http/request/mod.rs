//! Requests of clients: how they are parsed, who may send them, and what all handlers share.

mod admission;
mod auth;
mod body;
mod client_request;
mod command;
mod context;
mod headers;
mod lines;
mod timeouts;
pub mod url;

pub use admission::{Admission, Permit};
pub use body::{NoFields, check_media_type, is_ndjson, raw, read as read_body};
pub use client_request::{ClientRequest, Kind};
pub use command::{command, line};
pub use context::Context;
pub use headers::{FIRST_LINE, FORWARDED, Fresh, IDEMPOTENCY_KEY, condition, freshness};
pub use lines::{CHUNK_LINES, Chunk, Commands};
pub use timeouts::{ConnectionTimeouts, Decision};
pub use url::{Query, has_dot_segments, name_after, url_safe};
