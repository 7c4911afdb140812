//! Requests of clients: their parsing, their authorization, and the state that all handlers share.
//!
//! - Parsing: `client_request` is a request as handlers receive it; `url`, `headers`, `body` and `command` parse its parts, and `lines`
//!   cuts a command stream into lines and chunks.
//! - Authorization: `auth` identifies the caller, `needs` has the permission that each route needs, `web` protects the node from web pages,
//!   `refused` counts refused credentials, and `origin` has what a node states about a call that it forwards.
//! - Bounds: `callers` bounds connections and memory by address, `seats` the open calls of each class, `places` what a caller keeps for
//!   long, and `timeouts` the silence of a connection.
//! - Records: `audit` writes the audit log, `refusals` keeps recent refusals, `traffic` counts calls, and `handshakes` failed handshakes.
//! - `context` is the state that all handlers share.

mod audit;
mod auth;
mod body;
mod callers;
mod client_request;
mod command;
mod context;
mod handshakes;
mod headers;
mod lines;
pub mod needs;
mod origin;
mod places;
mod refusals;
mod refused;
mod seats;
mod timeouts;
mod traffic;
pub mod url;
mod web;

pub use audit::{Audit, AuditEntry, AuditMessage, Stage, audit};
pub use auth::{Guard, Principal, Shown, Who, written};
pub use body::{LongBody, NoFields, check_media_type, is_ndjson, raw, read as read_body};
#[cfg(test)]
pub use callers::Callers;
pub use callers::{Caller, ConnectionPlace, Held, no_memory};
pub use client_request::{CallKind, ClientRequest, principal, sharers};
pub use command::{command, line};
pub use context::{Context, FAREWELL};
pub use headers::{
    FIRST_LINE, FORWARDED, Fresh, IDEMPOTENCY_KEY, IF_ROLE, KeyOwner, SECRET, condition, freshness, holder,
    no_holder,
};
pub use lines::{CHUNK_LINES, Chunk, Commands};
pub use origin::{GivesBack, origin, say_origin, say_stamp, stamp};
pub use places::{Origin, Place, Places, Sharer, Sharers, Shares};
pub use refused::Refused;
pub use seats::{Admitted, Class, Seat};
pub use timeouts::{ConnectionTimeouts, Decision, Untaken};
pub use traffic::Counted;
pub use url::{Query, has_dot_segments, name_after, new_name_after, url_safe};
pub use web::{Web, allow, host, is_preflight, preflight};
