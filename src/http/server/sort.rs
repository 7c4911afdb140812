//! Serves peers' connections on a separate runtime, so that clients' calls never delay a heartbeat.
//!
//! Peers and clients use the same port. A connection belongs to a peer if its first request carries the envelope: this is checked before
//! anything else reads the request. A client gains nothing by imitating a peer: a peer's call needs a proof, and a client's call is
//! answered on the clients' runtime.
//!
//! A wrong guess costs delay and nothing else, because `front` decides again by the whole head. A peer's call
//! on the clients' runtime still reaches `peer`, and a client's call on the peers' runtime is moved by
//! `answer`.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::Response;
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::front::{Front, is_of_peer};
use super::tls::HANDSHAKE;
use crate::http::answer::{Problem, outcome_unknown};
use crate::http::request::Connection;
use crate::wire::header;

/// The part of the first request within which a peer's envelope begins.
/// An envelope that begins later, or in a later packet, is overlooked.
const LOOK: usize = 1024;

/// Returns whether a peer calls, once the first bytes have arrived. Returns None for a connection that is silent for the time of
/// a head. When the server stops, a silent connection is passed on like a client's, and ends there. A TLS connection is sorted by
/// its address.
pub async fn is_peers(
    stream: &TcpStream,
    by_address: bool,
    ends: impl Future,
    patience: Duration,
) -> Option<bool> {
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
        return Some(by_address);
    }
    Some(head.starts_with(b"POST /") && names(head, header::MESSAGE.as_bytes()))
}

/// Returns whether a header of that name is among the lines.
fn names(head: &[u8], name: &[u8]) -> bool {
    head.split(|byte| *byte == b'\n')
        .any(|line| line.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name)))
}

/// A client's call on a peer connection is answered on the clients' runtime.
pub async fn answer(
    clients: &Handle,
    front: Arc<Front>,
    connection: Arc<Connection>,
    request: Request,
) -> Response<Body> {
    if is_of_peer(&request) {
        return front.answer(Some(connection), request).await;
    }
    let context = front.context.clone();
    let mut answering =
        Answering(clients.spawn(async move { front.answer(Some(connection), request).await }));
    match (&mut answering.0).await {
        Ok(response) => response,
        // The clients' runtime has ended before this one: the call may have reached the loop.
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
}
