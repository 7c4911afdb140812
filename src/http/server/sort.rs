//! Decides on which threads a connection is served, so that no thread that serves clients has to read a heartbeat.
//!
//! Peers and clients use the same port. A connection belongs to a peer if its first request carries the envelope: this is checked before
//! anything else reads the request.
//!
//! ```text
//!   no envelope ──────────────────────────────────────────────► Lane::Clients
//!   an envelope ─┬─ a short message, from a member's address ─► Lane::Loop     the loop's thread
//!                └─ any other ────────────────────────────────► Lane::Peers    a separate runtime
//!   TLS ─────────┬─ from a member's address ──────────────────► Lane::Peers
//!                └─ any other ────────────────────────────────► Lane::Clients
//! ```
//!
//! A message that the loop's thread reads itself needs no change of threads to reach the loop, which saves a lone client a tenth of its
//! time. But the loop does nothing else meanwhile. So its lane is only for short messages: longer ones, and those of routes for states,
//! are answered on the peers' runtime, clients' calls are refused, and after anything that was not accepted the connection is closed.
//!
//! A wrong guess costs delay, or on the loop's lane a refusal, because `front` decides again by the whole head. A peer's call in the
//! clients' lane still reaches `peer`, and a client's call in the peers' lane is moved by `answer`. A client that imitates a peer gains
//! nothing: a peer's call needs a proof, if there is a secret.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::Response;
use axum::http::header::{CONNECTION, HeaderValue};
use hyper::body::Body as _;
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::front::{Front, peer_route};
use super::tls::HANDSHAKE;
use crate::http::answer::{Code, Problem, outcome_unknown};
use crate::http::request::{Connection, Context};
use crate::wire::{Route, header};

/// The part of the first request within which a peer's envelope begins.
/// An envelope that begins later, or in a later packet, is overlooked.
const LOOK: usize = 1024;

/// The longest message that the loop's thread checks: some 190 records of 256 bytes.
const SHORT_BYTES_MOST: u64 = 64 << 10;

/// The threads that answer the calls of a connection.
#[derive(Debug)]
pub enum Lane {
    /// Those of the clients' runtime.
    Clients,
    /// Those of the peers' runtime.
    Peers { clients: Handle },
    /// The loop's.
    Loop { peers: Handle },
}

/// The caller, by the first bytes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First {
    Client,
    /// A peer's call. `short`: by its route it carries neither a state nor lines that were pulled.
    Peer {
        short: bool,
    },
    /// The first request is encrypted.
    Tls,
}

/// Returns who calls, once the first bytes have arrived. Returns None for a connection that is silent for the time of a head. When the
/// server stops, a silent connection is passed on like a client's, and ends there.
pub async fn first(stream: &TcpStream, ends: impl Future, patience: Duration) -> Option<First> {
    let mut head = [0; LOOK];
    let count = tokio::select! {
        count = stream.peek(&mut head) => count.unwrap_or(0),
        _ = ends => 0,
        () = sleep(patience) => return None,
    };
    Some(First::of(&head[..count]))
}

impl First {
    fn of(head: &[u8]) -> First {
        if head.starts_with(&[HANDSHAKE]) {
            return First::Tls;
        }
        match head.strip_prefix(b"POST ") {
            Some(target) if target.starts_with(b"/") && names(head, header::MESSAGE.as_bytes()) => {
                let calls = |route: &Route| {
                    target.strip_prefix(route.path().as_bytes()).is_some_and(|rest| rest.starts_with(b" "))
                };
                First::Peer { short: Route::ALL.iter().filter(|route| is_short_route(**route)).any(calls) }
            }
            _ => First::Client,
        }
    }
}

/// Returns whether calls of this route, and their answers, carry neither a state nor the lines that a candidate pulls.
fn is_short_route(route: Route) -> bool {
    !matches!(route, Route::CatchUp | Route::MergeConflict | Route::OverrideAllData)
}

/// Returns whether a header of that name is among the lines.
fn names(head: &[u8], name: &[u8]) -> bool {
    head.split(|byte| *byte == b'\n')
        .any(|line| line.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name)))
}

/// Answers a call, on another runtime if it does not belong on the connection's own.
pub async fn answer(
    lane: &Lane,
    front: Arc<Front>,
    connection: Arc<Connection>,
    request: Request,
) -> Response<Body> {
    let route = peer_route(request.headers(), request.uri().path());
    let (other, on_loop) = match lane {
        Lane::Clients => return front.answer(Some(connection), request).await,
        Lane::Peers { clients } => (clients, false),
        Lane::Loop { peers } => (peers, true),
    };
    let here = match route {
        Some(route) => !on_loop || is_short_route(route) && is_short(&request),
        None => false,
    };
    let context = front.context.clone();
    let answering = async move {
        match route {
            None if on_loop => front.refuse(connection, request, not_for_clients()).await,
            _ => front.answer(Some(connection), request).await,
        }
    };
    let mut answer = match here {
        true => answering.await,
        false => answer_on(other, &context, answering).await,
    };
    if on_loop && (route.is_none() || !answer.status().is_success()) {
        // The first request was one of HTTP/1, so the whole connection has that version.
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    answer
}

/// A device between the nodes may put calls of nodes and of clients on one connection. Streams of clients would keep the loop's
/// thread busy, so the client has to call again on another connection.
fn not_for_clients() -> Problem {
    let bound = "connections for messages of nodes";
    let detail = format!("limit reached: {bound}; this connection is one of them, so call again on another");
    Problem::new(Code::TooManyRequests, detail).with("bound", bound)
}

/// Returns whether the body is short, which its head says.
fn is_short(request: &Request) -> bool {
    request.body().size_hint().upper().is_some_and(|most| most <= SHORT_BYTES_MOST)
}

async fn answer_on(
    runtime: &Handle,
    context: &Context,
    answer: impl Future<Output = Response<Body>> + Send + 'static,
) -> Response<Body> {
    let mut answering = Answering(runtime.spawn(answer));
    match (&mut answering.0).await {
        Ok(response) => response,
        // That runtime has ended before this one: the call may have reached the loop.
        Err(_) => context.explain(&outcome_unknown("the node stops"), "", Problem::render),
    }
}

/// A call whose caller has disconnected is aborted.
/// Dropping only the handle would let the task go on without a caller. A call that is answered without a task
/// ends where it waits when it is dropped, and calls that wait for a role depend on that (P41).
struct Answering(JoinHandle<Response<Body>>);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_is_told_by_its_header() {
        let named = |head: &str| names(head.as_bytes(), header::MESSAGE.as_bytes());
        assert!(named("POST /heartbeat HTTP/1.1\r\nhost: a\r\nEldest-Message: beat"));
        assert!(!named("POST /heartbeat HTTP/1.1\r\nhost: eldest-message: a\r\n"));
        assert!(!named("GET /eldest-message:"));
        assert!(!named(""));
    }

    #[test]
    fn first_bytes_show_who_calls() {
        let first = |line: &str| First::of(format!("{line}\r\nEldest-Message: beat\r\n").as_bytes());
        assert_eq!(first("POST /writesync HTTP/1.1"), First::Peer { short: true });
        for long in ["/catch_up", "/override_all_data", "/merge_conflict", "/heartbeats", "/v1/commands"] {
            assert_eq!(first(&format!("POST {long} HTTP/1.1")), First::Peer { short: false }, "{long}");
        }
        assert_eq!(first("GET /heartbeat HTTP/1.1"), First::Client);
        assert_eq!(First::of(&[HANDSHAKE, 3, 1]), First::Tls);
    }
}
