//! Chooses the thread that serves a connection. Peers have a separate runtime, so that clients' calls never delay a heartbeat. A few
//! connections of short calls are served by the loop's thread, so that a call and its answer change no thread. All others stay on the
//! clients' runtime.
//!
//! Peers and clients use the same port. A connection belongs to a peer if its first request carries the envelope: this is checked before
//! anything else reads the request. A client gains nothing by imitating a peer: a peer's call needs a proof, and a client's call is
//! answered on the clients' runtime.
//!
//! A wrong guess costs delay and nothing else, because each call is looked at again by its whole head. A peer's call
//! on the clients' runtime still reaches `peer`, and [`Visiting`] moves a call that is not for its thread to the
//! clients' runtime.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{Method, Response};
use hyper::body::Body as _;
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::front::{Front, is_of_peer};
use super::tls::HANDSHAKE;
use crate::http::answer::{Problem, outcome_unknown};
use crate::http::request::{Connection, Context, is_ndjson};
use crate::http::routes::Short;
use crate::wire::header;

/// A longer body takes the loop's thread too long to read.
pub const SHORT_BODY_MOST: u64 = 64 << 10;

/// The part of the first request within which a peer's envelope begins.
/// An envelope that begins later, or in a later packet, is overlooked.
const LOOK: usize = 1024;

/// The runtimes for the connections of some kinds. All others are served by the runtime that accepts them.
#[derive(Clone, Debug)]
pub struct Runtimes {
    /// For peers' connections, so that clients' calls never delay a heartbeat.
    pub peers: Handle,
    /// The loop's thread, for a few connections of short calls.
    pub short: Handle,
}

/// The kind of a connection, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    OfPeer,
    OfShortCalls,
    Other,
}

/// Returns the kind of a connection once the first bytes have arrived. Returns None for a connection that is silent for the time of
/// a head. When the server stops, a silent connection is passed on like a client's, and ends there. A TLS connection is sorted by
/// its address.
pub async fn kind(
    stream: &TcpStream,
    by_address: bool,
    ends: impl Future,
    patience: Duration,
) -> Option<Kind> {
    let mut head = [0; LOOK];
    let count = tokio::select! {
        count = stream.peek(&mut head) => count.unwrap_or(0),
        _ = ends => 0,
        () = sleep(patience) => return None,
    };
    let head = &head[..count];
    // The head is encrypted. Before the handshake, which the serving runtime takes, only the address is
    // known.
    if head.starts_with(&[HANDSHAKE]) {
        return Some(if by_address { Kind::OfPeer } else { Kind::Other });
    }
    Some(match head {
        _ if head.starts_with(b"POST /") && names(head, header::MESSAGE.as_bytes()) => Kind::OfPeer,
        _ if begins_short(head) => Kind::OfShortCalls,
        _ => Kind::Other,
    })
}

/// Returns whether the first line is that of a short call.
fn begins_short(head: &[u8]) -> bool {
    let mut words = head.split(|byte| *byte == b' ');
    let (Some(method), Some(target)) = (words.next(), words.next()) else { return false };
    let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
    match (Method::from_bytes(method), std::str::from_utf8(path)) {
        (Ok(method), Ok(path)) => Short::of(&method, path).is_some(),
        _ => false,
    }
}

/// Returns whether a header of that name is among the lines.
fn names(head: &[u8], name: &[u8]) -> bool {
    head.split(|byte| *byte == b'\n')
        .any(|line| line.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name)))
}

/// The thread that serves a connection, if it is not one of those for clients: most calls of clients are answered there.
#[derive(Clone, Debug)]
pub struct Visiting {
    pub kind: Kind,
    pub clients: Handle,
}

impl Visiting {
    /// Answers a call here if it is of the kind of this thread, and on the clients' runtime otherwise.
    pub async fn answer(
        self,
        front: Arc<Front>,
        connection: Arc<Connection>,
        request: Request,
    ) -> Response<Body> {
        if self.is_for_here(&front.context, &request) {
            return front.answer(Some(connection), request).await;
        }
        let context = front.context.clone();
        let mut answering =
            Answering(self.clients.spawn(async move { front.answer(Some(connection), request).await }));
        match (&mut answering.0).await {
            Ok(response) => response,
            // The clients' runtime has ended before this one: the call may have reached the loop.
            Err(_) => context.explain(&outcome_unknown("the node stops"), "", Problem::render),
        }
    }

    /// A call that is forwarded is not short.
    fn is_for_here(&self, context: &Context, request: &Request) -> bool {
        match self.kind {
            Kind::OfPeer => is_of_peer(request),
            Kind::OfShortCalls => {
                Short::of(request.method(), request.uri().path()).is_some()
                    && request.body().size_hint().upper().is_some_and(|bytes| bytes <= SHORT_BODY_MOST)
                    && !is_ndjson(request.headers())
                    && context.other_leader().is_none()
            }
            Kind::Other => false,
        }
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
}
