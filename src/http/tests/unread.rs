//! Clients that request much and read no response.

use std::time::Duration;

use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::node::{Node, Options, TOKEN, limits};
use crate::config::HttpLimits;

/// The time limit on a busy machine; a test that takes longer has failed.
const LONG: Duration = Duration::from_secs(60);

const MEBIBYTE: usize = 1 << 20;

/// Returns the node, and the values that keep it serving.
async fn with(limits: HttpLimits) -> (Node, impl Sized) {
    let mut node = Node::with(Options { limits, ..Options::default() }).await;
    let document = format!("\"{}\"", "x".repeat(MEBIBYTE - 64));
    assert_eq!(node.call("PUT /v1/docs/large", &[], &document).await.status, 201);
    let serving = node.serve();
    (node, serving)
}

/// Opens an HTTP/2 connection whose reader gives no room for bodies, with this number of calls for the large document.
async fn takes_nothing(node: &Node, calls: u8) -> TcpStream {
    let mut stream = TcpStream::connect(node.url().replace("http://", "")).await.expect("it listens");
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(b"\0\0\x06\x04\0\0\0\0\0\0\x04\0\0\0\0");
    for call in 0..calls {
        bytes.extend(b"\0\0\x15\x01\x05\0\0\0");
        bytes.push(2 * call + 1);
        bytes.extend(b"\x82\x86\x44\x0e/v1/docs/large\x41\x01x");
    }
    stream.write_all(&bytes).await.expect("it is open");
    stream
}

async fn large(node: &Node) -> u16 {
    let mut stream = TcpStream::connect(node.url().replace("http://", "")).await.expect("it listens");
    let call = b"GET /v1/docs/large HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    stream.write_all(call).await.expect("it is open");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("an answer");
    let answer = String::from_utf8_lossy(&answer);
    assert!(!answer.starts_with("HTTP/1.1 429") || answer.contains("memory for bodies"), "{answer}");
    answer.get(9..12).and_then(|status| status.parse().ok()).unwrap_or_default()
}

async fn until_it_is(node: &Node, status: u16) {
    let asking = async { while large(node).await != status {} };
    timeout(LONG, asking).await.unwrap_or_else(|_| panic!("it is never {status}"));
}

#[tokio::test]
async fn answers_that_nobody_takes_fill_no_more_than_their_part() {
    let bound = HttpLimits { bodies_bytes: 4 * MEBIBYTE, bodies_bytes_each: 4 * MEBIBYTE, ..limits() };
    let (node, _serving) = with(bound).await;
    assert_eq!(large(&node).await, 200);
    let stream = takes_nothing(&node, 8).await;
    until_it_is(&node, 429).await;
    // A write is answered in any case: its caller must know the outcome.
    assert_eq!(node.call("PUT /v1/docs/a", &[], "1").await.status, 201);
    drop(stream);
    until_it_is(&node, 200).await;
}

#[tokio::test]
async fn an_answer_that_nobody_takes_ends_whatever_else_is_sent() {
    let impatient = HttpLimits { answer_timeout: Duration::from_millis(300), ..limits() };
    let (node, _serving) = with(impatient).await;
    let (mut reader, mut writer) = takes_nothing(&node, 1).await.into_split();
    let pings = async {
        while writer.write_all(b"\0\0\x08\x06\0\0\0\0\0pingping").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let mut seen = Vec::new();
    let ends = async {
        let mut piece = [0; 4096];
        while let Ok(count @ 1..) = reader.read(&mut piece).await {
            seen.extend_from_slice(&piece[..count]);
        }
    };
    let both = async {
        tokio::select! {
            () = pings => {}
            () = ends => {}
        }
    };
    timeout(LONG, both).await.expect("the connection ends");
}

/// The call is an order, and only one runs at a time, because it returns the whole state.
#[tokio::test]
async fn one_state_leaves_at_a_time_and_for_operators() {
    let node = Node::with(Options { token: Some(TOKEN), ..Options::default() }).await;
    let document = format!("\"{}\"", "x".repeat(MEBIBYTE - 64));
    assert_eq!(node.call("PUT /v1/docs/large", &[], &document).await.status, 201);
    let all = "{\"snapshot_id\": 0}";
    assert_eq!(node.call("POST /catch_up", &[], all).await.problem(), (401, "unauthorized".to_string()));
    let bearer = format!("Bearer {TOKEN}");
    let call = || super::request("POST /catch_up", &[("authorization", &bearer)], all);
    let unread = node.front.answer(None, call()).await;
    assert_eq!(unread.status(), 200);
    assert_eq!(node.send(call()).await.problem(), (429, "too_many_requests".to_string()));
    let mut unread = unread.into_body();
    let piece =
        unread.frame().await.expect("there is more").expect("it is whole").into_data().expect("it is data");
    assert_eq!(piece.len(), 64 << 10, "a long value is given in pieces too");
    drop(unread);
    let asking = async { while node.send(call()).await.status != 200 {} };
    timeout(LONG, asking).await.expect("the first one has gone");
}
