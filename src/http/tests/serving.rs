//! The listener, over TCP: time-outs, bounds, protocols, shutdown.

use std::io::{Read, Write};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Handle;

use super::node::{Node, Options, limits};
use super::peers::{TERM, envelope, vector};
use crate::config::HttpLimits;
use crate::http::Runtimes;
use crate::http::request::FAREWELL;
use crate::protocol::{Message, Mode};
use crate::wire::{Packet, header};

/// The time after which a test fails.
const PATIENCE: Duration = Duration::from_secs(30);

const SHORT: Duration = Duration::from_millis(400);

/// An address outside every network: no call comes from there.
const NOWHERE: &str = "192.0.2.1";

async fn with(limits: HttpLimits) -> Node {
    Node::with(Options { limits, elsewhere: Some(NOWHERE), ..Options::default() }).await
}

async fn dial(node: &Node) -> TcpStream {
    let address = node.url().replace("http://", "");
    TcpStream::connect(address).await.expect("it listens")
}

/// Reads everything until the node closes.
async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    // A reset is an end as well.
    let _ = stream.read_to_end(&mut bytes).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads one response: its head and a body of the stated length.
async fn answer(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let mut piece = [0; 1024];
        let read = stream.read(&mut piece).await.expect("an answer comes");
        bytes.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&bytes).to_lowercase();
        let length =
            text.split_once("content-length: ").and_then(|(_, rest)| rest.split("\r\n").next()?.parse().ok());
        let whole = text.split_once("\r\n\r\n").is_some_and(|(_, body)| body.len() >= length.unwrap_or(0));
        if whole || read == 0 {
            return String::from_utf8_lossy(&bytes).into_owned();
        }
    }
}

