//! The responses to connections that are not served.
//!
//! They are constant bytes, written without hyper and without the router: they must work when everything else
//! is used up.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::driver::Tls;
use crate::http::admission::{Places, Sharers, Shares};

/// The maximum number of connections that are being refused because there are too many. Beyond it they are closed without a response.
/// One address has three quarters of them, so a flood of one address leaves some answers to others.
const MOST: usize = 64;

/// The time that a refused client has to read the reason.
/// A reader that needs longer than this would keep the place from the next one.
const PATIENCE: Duration = Duration::from_millis(500);

/// The response of a full server. It is a constant problem document: it must not need the resources that have run out.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    content-type: application/problem+json\r\n\
    retry-after: 1\r\n\
    connection: close\r\n\
    content-length: 219\r\n\r\n\
    {\"type\":\"urn:eldest:problem:too_many_requests\",\"title\":\"Too many requests\",\"status\":503,\
    \"detail\":\"too many connections; close some, or call another node\",\"code\":\"too_many_requests\",\
    \"retryable\":true,\"request_id\":\"none\"}\n";

/// The response to a call without TLS if that is not allowed.
pub const PLAIN: &[u8] = b"HTTP/1.1 400 Bad Request\r\n\
    content-type: application/problem+json\r\n\
    connection: close\r\n\
    content-length: 200\r\n\r\n\
    {\"type\":\"urn:eldest:problem:tls_required\",\"title\":\"This port speaks TLS\",\"status\":400,\
    \"detail\":\"this port speaks TLS: call it by https://\",\"code\":\"tls_required\",\
    \"retryable\":false,\"request_id\":\"none\"}\n";

/// A fatal TLS alert, "internal error": the only message that needs no handshake.
const ALERT: &[u8] = &[0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x50];

/// Returns the response to a connection for which there is no room.
/// Before a handshake a TLS client understands an alert and nothing else. If the port also takes plain calls,
/// most callers are answered by the document; a TLS client sees an error of the handshake.
pub fn full(tls: Option<&Tls>) -> &'static [u8] {
    if tls.is_some_and(|tls| !tls.takes_plain) { ALERT } else { FULL }
}

/// Tells refused connections that there is no room for them.
#[derive(Debug)]
pub struct Refusals(Arc<Places>);

impl Refusals {
    pub fn new() -> Refusals {
        Refusals(Places::new("connections that are refused", MOST, Shares::default()))
    }

    pub fn tell(&self, stream: TcpStream, sharers: Sharers, says: &'static [u8]) {
        if let Ok(place) = self.0.take(sharers) {
            tokio::spawn(async move {
                let _ = timeout(PATIENCE, write(stream, says)).await;
                drop(place);
            });
        }
    }
}

/// Writes the response, then reads and drops what the client sends: closing with unread bytes would reset the connection and lose the
/// response.
pub async fn write(mut stream: TcpStream, says: &[u8]) -> io::Result<()> {
    stream.write_all(says).await?;
    stream.shutdown().await?;
    let mut sink = [0; 1024];
    while stream.read(&mut sink).await? > 0 {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_as_long_as_it_says() {
        for (refusal, status) in [(FULL, 503), (PLAIN, 400)] {
            let text = std::str::from_utf8(refusal).expect("it is text");
            let (head, body) = text.split_once("\r\n\r\n").expect("it has a body");
            assert!(head.contains(&format!("content-length: {}", body.len())), "it has {} bytes", body.len());
            let body: serde_json::Value = serde_json::from_str(body).expect("it is JSON");
            assert_eq!(body["status"], status);
        }
    }
}
