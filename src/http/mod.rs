//! HTTP: what clients, operators and other nodes call. Decides nothing.
//!
//! ```text
//!   listener ─► server ── one task a connection ─► connection (hyper, h1 and h2c; its clock)
//!                                                      │ request
//!            peer's call ◄── Eldest-Message? ──── front: id, size of the head, room, envelope headers, problems
//!                 │                                    │
//!               peer                        router (axum) ─► asked: body, query, deadline
//!                 │                                    │
//!                 ▼                            turn: here, at the leader, or wait
//!              Handle ◄── here ── docs, commands, lists, probes, operator, admin
//!                                                      └──── forward ─► the leader's own front
//! ```
//!
//! Whoever holds a call decides by [`turn`] alone where it is answered: here; at the leader, in one hop; or, while
//! leadership changes hands, a moment later. Errors become codes in `errors`, and bytes in `problem`, and nowhere else.
//!
//! A refusal (421, 429, 503) is only ever given while it is certain that nothing of the call has reached a log
//! (P15, C7); from the moment a write is with the node, or on its way to another, only its verdict or
//! `outcome_unknown` is left.

mod admin;
mod admission;
mod answers;
mod asked;
mod body;
mod channels;
mod commands;
mod conflicts;
mod connection;
mod context;
mod docs;
mod errors;
mod etag;
mod feed;
mod forward;
mod front;
mod headers;
mod hold;
mod idempotency;
mod leased;
mod life;
mod lists;
mod operator;
mod path;
mod peer;
mod probes;
mod problem;
mod processes;
mod query;
mod receive;
mod restore;
mod roles;
mod router;
mod server;
mod steer;
mod stream;
#[cfg(test)]
mod tests;
mod turn;
mod writes;

pub use context::Context;
pub use problem::{Code, Problem};
pub use server::serve;
