//! Malformed requests: each is answered, or its connection is closed; nothing panics.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Method, Request, Uri};
use eldest_storage::files::Dice;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Answer;
use super::node::Node;

struct Rng(Dice);

impl Rng {
    fn below(&mut self, bound: usize) -> usize {
        self.0.place(bound)
    }

    fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }

    /// Returns the same bytes with some changed, left out or repeated.
    fn spoil(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut spoilt = bytes.to_vec();
        for _ in 0..self.below(4) {
            let at = self.below(spoilt.len() + 1);
            let byte = self.pick(&[
                b"%".as_slice(),
                b"/",
                b"\"",
                b"\\",
                b"{",
                b"\0",
                b"\xff",
                b"?",
                b"&",
                b"9",
                b"..",
            ]);
            match self.below(3) {
                0 => drop(spoilt.splice(at..at, byte.iter().copied())),
                1 if at < spoilt.len() => spoilt.truncate(at),
                _ => spoilt.extend_from_slice(byte),
            }
        }
        spoilt
    }
}

const METHODS: [&str; 9] = ["GET", "PUT", "POST", "DELETE", "HEAD", "OPTIONS", "PATCH", "CONNECT", "B%EW"];

const TARGETS: [&str; 26] = [
    "/",
    "*",
    "/v1/docs/a",
    "/v1/docs/a/b%20c?level=local",
    "/v1/docs",
    "/v1/docs?limit=3&after=a&prefix=b",
    "/v1/docs/",
    "/v1/commands",
    "/v1/users",
    "/v1/users/a",
    "/v1/elections/e",
    "/v1/status",
    "/livez",
    "/readyz",
    "/leader",
    "/heartbeat",
    "/hearbeat",
    "/writesync",
    "/declare_capability",
    "/recv_elect",
    "/catch_up",
    "/is_leader",
    "/service_up",
    "/elect",
    "http://x/v1/users",
    "/%2e%2e/v1",
];

const HEADERS: [(&str, &str); 12] = [
    ("if-match", "\"1\""),
    ("if-match", "W/\"1\", *"),
    ("if-none-match", "*"),
    ("if-none-match", "\"1\", W/\"2\""),
    ("idempotency-key", "k"),
    ("content-type", "application/json"),
    ("content-type", ";"),
    ("authorization", "Bearer x"),
    ("x-request-id", "r"),
    ("eldest-forwarded", "1"),
    ("accept", "*/*"),
    ("content-length", "3"),
];

const BODIES: [&str; 9] = [
    "",
    "{}",
    "1",
    "[]",
    "{\"node_idx\":1}",
    "{\"snapshot_id\":0}",
    "{\"storage_cmd\":\"CreateUser\",\"payload\":{\"name\":\"u\"}}",
    "[{\"storage_cmd\":\"PutDoc\",\"payload\":{\"key\":\"k\",\"value\":1}}]",
    "{\"ttl_ms\":1,\"reason\":\"x\"}",
];

fn made(rng: &mut Rng) -> Option<Request<Body>> {
    let target = rng.pick(&TARGETS.map(str::as_bytes));
    let target = rng.spoil(target);
    let mut request = Request::new(Body::empty());
    *request.method_mut() = Method::from_bytes(rng.pick(&METHODS).as_bytes()).ok()?;
    *request.uri_mut() = Uri::from_maybe_shared(target).ok()?;
    for _ in 0..rng.below(4) {
        let (name, value) = HEADERS[rng.below(HEADERS.len())];
        let value = HeaderValue::from_bytes(&rng.spoil(value.as_bytes())).ok()?;
        request.headers_mut().append(HeaderName::from_static(name), value);
    }
    let body = rng.pick(&BODIES.map(str::as_bytes));
    *request.body_mut() = Body::from(rng.spoil(body));
    Some(request)
}

#[tokio::test]
async fn whatever_is_asked_is_answered() {
    let node = Node::leader().await;
    let (mut rng, mut sent) = (Rng(Dice::new(1)), 0);
    while sent < 5_000 {
        let Some(request) = made(&mut rng) else {
            continue;
        };
        sent += 1;
        let shown = format!("{} {}", request.method(), request.uri());
        let answer = Answer::of(node.front.answer(None, request).await).await;
        let status = answer.status.as_u16();
        assert!((200..500).contains(&status), "{shown}: {answer:?}");
        assert_eq!(answer.header("eldest-node"), "1", "{shown}");
        if status >= 400 && !shown.starts_with("HEAD ") {
            answer.problem();
        }
    }
}

#[tokio::test]
async fn whatever_bytes_come_the_next_call_is_served() {
    let mut node = Node::leader().await;
    let _serving = node.serve();
    let address = node.url().replace("http://", "");
    let mut rng = Rng(Dice::new(2));
    for _ in 0..300 {
        let (target, body) = (rng.pick(&TARGETS), rng.pick(&BODIES));
        let length = body.len();
        let whole = format!("PUT {target} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n{body}");
        let bytes = rng.spoil(whole.as_bytes());
        let mut stream = TcpStream::connect(&address).await.expect("it listens");
        // The node may close before it has read everything.
        let _ = stream.write_all(&bytes).await;
        let _ = stream.shutdown().await;
        let mut end = Vec::new();
        let _ = stream.read_to_end(&mut end).await;
    }
    assert_eq!(node.call("GET /livez", &[], "").await.status, 200);
}
