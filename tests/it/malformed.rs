//! The requests of the garbage tests: each has something wrong, or is noise.

use crate::harness::Rng;

/// The routes of this version, and some that do not exist. Routes that end leadership or the service with an
/// empty body are left out.
const ROUTES: [&str; 40] = [
    "/heartbeat",
    "/hearbeat",
    "/writesync",
    "/declare_capability",
    "/recv_elect",
    "/catch_up",
    "/is_leader",
    "/merge_conflict",
    "/override_all_data",
    "/service_up",
    "/elect",
    "/v1/commands",
    "/v1/users",
    "/v1/users/a",
    "/v1/elections",
    "/v1/elections/a",
    "/v1/docs",
    "/v1/docs/a",
    "/v1/docs/a/b",
    "/v1/status",
    "/v1/conflicts",
    "/v1/roles",
    "/v1/roles/a",
    "/v1/roles/a/acquire",
    "/v1/roles/a/renew",
    "/v1/roles/a/hold",
    "/v1/processes/a",
    "/v1/processes/a/heartbeat",
    "/livez",
    "/readyz",
    "/leader",
    "/metrics",
    "/openapi.json",
    "/",
    "/v1",
    "/v1/docs/",
    "/v1/users/",
    "/v2/docs",
    "/v1/../v1/status",
    "/%2e%2e/etc/passwd",
];

const METHODS: [&str; 9] = ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "BREW"];

/// JSON, nearly JSON, and none of it what a route expects.
const BODIES: [&str; 26] = [
    "",
    "{",
    "}",
    "[",
    "nul",
    "nan",
    "1e999999",
    "-",
    "\"",
    "\"\\ud800\"",
    "{\"a\":}",
    "[1,]",
    "{\"a\":1,\"a\":2}",
    "{\"storage_cmd\":\"CreateUser\"}",
    "{\"storage_cmd\":\"CreateUser\",\"payload\":\"{\"}",
    "{\"storage_cmd\":\"CreateUser\",\"payload\":{\"name\":{\"name\":[]}}}",
    "{\"storage_cmd\":\"VoteElection\",\"payload\":{\"election_name\":1,\"voter_name\":[],\"choice\":{}}}",
    "{\"storage_cmd\":\"CreateElection\",\"payload\":{\"name\":\"e\",\"choices\":{\"a\":1}}}",
    "{\"storage_cmd\":\"PutDoc\",\"payload\":{\"key\":5,\"value\":1,\"if_rev\":[]}}",
    "{\"storage_cmd\":[[[]]],\"payload\":1}",
    "[[],[[]],[[[]]]]",
    "{\"node_idx\":-99999999999999999999}",
    "{\"snapshot_id\":1.5}",
    "{\"approved\":\"perhaps\"}",
    "{\"ttl_ms\":-1,\"reason\":7}",
    "\u{feff}{}",
];

const QUERIES: [&str; 14] = [
    "",
    "?",
    "?level=",
    "?level=linear&level=local",
    "?limit=99999999999999999999",
    "?limit=-1",
    "?after=%00",
    "?prefix=%ff%fe",
    "?forward=maybe",
    "?%",
    "?a=%zz",
    "?&&&===",
    "?since=x",
    "?level=%6c%69",
];

const HEADERS: [&str; 17] = [
    "if-match: \"",
    "if-match: W/*",
    "if-none-match: ,,,",
    "idempotency-key: ",
    "content-type: ;;;",
    "content-type: application/json; charset=utf-16",
    "authorization: Bearer",
    "authorization: Basic ====",
    "expect: 200-maybe",
    "x-request-id: ",
    "accept: */nothing",
    "eldest-cluster: it",
    "eldest-from: 1 to=1",
    "eldest-message: claim term=9999.3/1 last=9999.3@1",
    "eldest-proof: 1.1.1 1 1",
    "eldest-message: append term=1.1/1 prev=0.0@0 chain=zz count=99999999",
    "upgrade: h2c",
];

/// Longer than any key or id may be, shorter than the bound of a head.
const LONG: u64 = 4_000;

/// Deeper than any sensible value, and far deeper than a recursion should go.
const DEPTH: usize = 20_000;

/// A complete request, whose answer ends the connection.
pub fn request(rng: &mut Rng) -> Vec<u8> {
    let method = *rng.pick(&METHODS);
    let mut target = format!("{}{}", route(rng), rng.pick(&QUERIES));
    if rng.below(20) == 0 {
        target.push_str(&format!("?after={}", "k".repeat(rng.below(LONG) as usize)));
    }
    let mut head = format!("{method} {target} HTTP/1.1\r\nhost: node-1\r\nconnection: close\r\n");
    for _ in 0..rng.below(4) {
        head.push_str(&format!("{}\r\n", rng.pick(&HEADERS)));
    }
    let body = body(rng);
    head.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
    [head.into_bytes(), body].concat()
}

fn route(rng: &mut Rng) -> String {
    let route = *rng.pick(&ROUTES);
    match rng.below(12) {
        0 => format!("{route}/{}", "%00%0a".repeat(rng.below(5) as usize)),
        1 => format!("{route}/%F0%9F%92%A9%ff"),
        2 => format!("{route}//{}", "x".repeat(rng.below(LONG) as usize)),
        _ => route.to_string(),
    }
}

fn body(rng: &mut Rng) -> Vec<u8> {
    match rng.below(10) {
        0 => {
            let count = rng.below(300);
            rng.bytes(count)
        }
        1 => ["[".repeat(DEPTH), "]".repeat(DEPTH)].concat().into_bytes(),
        2 => "{\"a\":".repeat(DEPTH).into_bytes(),
        3 => {
            // A good body with one byte spoiled.
            let mut good = rng.pick(&BODIES).as_bytes().to_vec();
            if !good.is_empty() {
                let at = rng.below(good.len() as u64) as usize;
                good[at] = rng.next() as u8;
            }
            good
        }
        _ => rng.pick(&BODIES).as_bytes().to_vec(),
    }
}

/// Bytes that begin like a known protocol, or like none.
pub fn noise(rng: &mut Rng) -> Vec<u8> {
    let starts: [&[u8]; 14] = [
        b"",
        b"\r\n\r\n\r\n",
        b"GET",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"POST /v1/commands HTTP/1.1\r\ncontent-length: -5\r\n\r\n",
        b"POST /v1/commands HTTP/1.1\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n12345",
        b"POST /v1/commands HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff1\r\n",
        b"POST /v1/commands HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n5\r\n12",
        b"POST /writesync HTTP/1.1\r\ntransfer-encoding: chunked, gzip\r\ncontent-length: 3\r\n\r\n0\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /\0 HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nx\0: y\r\n\r\n",
    ];
    let mut bytes = rng.pick(&starts).to_vec();
    match rng.below(5) {
        0 => {}
        1 => bytes.extend("x-h: y\r\n".repeat(rng.below(3_000) as usize).into_bytes()),
        2 => bytes.extend(vec![b'a'; rng.below(300_000) as usize]),
        _ => {
            let count = rng.below(4_096);
            bytes.extend(rng.bytes(count));
        }
    }
    bytes
}
