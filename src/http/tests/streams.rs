//! The feed and the channels of real nodes, read as a client reads them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::FutureExt;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use super::meeting::{Node, free_ports, start_in, temp_dir, wait};
use super::request;
use crate::http::admission::Sharers;
use crate::protocol::Mode;

/// Longer than any of this takes; only a test that hangs waits for it.
const PATIENCE: Duration = Duration::from_secs(60);

/// An open response.
struct Stream(Body);

impl Stream {
    async fn open(node: &Node, line: &str, headers: &[(&str, &str)]) -> Stream {
        let response = node.front.answer(None, request(line, headers, "")).await;
        let (parts, body) = response.into_parts();
        assert_eq!(parts.status, 200, "{line}");
        let kind = if line.contains("ndjson") { "application/x-ndjson" } else { "text/event-stream" };
        assert_eq!(parts.headers["content-type"], kind, "{line}");
        assert_eq!(parts.headers["cache-control"], "no-store", "{line}");
        Stream(body)
    }

    /// Returns the next piece, or None at a clean end.
    async fn piece(&mut self) -> Option<Bytes> {
        let frame = tokio::time::timeout(PATIENCE, self.0.frame()).await.expect("something comes");
        Some(frame?.expect("it does not break off").into_data().expect("data"))
    }

    /// Returns the next event's JSON, and the text before it.
    async fn event(&mut self) -> (String, Value) {
        loop {
            let piece = self.piece().await.expect("it goes on");
            let text = std::str::from_utf8(&piece).expect("text");
            // Keep-alive messages.
            if matches!(text, "\n" | ":\n\n") {
                continue;
            }
            let (head, data) = match text.split_once("data: ") {
                Some((head, data)) => (head, data.strip_suffix("\n\n").expect("a whole event")),
                None => ("", text.strip_suffix('\n').expect("a whole line")),
            };
            assert!(!data.contains('\n'), "{text:?}");
            return (head.to_string(), serde_json::from_str(data).expect("JSON"));
        }
    }

    /// Returns the next event's kind and id.
    async fn short(&mut self) -> (String, String) {
        let (_, json) = self.event().await;
        let text = |name: &str| json[name].as_str().unwrap_or_default().to_string();
        (text("kind"), text("id"))
    }

    /// Returns the ids of the next changes of documents, by key.
    async fn changes(&mut self, count: usize) -> Vec<(String, String)> {
        let mut changes = Vec::new();
        while changes.len() < count {
            let (_, json) = self.event().await;
            if json["kind"] == "change" {
                let text = |name: &str| json[name].as_str().unwrap_or_default().to_string();
                changes.push((text("key"), text("id")));
            }
        }
        changes
    }
}

async fn one(mode: Mode) -> (Node, PathBuf) {
    let dir = temp_dir();
    (start_in(mode, 1, &free_ports(1), &dir).await, dir)
}

