//! Requests of clients: their parsing, and the state that all handlers share.
//!
//! - `asker` is the caller of a call, and `client_request` is a call as handlers receive it.
//! - `headers`, `body` and `command` parse parts of a call, and `lines` cuts a command stream into lines and chunks.
//! - `web` protects the node from web pages, and `origin` has what a node states about a call that it forwards.
//! - `audit` writes the audit log, `refusals` keeps recent refusals, and `holders` knows the streams that hold roles.
//! - `context` is the state that all handlers share.

mod asker;
mod audit;
mod body;
mod client_request;
mod command;
mod context;
mod headers;
mod holders;
mod lines;
mod origin;
mod refusals;
mod web;

pub use asker::{Asker, Connection};
pub use audit::{Audit, AuditEntry, AuditMessage, Stage, audit};
pub use body::{LongBody, NoFields, check_media_type, is_ndjson, raw, read as read_body};
pub use client_request::{CallKind, ClientCall, ClientHead, ClientRequest};
pub use command::{command, line};
pub use context::{Context, FAREWELL};
pub use headers::{
    FIRST_LINE, Fresh, IDEMPOTENCY_KEY, IF_ROLE, KeyOwner, SECRET, check_cluster, condition, freshness,
    holder, no_holder,
};
pub use holders::{HolderHere, HoldingStream};
pub use lines::{CHUNK_LINES, Chunk, Commands};
pub use origin::{FORWARDED, GivesBack, origin, say_origin, say_stamp, stamp};
pub use web::{Web, allow, host, is_preflight, preflight};