#[tokio::test]
async fn one_connection_serves_many_calls() {
    let mut node = Node::leader().await;
    let _serving = node.serve();
    let mut stream = dial(&node).await;
    for number in 1..=3 {
        let call = format!("PUT /v1/docs/a HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n\r\n{number}");
        stream.write_all(call.as_bytes()).await.expect("it is open");
        let answer = answer(&mut stream).await;
        assert!(answer.contains(&format!("\"rev\":\"{number}\"")), "{answer}");
    }
    stream.write_all(b"GET /v1/docs/a HTTP/1.1\r\nhost: x\r\n\r\n").await.expect("it is open");
    let document = answer(&mut stream).await;
    assert!(document.contains("\r\ncontent-length: 1\r\n") && document.ends_with("\r\n\r\n3"), "{document}");
    stream
        .write_all(b"HEAD /v1/docs/a HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        .await
        .expect("it is open");
    let head = rest(&mut stream).await;
    assert!(head.contains("etag: \"3\"") && head.ends_with("\r\n\r\n"), "{head}");
}

#[tokio::test]
async fn silence_ends_a_connection() {
    let mut node = with(HttpLimits { header_timeout: SHORT, ..limits() }).await;
    let _serving = node.serve();
    for beginning in ["", "GET", "GET /livez HTTP/1.1\r\nhost:", "PRI * HTTP/2.0\r\n\r\nSM"] {
        let mut stream = dial(&node).await;
        stream.write_all(beginning.as_bytes()).await.expect("it is open");
        let end = rest(&mut stream).await;
        assert!(!end.contains("200 OK"), "{beginning}: {end}");
    }
}

#[tokio::test]
async fn idle_connections_end_and_slow_second_heads_too() {
    let mut node = with(HttpLimits { idle_timeout: SHORT, ..limits() }).await;
    let _serving = node.serve();
    let mut stream = dial(&node).await;
    stream.write_all(b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n").await.expect("it is open");
    assert!(rest(&mut stream).await.ends_with("ok\n"));

    let mut node = with(HttpLimits { header_timeout: SHORT, ..limits() }).await;
    let _serving = node.serve();
    let mut stream = dial(&node).await;
    stream.write_all(b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n").await.expect("it is open");
    assert!(answer(&mut stream).await.ends_with("ok\n"));
    stream.write_all(b"GET /livez HT").await.expect("it is open");
    assert!(!rest(&mut stream).await.contains("200 OK"));
}

#[tokio::test]
async fn a_slow_body_is_told_so() {
    let mut node = with(HttpLimits { body_timeout: SHORT, ..limits() }).await;
    let _serving = node.serve();
    let mut stream = dial(&node).await;
    stream
        .write_all(b"PUT /v1/docs/a HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n\"abc")
        .await
        .expect("it is open");
    let answer = answer(&mut stream).await;
    assert!(
        answer.starts_with("HTTP/1.1 408 ") && answer.contains("\"code\":\"request_timeout\""),
        "{answer}"
    );
    assert!(node.seen().is_empty());
}

#[tokio::test]
async fn heads_beyond_all_bounds_are_refused_bare() {
    let mut node = Node::leader().await;
    let _serving = node.serve();
    let mut stream = dial(&node).await;
    let head = format!("GET /livez HTTP/1.1\r\nx: {}\r\n\r\n", "x".repeat(1 << 20));
    let _ = stream.write_all(head.as_bytes()).await;
    let end = rest(&mut stream).await;
    assert!(end.is_empty() || end.starts_with("HTTP/1.1 431 "), "{end}");
    let mut stream = dial(&node).await;
    stream.write_all(b"NONSENSE\r\n\r\n").await.expect("it is open");
    assert!(rest(&mut stream).await.starts_with("HTTP/1.1 400 "));
}

#[tokio::test]
async fn too_many_connections_are_told_so_and_closed() {
    let mut node = with(HttpLimits { connections: 1, ..limits() }).await;
    let _serving = node.serve();
    let mut first = dial(&node).await;
    first.write_all(b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n").await.expect("it is open");
    assert!(answer(&mut first).await.ends_with("ok\n"));
    // A further connection is for a single call, such as a probe.
    for (path, wanted) in [("/livez", "HTTP/1.1 200 "), ("/v1/status", "HTTP/1.1 429 ")] {
        let mut second = dial(&node).await;
        let call = format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
        second.write_all(call.as_bytes()).await.expect("it is open");
        let said = rest(&mut second).await;
        assert!(said.starts_with(wanted) && said.contains("connection: close"), "{said}");
    }
    let silent: Vec<_> = futures_util::future::join_all((0..16).map(|_| dial(&node))).await;
    let refused = answer(&mut dial(&node).await).await;
    assert!(
        refused.starts_with("HTTP/1.1 503 ") && refused.contains("application/problem+json"),
        "{refused}"
    );
    drop(silent);
    first
        .write_all(b"GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        .await
        .expect("it is open");
    assert!(rest(&mut first).await.ends_with("ok\n"));
    loop {
        let mut third = dial(&node).await;
        third.write_all(b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n").await.expect("it is open");
        if answer(&mut third).await.ends_with("ok\n") {
            return;
        }
    }
}

/// Each answer is small, and so many are asked for that the buffers between the node and the client are full.
#[tokio::test]
async fn a_client_that_reads_none_of_its_small_answers_is_cut_off() {
    let mut node = with(HttpLimits { answer_timeout: SHORT, ..limits() }).await;
    let _serving = node.serve();
    let mut stream = dial(&node).await;
    let calls = b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n".repeat(1000);
    let written = tokio::time::timeout(PATIENCE, async { while stream.write_all(&calls).await.is_ok() {} });
    written.await.expect("the node closes the connection");
}

#[tokio::test]
async fn peers_have_connections_in_reserve() {
    let options = Options { limits: HttpLimits { connections: 1, ..limits() }, ..Options::default() };
    let mut node = Node::with(options).await;
    let _serving = node.serve();
    let mut open = Vec::new();
    for _ in 0..8 {
        let mut stream = dial(&node).await;
        stream.write_all(b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n").await.expect("it is open");
        assert!(answer(&mut stream).await.ends_with("ok\n"));
        open.push(stream);
    }
}

/// This runtime has one thread, and the test occupies it while the peer calls: no client can be served meanwhile.
#[tokio::test]
async fn clients_delay_no_peer() {
    let peers = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let peers = peers.expect("there is room for a thread");
    let mut node = with(limits()).await;
    let _serving = node.serve_on(Runtimes { peers: peers.handle().clone(), of_loop: peers.handle().clone() });
    let mut stream = dial(&node).await;
    let call = b"POST /heartbeat HTTP/1.1\r\nhost: x\r\neldest-message: hello\r\ncontent-length: 0\r\n\r\n";
    stream.write_all(call).await.expect("it is open");
    let first = answer(&mut stream).await;
    assert!(first.starts_with("HTTP/1.1 400 "), "{first}");
    let mut blocking = stream.into_std().expect("it is at rest");
    blocking.set_nonblocking(false).expect("it is open");
    blocking.set_read_timeout(Some(PATIENCE)).expect("it is no zero");
    blocking.write_all(call).expect("it is open");
    let mut second = [0; 13];
    blocking.read_exact(&mut second).expect("it is answered, though no client would be");
    assert_eq!(&second, b"HTTP/1.1 400 ");
    blocking.set_nonblocking(true).expect("it is open");
    // A client's call on this connection is answered as a client's.
    let mut stream = TcpStream::from_std(blocking).expect("a runtime is there");
    let _ = answer(&mut stream).await;
    stream.write_all(b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n").await.expect("it is open");
    assert!(answer(&mut stream).await.ends_with("ok\n"));
    peers.shutdown_background();
}

/// Returns a message of node 2 to node 1.
fn message_of_peer(node: &Node, body: &str) -> String {
    let poll = Message::Poll { term: TERM, vector: vector() };
    let packet = Packet::new(&envelope(2, 1, poll), Bytes::new(), 0);
    let lines = [
        format!("POST {} HTTP/1.1", packet.route.path()),
        "host: x".to_string(),
        format!("{}: {}", header::MESSAGE, packet.message),
        format!("{}: {}", header::CLUSTER, node.context.setup.cluster.encode()),
        format!("{}: {}", header::FROM, packet.sender.encode()),
        format!("content-length: {}", body.len()),
    ];
    format!("{}\r\n\r\n{body}", lines.join("\r\n"))
}

/// The same message with a body of unknown length.
fn chunked(message: &str) -> String {
    message.replace("content-length: 0\r\n\r\n", "transfer-encoding: chunked\r\n\r\n0\r\n\r\n")
}

async fn available(elsewhere: Option<&'static str>) -> Node {
    Node::with(Options { mode: Mode::Available, elsewhere, ..Options::default() }).await
}

/// The peers' runtime has ended, so what comes there has no answer.
fn without_peers() -> Runtimes {
    let ended = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build();
    let ended = ended.expect("there is room for a thread");
    let peers = ended.handle().clone();
    ended.shutdown_background();
    Runtimes { peers, of_loop: Handle::current() }
}

async fn ask(stream: &mut TcpStream, call: &str) -> String {
    stream.write_all(call.as_bytes()).await.expect("it is open");
    let answered = tokio::time::timeout(PATIENCE, answer(stream)).await;
    answered.expect("it is answered or closed").to_lowercase()
}

const CLOSES: &str = "connection: close\r\n";

#[tokio::test]
async fn the_loops_thread_takes_short_messages_of_peers_and_nothing_else() {
    let mut node = available(None).await;
    let _serving = node.serve_on(without_peers());
    let message = message_of_peer(&node, "");
    for (call, expected) in [
        (message_of_peer(&node, &"x".repeat(70_000)), "outcome_unknown"),
        (chunked(&message), "outcome_unknown"),
        (message.replace("/is_leader", "/catch_up"), "outcome_unknown"),
        (message.replace("eldest-from: 2", "eldest-from: two"), "bad_field"),
    ] {
        let mut stream = dial(&node).await;
        for _ in 0..2 {
            let answer = ask(&mut stream, &message).await;
            assert!(answer.starts_with("http/1.1 200 ") && !answer.contains(CLOSES), "{answer}");
        }
        let answer = ask(&mut stream, &call).await;
        assert!(answer.contains(expected) && answer.contains(CLOSES), "{call}: {answer}");
        assert_eq!(rest(&mut stream).await, "");
    }
}

#[tokio::test]
async fn the_loops_thread_refuses_clients() {
    let mut node = available(None).await;
    let _serving = node.serve();
    let mut stream = dial(&node).await;
    let answer = ask(&mut stream, &message_of_peer(&node, "")).await;
    assert!(answer.starts_with("http/1.1 200 "), "{answer}");
    let refused = ask(&mut stream, "GET /livez HTTP/1.1\r\nhost: x\r\nx-request-id: mine\r\n\r\n").await;
    for part in ["http/1.1 429 ", "too_many_requests", "x-request-id: mine", CLOSES] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    assert_eq!(rest(&mut stream).await, "");
}

#[tokio::test]
async fn only_a_members_own_address_leads_to_the_loops_thread() {
    let mut node = available(Some(NOWHERE)).await;
    let _serving = node.serve_on(without_peers());
    // A proof from there is not enough: many may share the address of a device.
    let place = node.context.callers.place([127, 0, 0, 1].into(), false, 0).expect("there is room");
    place.caller.has_proved_a_peer();
    let mut stream = dial(&node).await;
    stream.write_all(message_of_peer(&node, "").as_bytes()).await.expect("it is open");
    assert_eq!(rest(&mut stream).await, "", "the runtime that it goes to has ended");
}

#[tokio::test]
async fn what_is_under_way_at_the_end_is_answered() {
    let mut node = Node::leader().await;
    let (stop, served) = node.serve();
    let mut idle = dial(&node).await;
    idle.write_all(b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n").await.expect("it is open");
    assert!(answer(&mut idle).await.ends_with("ok\n"));
    let mut busy = dial(&node).await;
    let head = b"PUT /v1/docs/a HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 1\r\n\r\n";
    busy.write_all(head).await.expect("it is open");
    let mut goon = [0; 25];
    busy.read_exact(&mut goon).await.expect("the body is asked for");
    assert_eq!(&goon, b"HTTP/1.1 100 Continue\r\n\r\n");
    stop.send(()).expect("it serves");
    assert_eq!(rest(&mut idle).await, "");
    busy.write_all(b"1").await.expect("it is open");
    let end = rest(&mut busy).await;
    assert!(end.starts_with("HTTP/1.1 201 ") && end.contains("connection: close"), "{end}");
    served.await.expect("it does not panic").expect("it ends well");
    assert!(TcpStream::connect(node.url().replace("http://", "")).await.is_err());
}

#[tokio::test]
async fn http2_is_spoken_on_the_same_port() {
    let mut node = Node::leader().await;
    let _serving = node.serve();
    let mut stream = dial(&node).await;
    // The preface, no settings, and `GET /livez` of `x` in one frame of headers, by the tables of the protocol.
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.expect("it is open");
    stream.write_all(b"\0\0\x0d\x01\x05\0\0\0\x01\x82\x86\x44\x06/livez\x41\x01x").await.expect("it is open");
    let mut seen = Vec::new();
    while !seen.ends_with(b"ok\n") {
        let mut piece = [0; 1024];
        let read = stream.read(&mut piece).await.expect("an answer comes");
        assert!(read > 0, "{seen:?}");
        seen.extend_from_slice(&piece[..read]);
    }
}

/// A stream gives its role back after its connection has ended: the server stops only after that, unless it takes too long.
#[tokio::test(start_paused = true)]
async fn what_is_given_back_at_the_end_is_waited_for() {
    let mut node = Node::leader().await;
    let (stop, serving) = node.serve();
    let farewell = node.context.farewells.subscribe();
    let saying = tokio::spawn(async move {
        tokio::time::sleep(FAREWELL / 2).await;
        drop(farewell);
    });
    drop(stop);
    serving.await.expect("nobody panics").expect("it ends well");
    assert!(saying.is_finished(), "the server has ended first");

    let mut node = Node::leader().await;
    let (stop, serving) = node.serve();
    let _kept = node.context.farewells.subscribe();
    drop(stop);
    serving.await.expect("nobody panics").expect("it ends well");
}
