//! The HTTP server for clients, operators and other nodes. It makes no decisions.
//!
//! ```text
//!   server     listener ─► one task for each connection (hyper, h1 and h2c) ─► front: credential, host and origin
//!                                    ┌────────────────────────────────────┤
//!                           without Eldest-Message               with Eldest-Message
//!                    request id, size of the head, admission              │
//!                                    ▼                                    ▼
//!   routes     documents, commands, roles, processes, feed …    peer      cluster, sender, proof ─► driver::Handle
//!   openapi    the description of the API for tools
//!                                    ▼
//!   dispatch   here, at the leader in one hop, or a moment later ─► driver::Handle
//!                                    ▼
//!   spans      the trace that a call belongs to, and the spans for a collector
//!   request    the client's request: headers, body, deadline; the context that all handlers share
//!   admission  how much each caller may take: places, seats, connections, memory, time
//!   access     who calls, what the call asks for, and whether that caller may
//!   url        names in paths, and queries
//!   answer     responses, streams, problems
//! ```
//!
//! Each folder uses only those drawn below it; `peer` uses `request` and `answer`. `answer::errors` turns what the node and the store
//! refuse into error codes; a check in another folder names its own code. Only `answer::problem` writes codes.
//!
//! A refusal (421, 429, 503) is given only while it is certain that nothing of the call has reached a log (P15, C7). Once the node has
//! taken a write, or has sent it to another node, the answer is its verdict or `outcome_unknown`.

mod access;
mod admission;
mod answer;
mod dispatch;
mod openapi;
mod peer;
mod request;
mod routes;
mod server;
mod spans;
#[cfg(test)]
pub mod tests;
mod url;

pub use crate::http::access::Guard;
pub use request::{Audit, AuditMessage, Context, Web, audit};
pub use server::{Runtimes, serve, serve_metrics};
pub use spans::{Exporter, Spans};
