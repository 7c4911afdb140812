//! The HTTP server: clients, operators and other nodes call it. It decides nothing.
//!
//! ```text
//!   server     listener ─► one task a connection (hyper, h1 and h2c) ─► front: request id, size of the head, admission
//!                                    ┌────────────────────────────────────┤
//!                           without Eldest-Message               with Eldest-Message
//!                                    ▼                                    ▼
//!   openapi    the API described for tools
//!   routes     documents, commands, roles, processes, feed …    peer      cluster, sender, proof ─► driver::Handle
//!                                    ▼
//!   dispatch   here, at the leader in one hop, or a moment later ─► driver::Handle
//!                                    ▼
//!   spans      which trace a call belongs to, and what a collector is told of it
//!   request    what a client has sent: URL, headers, body, deadline; the context that all handlers share
//!   answer     responses, streams, problems
//! ```
//!
//! Each folder uses only those drawn below it; `peer` uses `request` and `answer`. `answer::errors` is the only place
//! that chooses error codes, and `answer::problem` the only one that writes them.
//!
//! A refusal (421, 429, 503) is given only while it is certain that nothing of the call has reached a log (P15, C7).
//! From the moment a write is with the node, or on its way to another, the answer is its verdict or `outcome_unknown`.

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

pub use request::{Audit, AuditMessage, Context, Guard, Web, audit};
pub use server::{serve, serve_metrics};
pub use spans::{Exporter, Spans};
