//! Responses of all kinds: plain responses, problems, streams, and the forms in which leases are shown.
//!
//! - `response` has the bodies of plain responses, and the headers about the node and its state.
//! - `problem` has the error codes, and writes problems; `errors` turns what the node and the store refuse into problems.
//! - `stream` writes events one after the other, and `lease` shows roles and processes.
//!
//! A handler returns a problem as an error and never as bytes. What the problem has to say about the node
//! (the leader, the request's id) is added in `server::front`, so the same refusal reads the same on every
//! route.

mod errors;
pub mod lease;
mod problem;
mod response;
pub mod stream;

use axum::body::Body;
use axum::http::Response;

pub use errors::{CallFailure, outcome_unknown, unauthorized, unknown_route};
pub use problem::{Code, Problem, Surroundings};
pub use response::{
    ACKS, AGE, EPOCH, EXPIRES_IN, INDEX, JSON, LEADER, NODE, NOT_TAKEN, REPLAYED, REQUEST_ID, TEXT, TTL,
    WITH, data, empty, json, push_command, result, set_etag, set_leader, set_position, set_view, shared,
    stored, typed, value_of,
};

/// The result of a route.
pub type Answer = Result<Response<Body>, Problem>;