/// A snapshot may still be written to the directory.
async fn remove(dir: &Path) {
    wait(async || std::fs::remove_dir_all(dir).is_ok()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_say_what_has_happened() {
    let (node, dir) = one(Mode::Safe).await;
    node.put("warm").await;
    let mut feed = Stream::open(&node, "GET /v1/feed", &[]).await;
    let (head, bookmark) = feed.event().await;
    let id = bookmark["id"].as_str().expect("an id").to_string();
    assert_eq!((head, &bookmark["kind"]), (format!("id: {id}\nevent: bookmark\n"), &json!("bookmark")));

    let put = node.call("PUT /v1/docs/app/a", "{\"x\": [1.50]}").await;
    let (rev, (head, event)) = (put.json()["rev"].clone(), feed.event().await);
    let index = rev.as_str().expect("a revision");
    assert_eq!(head, format!("id: {index}\nevent: change\n"));
    assert_eq!(
        event.to_string(),
        json!({"id": index, "kind": "change", "at": event["at"], "table": "doc", "key": "app/a", "rev": index, "op": "put", "value": {"x": [1.5]}}).to_string()
    );
    node.call("DELETE /v1/docs/app/a", "").await;
    let (_, event) = feed.event().await;
    assert_eq!((&event["op"], &event["key"], event.get("value")), (&json!("delete"), &json!("app/a"), None));

    let batch = "[{\"storage_cmd\":\"CreateUser\",\"payload\":{\"name\":\"ann\"}},\
        {\"storage_cmd\":\"CreateElection\",\"payload\":{\"name\":\"lunch\",\"choices\":[\"soup\"]}},\
        {\"storage_cmd\":\"VoteElection\",\"payload\":{\"election_name\":\"lunch\",\"voter_name\":\"ann\",\"choice\":\"soup\"}},\
        {\"storage_cmd\":\"PutDoc\",\"payload\":{\"key\":\"b\",\"value\":1}},\
        {\"storage_cmd\":\"PutDoc\",\"payload\":{\"key\":\"b\",\"value\":2}}]";
    let index = node.call("POST /v1/commands", batch).await.json()["index"].clone();
    let mut seen = Vec::new();
    for _ in 0..4 {
        let (_, event) = feed.event().await;
        seen.push((
            event["id"].clone(),
            event["table"].clone(),
            event["key"].clone(),
            event["value"].clone(),
        ));
    }
    let id = |n: u32| json!(format!("{index}.{n}"));
    assert_eq!(seen[0], (id(1), json!("user"), json!("ann"), json!({"name": "ann"})));
    assert_eq!((&seen[1].1, &seen[1].2), (&json!("election"), &json!("lunch")));
    assert_eq!(seen[2], (id(3), json!("vote"), json!("lunch"), json!("soup")));
    assert_eq!(seen[3], (id(4), json!("doc"), json!("b"), json!(2)), "once, as it is in the end");

    node.call("POST /service_down", "{\"ttl_ms\": 60000, \"reason\": \"a \\\"move\\\"\"}").await;
    let (_, event) = feed.event().await;
    assert_eq!(
        (&event["kind"], &event["owner"], &event["ttl_ms"], &event["reason"]),
        (&json!("service_down"), &json!("operator"), &json!(60_000), &json!("a \"move\""))
    );
    node.call("POST /service_up", "").await;
    assert_eq!(feed.short().await.0, "service_up");
    let restore = node.call("POST /override_all_data", "{\"docs\":[{\"key\":\"new\",\"value\":1}]}").await;
    assert_eq!(restore.status, 200, "{restore:?}");
    let (_, event) = feed.event().await;
    assert_eq!((&event["kind"], &event["changes_told"]), (&json!("new_state"), &json!(false)));
    node.end().await;
    let (head, event) = feed.event().await;
    assert_eq!((head.as_str(), &event["code"]), ("event: error\n", &json!("stopping")));
    assert_eq!(feed.piece().await, None);
    remove(&dir).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_comes_back() {
    let (node, dir) = one(Mode::Safe).await;
    node.put("warm").await;
    let mut feed = Stream::open(&node, "GET /v1/feed?format=ndjson&kinds=change", &[]).await;
    assert_eq!(feed.short().await.0, "bookmark");
    for key in ["a", "b", "c"] {
        node.put(key).await;
    }
    let changes = feed.changes(3).await;
    let keys: Vec<_> = changes.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["a", "b", "c"]);
    let first = changes[0].1.as_str();
    let mut by_query = Stream::open(&node, &format!("GET /v1/feed?kinds=change&since={first}"), &[]).await;
    assert_eq!(by_query.changes(2).await, changes[1..]);
    assert_eq!(by_query.short().await, ("bookmark".to_string(), changes[2].1.clone()));
    // The position in the browser's header is newer than the one in the URL.
    let header = [("last-event-id", changes[1].1.as_str())];
    let mut by_header = Stream::open(&node, &format!("GET /v1/feed?since={first}"), &header).await;
    assert_eq!(by_header.changes(1).await, changes[2..]);
    let mut now = Stream::open(&node, "GET /v1/feed?since=0", &[]).await;
    assert_eq!(now.short().await, ("bookmark".to_string(), changes[2].1.clone()));

    for (query, field) in [
        ("?kinds=chnage", "kinds"),
        ("?since=x", "since"),
        ("?since=7.1@12", "since"),
        ("?format=xml", "format"),
        ("?prefxi=a", "prefxi"),
    ] {
        let refused = node.call(&format!("GET /v1/feed{query}"), "").await;
        assert_eq!(refused.problem(), (400, "bad_field".to_string()), "{query}");
        assert_eq!(refused.json()["field"], field);
    }
    node.end().await;
    remove(&dir).await;
}

/// Snapshots are taken every ten records, and events of records in a snapshot are not sent again.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_the_log_is_told_again_and_no_more() {
    let (ports, dir) = (free_ports(1), temp_dir());
    let node = start_in(Mode::Safe, 1, &ports, &dir).await;
    node.put("first").await;
    let mut feed = Stream::open(&node, "GET /v1/feed?kinds=change", &[]).await;
    for number in 0..25 {
        node.put(&format!("k{number}")).await;
    }
    let changes = feed.changes(25).await;
    wait(async || node.call("GET /v1/status", "").await.json()["snapshot_id"].as_u64() >= Some(2)).await;
    node.end().await;

    let node = start_in(Mode::Safe, 1, &ports, &dir).await;
    node.put("last").await;
    let gone = node.call(&format!("GET /v1/feed?since={}", changes[0].1), "").await;
    assert_eq!(gone.problem(), (410, "feed_compacted".to_string()));
    let oldest = gone.json()["oldest"].as_str().expect("an id").to_string();
    let mut feed = Stream::open(&node, &format!("GET /v1/feed?kinds=change&since={oldest}"), &[]).await;
    let told = feed.changes(1).await.remove(0);
    assert!(changes.contains(&told), "{told:?} was told before by the same id: {changes:?}");
    let next = changes.iter().position(|change| *change == told).expect("it is there") + 1;
    assert_eq!(feed.changes(changes.len() - next).await, changes[next..]);
    assert_eq!(feed.changes(1).await[0].0, "last");
    node.end().await;
    remove(&dir).await;
}

/// Two sides meet: readers of the elder side get the other side's changes, and ids of the other side are invalid there.
#[tokio::test(flavor = "multi_thread")]
async fn a_merge_is_told() {
    let (ports, dirs) = (free_ports(4), [temp_dir(), temp_dir()]);
    let start =
        async |me: u32, ports: &[u16]| start_in(Mode::Available, me, ports, &dirs[me as usize - 1]).await;
    let one = start(1, &[ports[0], ports[2]]).await;
    let two = start(2, &[ports[3], ports[1]]).await;
    one.put("ones").await;
    one.put("both").await;
    let mut feed = Stream::open(&two, "GET /v1/feed?kinds=change", &[]).await;
    wait(async || two.call("PUT /v1/docs/both", "2").await.status.is_success()).await;
    two.put("twos").await;
    let lost = feed.changes(2).await.remove(1).1;
    assert!(lost.contains('@'), "{lost}");
    one.end().await;
    two.end().await;

    let one = start(1, &ports[..2]).await;
    wait(async || one.call("GET /readyz", "").await.status.is_success()).await;
    let mut feed = Stream::open(&one, "GET /v1/feed", &[]).await;
    let two = start(2, &ports[..2]).await;
    let (mut keys, mut conflicts, mut part) = (Vec::new(), Vec::new(), Value::Null);
    let merged = loop {
        let (_, event) = feed.event().await;
        match event["kind"].as_str() {
            Some("change") => {
                keys.push(event["key"].clone());
                part = event["id"].clone();
            }
            Some("conflict") => conflicts.push(event["key"].clone()),
            Some("new_state") => break event,
            _ => {}
        }
    };
    assert!(keys.contains(&json!("twos")), "{keys:?}");
    assert_eq!(conflicts, [json!("both")]);
    assert_eq!((&merged["reason"], &merged["changes_told"]), (&json!("merged"), &json!(true)));
    let part = part.as_str().expect("an id");
    for gone in [&lost, part] {
        let gone = one.call(&format!("GET /v1/feed?since={gone}"), "").await;
        assert_eq!(gone.problem(), (410, "feed_compacted".to_string()));
        assert_eq!(gone.json()["oldest"], merged["id"]);
    }
    // The other node got the merged state a little later: from there on it sends the same events.
    wait(async || two.call("GET /v1/docs/ones?level=local", "").await.status == 200).await;
    let gone = two.call(&format!("GET /v1/feed?since={lost}"), "").await;
    assert_eq!(gone.problem(), (410, "feed_compacted".to_string()));
    one.put("after").await;
    let oldest = gone.json()["oldest"].as_str().expect("an id").to_string();
    let mut other = Stream::open(&two, &format!("GET /v1/feed?kinds=change&since={oldest}"), &[]).await;
    assert_eq!(other.changes(1).await[0].0, "after");
    one.end().await;
    two.end().await;
    for dir in &dirs {
        remove(dir).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_cross_nodes() {
    let (ports, dirs) = (free_ports(3), [temp_dir(), temp_dir(), temp_dir()]);
    let mut nodes = Vec::new();
    for (me, dir) in (1..).zip(&dirs) {
        nodes.push(start_in(Mode::Safe, me, &ports, dir).await);
    }
    let line = "POST /v1/channels/worker:slave:7%2Fa";
    let none = nodes[0].call(line, "1").await;
    assert_eq!((none.status.as_u16(), none.text.as_str()), (200, "{\"delivered\":0}"));
    let mut sse = Stream::open(&nodes[1], "GET /v1/channels/worker:slave:7%2Fa", &[]).await;
    let mut lines = Stream::open(&nodes[2], "GET /v1/channels/worker:slave:7/a?format=ndjson", &[]).await;
    let mut other = Stream::open(&nodes[2], "GET /v1/channels/other", &[]).await;
    for (node, number) in nodes.iter().zip(1..) {
        let body = format!("{{\n  \"n\": {number}\n}}");
        assert_eq!(node.call(line, &body).await.text, "{\"delivered\":2}");
    }
    for number in 1..=3 {
        let (head, message) = sse.event().await;
        assert_eq!((head.as_str(), message), ("event: message\n", json!({"n": number})));
        assert_eq!(lines.event().await.1, json!({"n": number}));
    }
    assert_eq!(nodes[0].call("POST /v1/channels/other", "\"x\"").await.text, "{\"delivered\":1}");
    assert_eq!(other.event().await.1, "x", "it has heard nothing else");
    for (body, status, code) in [("", 400, "bad_json"), ("{", 400, "bad_json"), ("1 2", 400, "bad_json")] {
        assert_eq!(nodes[0].call(line, body).await.problem(), (status, code.to_string()), "{body}");
    }
    let large = format!("\"{}\"", "x".repeat(1 << 20));
    assert_eq!(nodes[0].call(line, &large).await.problem(), (413, "body_too_large".to_string()));
    let long = format!("POST /v1/channels/{}", "x".repeat(257));
    assert_eq!(nodes[0].call(&long, "1").await.problem(), (400, "bad_field".to_string()));

    let (left, gone) = (nodes.remove(0), nodes);
    for node in gone {
        node.end().await;
    }
    assert_eq!(sse.event().await.1["code"], "stopping");
    assert_eq!(sse.piece().await, None);
    assert_eq!(left.call(line, "1").await.text, "{\"delivered\":0}", "the dead keep nobody waiting");
    left.end().await;
    for dir in &dirs {
        remove(dir).await;
    }
}

/// The streams of a node that stops: one client closes as soon as it learns so, another one while its role is given back. The ttl is an
/// hour, so that a lapse is not taken for a release.
#[tokio::test(flavor = "multi_thread")]
async fn a_role_is_given_back_although_its_client_closes_when_the_node_ends() {
    let (ports, dirs) = (free_ports(3), [temp_dir(), temp_dir(), temp_dir()]);
    let mut nodes = Vec::new();
    for (me, dir) in (1..).zip(&dirs) {
        nodes.push(start_in(Mode::Safe, me, &ports, dir).await);
    }
    nodes[0].put("warm").await;
    let mut streams = Vec::new();
    for role in ["told", "polled"] {
        let line = format!("POST /v1/roles/{role}/hold?instance_id=a&ttl_ms=3600000");
        let mut stream = Stream::open(&nodes[2], &line, &[]).await;
        assert_eq!(stream.event().await.1["kind"], "held");
        streams.push(stream);
    }
    let ending = nodes.remove(2);
    let closing = async {
        for (mut stream, is_polled) in streams.into_iter().zip([false, true]) {
            assert_eq!(stream.event().await.1["code"], "stopping");
            if is_polled {
                // The release begins, and the stream is dropped before its answer.
                let _ = stream.0.frame().now_or_never();
            }
        }
    };
    tokio::join!(ending.end(), closing);
    for role in ["told", "polled"] {
        let line = format!("POST /v1/roles/{role}/acquire");
        wait(async || nodes[0].call(&line, "{\"instance_id\":\"b\"}").await.status == 200).await;
    }
    for node in nodes {
        node.end().await;
    }
    for dir in &dirs {
        remove(dir).await;
    }
}

/// Streams that hold roles have one bound for both kinds; a seat becomes free once its node has finished its report.
#[tokio::test(flavor = "multi_thread")]
async fn so_many_streams_hold_roles() {
    let (node, dir) = one(Mode::Safe).await;
    node.put("warm").await;
    let places = node.front.context.holds.clone();
    let all: Vec<_> = std::iter::from_fn(|| places.take(Sharers::default()).ok()).collect();
    let tie = |token: &str| format!("POST /v1/roles/r/tie?instance_id=a&token={token}&tie=7&grace_ms=0");
    for line in [tie("1"), "POST /v1/roles/r/hold?instance_id=a".to_string()] {
        let refused = node.call(&line, "").await;
        assert_eq!(refused.problem(), (429, "too_many_requests".to_string()), "{line}");
        assert_eq!(refused.json()["bound"], "roles held by streams of this node", "{line}");
    }
    drop(all);
    let refused = node.call(&tie("1"), "").await;
    assert!(refused.status.is_client_error(), "nobody's role: {}", refused.status);
    assert_eq!(places.in_use().0, 0, "what is refused has no place");
    let granted = node.call("POST /v1/roles/r/acquire", "{\"instance_id\":\"a\"}").await.json();
    let tied = Stream::open(&node, &tie(&granted["token"].to_string()), &[]).await;
    assert_eq!(places.in_use().0, 1);
    drop(tied);
    wait(async || places.in_use().0 == 0).await;
    node.end().await;
    remove(&dir).await;
}
