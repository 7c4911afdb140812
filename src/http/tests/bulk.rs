//! Streams of commands: order, problems of single lines, bounds, keys, forwarding, and lines during a change of leadership.

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use bytes::Bytes;
use futures_util::FutureExt;
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::sync::mpsc;

use super::node::{Control, Node, Options, limits};
use super::{Answer, request};
use crate::driver::handle::Denied;
use crate::http::request::CHUNK_LINES;
use crate::types::NodeId;

const LEADER: Control = Control::Show(Some(NodeId(1)));
const NDJSON: (&str, &str) = ("content-type", "application/x-ndjson");
const RUN: &str = "POST /v1/commands";

fn put(key: impl std::fmt::Display) -> String {
    format!("{{\"storage_cmd\":\"PutDoc\",\"payload\":{{\"key\":\"{key}\",\"value\":1}}}}\n")
}

fn keyed(key: &str, mark: &str) -> String {
    format!(
        "{{\"storage_cmd\":\"PutDoc\",\"payload\":{{\"key\":\"{key}\",\"value\":1}},\"idempotency_key\":\"{mark}\"}}\n"
    )
}

async fn run(node: &Node, body: &str) -> Vec<Value> {
    lines(&node.call(RUN, &[NDJSON], body).await)
}

fn lines(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("content-type"), "application/x-ndjson");
    answer.text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
}

/// Returns the position of each line in the log, or its problem and the line that the problem names.
fn short(lines: &[Value]) -> Vec<String> {
    let short = |line: &Value| match &line["code"] {
        Value::String(code) => format!("{} {code} {}", line["status"], line["line"]),
        _ => line["index"].to_string(),
    };
    lines.iter().map(short).collect()
}

/// A stream whose body is written by the test.
struct Open {
    body: mpsc::UnboundedSender<Bytes>,
    answer: Body,
}

impl Open {
    async fn at(node: &Node) -> Open {
        let (body, pieces) = mpsc::unbounded_channel::<Bytes>();
        let pieces = futures_util::stream::unfold(pieces, |mut pieces| async move {
            let piece = pieces.recv().await?;
            Some((Ok::<_, std::convert::Infallible>(piece), pieces))
        });
        let request = Request::post("/v1/commands").header("host", "x").header(NDJSON.0, NDJSON.1);
        let request = request.body(Body::from_stream(pieces)).expect("it is well formed");
        let response = node.front.answer(None, request).await;
        assert_eq!(response.status(), 200);
        Open { body, answer: response.into_body() }
    }

    fn send(&self, text: &str) {
        self.body.send(Bytes::from(text.to_string())).expect("the body is wanted");
    }

    async fn piece(&mut self) -> Option<String> {
        let frame = self.answer.frame().await?.expect("it does not break off");
        Some(String::from_utf8(frame.into_data().expect("data").to_vec()).expect("text"))
    }
}

#[tokio::test]
async fn each_line_is_answered_as_it_would_be_alone() {
    let node = Node::leader().await;
    let user = "{\"storage_cmd\":\"CreateUser\",\"payload\":{\"name\":\"a\"}}";
    let body = format!(
        "{user}\n[{user}]\n{}[{}]\nnul\r\n\n{{\"storage_cmd\":\"Fly\",\"payload\":{{}}}}\n{user}",
        put("k"),
        put("l").trim()
    );
    let answer = node.call(RUN, &[NDJSON], &body).await;
    let told = lines(&answer);
    assert_eq!(
        short(&told),
        [
            "1",
            "409 exists 2",
            "2",
            "3",
            "400 bad_json 5",
            "400 bad_json 6",
            "400 unknown_command 7",
            "409 exists 8"
        ]
    );
    let first = answer.text.lines().next();
    assert_eq!(first, Some("{\"index\":1,\"epoch\":\"7.1\",\"result\":{\"name\":\"a\"}}"));
    assert_eq!(told[3]["results"][0]["key"], "l");
    let refused = &told[7];
    assert_eq!(refused["request_id"], answer.header("x-request-id"));
    assert_eq!(refused["leader_node"]["id"], 1);
    assert_eq!(told[1]["operation"], 0);
    assert!(run(&node, "").await.is_empty());
}

#[tokio::test]
async fn lines_are_judged_in_their_order_over_many_chunks() {
    let node = Node::leader().await;
    let count = 2 * CHUNK_LINES + 3;
    let body: String = (0..count).map(put).collect();
    let told = run(&node, &body).await;
    let indexes: Vec<u64> = told.iter().filter_map(|line| line["index"].as_u64()).collect();
    assert_eq!(indexes, (1..=count as u64).collect::<Vec<_>>());
    let keys = told.iter().map(|line| line["result"]["key"].as_str().map(str::to_string));
    assert!(keys.eq((0..count).map(|key| Some(key.to_string()))));
}

#[tokio::test]
async fn an_answer_comes_before_the_next_line_is_sent() {
    let node = Node::leader().await;
    let mut open = Open::at(&node).await;
    open.send(&put("a"));
    assert!(open.piece().await.is_some_and(|line| line.starts_with("{\"index\":1,")));
    let (begin, end) = (put("b"), put("c"));
    open.send(&begin[..9]);
    open.send(&(begin[9..].to_string() + end.trim()));
    assert!(open.piece().await.is_some_and(|line| line.starts_with("{\"index\":2,")));
    drop(open.body);
    let last = open.answer.collect().await.expect("it ends well").to_bytes();
    assert!(last.starts_with(b"{\"index\":3,"));
}

#[tokio::test]
async fn keys_are_named_by_lines() {
    let node = Node::leader().await;
    let body = keyed("a", "job 1") + &keyed("a", "job 1") + &keyed("b", "job 1") + &keyed("c", "");
    let told = run(&node, &body).await;
    assert_eq!(short(&told), ["1", "1", "422 idempotency_key_reused 3", "400 bad_field 4"]);
    assert_eq!(told[3]["field"], "idempotency_key");
    assert_eq!(short(&run(&node, keyed("a", "job 1").trim()).await), ["1"]);
    let header = [NDJSON, ("idempotency-key", "x")];
    let answer = node.call(RUN, &header, &put("a")).await;
    assert_eq!((answer.problem().0, &answer.json()["field"]), (400, &"Idempotency-Key".into()));
}

#[tokio::test]
async fn an_overlong_line_ends_the_stream() {
    let limits = crate::config::HttpLimits { body_bytes: 200, ..limits() };
    let node = Node::with(Options { limits, ..Options::default() }).await;
    let body = put("a") + &put("x".repeat(200)) + &put("b");
    assert_eq!(short(&run(&node, &body).await), ["1", "413 body_too_large 2"]);
    assert_eq!(node.seen().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn silence_ends_the_stream() {
    let node = Node::leader().await;
    let mut open = Open::at(&node).await;
    open.send(&(put("a") + "{"));
    assert!(open.piece().await.is_some_and(|line| line.starts_with("{\"index\":1,")));
    let last = open.piece().await.expect("why it ends");
    assert_eq!(short(&[serde_json::from_str(&last).expect("JSON")]), ["408 request_timeout 2"]);
    assert_eq!(open.piece().await, None);
}

#[tokio::test]
async fn a_reader_that_takes_nothing_stops_the_reading() {
    let node = Node::leader().await;
    let mut open = Open::at(&node).await;
    let chunk: String = (0..CHUNK_LINES).map(put).collect();
    (0..20).for_each(|_| open.send(&chunk));
    // The work is done when the loop gets no further call: then the open chunks wait, and so do chunks whose answers are not taken.
    let mut seen = 0;
    loop {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        match node.seen().len() {
            more if more > seen => seen = more,
            _ => break,
        }
    }
    assert!((1..=8 * CHUNK_LINES).contains(&seen), "{seen} lines were decided");
    drop(open.body);
    let mut told = 0;
    while let Some(frame) = open.answer.frame().await {
        let data = frame.expect("it does not break off").into_data().expect("data");
        told += data.iter().filter(|byte| **byte == b'\n').count();
    }
    assert_eq!(told, 20 * CHUNK_LINES);
}

#[tokio::test]
async fn what_one_line_is_denied_says_nothing_of_the_next() {
    let node = Node::leader().await;
    node.deny([Denied::Unknown, Denied::DiskFull]).await;
    let told = run(&node, &(put("a") + &put("b") + &put("c"))).await;
    assert_eq!(short(&told), ["504 outcome_unknown 1", "503 disk_full 2", "1"]);
    node.control(Control::Doubt).await;
    node.deny([Denied::DiskFull, Denied::DiskFull]).await;
    let told = run(&node, &(keyed("a", "k") + &put("b"))).await;
    assert_eq!(short(&told), ["504 outcome_unknown 1", "503 disk_full 2"]);
}

#[tokio::test]
async fn lines_that_a_hand_over_refused_are_judged_anew() {
    let node = Node::leader().await;
    node.deny([Denied::Unknown, Denied::HandingOver, Denied::HandingOver]).await;
    let told = run(&node, &(put("a") + &put("b") + &put("c"))).await;
    assert_eq!(short(&told), ["504 outcome_unknown 1", "1", "2"]);
    let keys: Vec<_> = told.iter().filter_map(|line| line["result"]["key"].as_str()).collect();
    assert_eq!(keys, ["b", "c"]);
}

#[tokio::test]
async fn a_follower_passes_chunks_on() {
    let mut nodes = Node::several(2, Options::default()).await;
    let _serving = nodes[0].serve();
    let count = CHUNK_LINES + 2;
    let body: String = (0..count).map(put).collect::<String>() + "nul\n";
    let answer = nodes[1].call(RUN, &[NDJSON, ("x-request-id", "mine")], &body).await;
    let told = lines(&answer);
    assert_eq!((told.len(), &told[count - 1]["index"]), (count + 1, &count.into()));
    assert_eq!(short(&told[count..]), [format!("400 bad_json {}", count + 1)]);
    assert_eq!(told[count]["request_id"], "mine");
    assert!(nodes[1].seen().is_empty());
    let stays = nodes[1].call("POST /v1/commands?forward=no", &[NDJSON], &body).await;
    assert_eq!(stays.problem(), (421, "not_leader".to_string()));
}

#[tokio::test]
async fn the_end_of_a_chunk_goes_to_the_next_leader() {
    let mut nodes = Node::several(2, Options::default()).await;
    let _serving = nodes[0].serve();
    let moved = Denied::NotLeader { leader: NodeId(2) };
    let mut denials = vec![moved; 4000];
    denials[0] = Denied::Unknown;
    nodes[0].deny(denials).await;
    let (leader, follower) = (&nodes[0], &nodes[1]);
    let open = Open::at(follower).await;
    open.send(&(put("a") + &put("b") + &put("c")));
    // The first leader has refused the end of the chunk, and names the next leader; the second node learns that it leads.
    while leader.seen().len() < 3 {
        tokio::task::yield_now().await;
    }
    leader.control(Control::Show(Some(NodeId(2)))).await;
    follower.control(Control::Show(Some(NodeId(2)))).await;
    drop(open.body);
    let text = open.answer.collect().await.expect("it ends well").to_bytes();
    let told: Vec<Value> =
        text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
    assert_eq!(short(&told), ["504 outcome_unknown 1", "1", "2"]);
    assert_eq!(follower.seen().len(), 2);
}

#[tokio::test]
async fn a_leader_that_answers_nothing_leaves_it_unknown() {
    let limits = crate::config::HttpLimits { request_timeout: Duration::from_millis(400), ..limits() };
    let node = Node::with(Options { limits, ..Options::default() }).await;
    node.control(Control::FallSilent).await;
    let told = run(&node, &(put("a") + "nul\n")).await;
    assert_eq!(short(&told), ["504 outcome_unknown 1", "504 outcome_unknown 2"]);
    node.control(Control::Show(None)).await;
}

#[tokio::test]
async fn nobody_leads_and_every_line_hears_so() {
    let node = Node::leader().await;
    node.control(Control::Show(Some(NodeId(3)))).await;
    let told = run(&node, &(put("a") + &put("b"))).await;
    assert_eq!(short(&told), ["503 no_leader 1", "503 no_leader 2"]);
    node.control(LEADER).await;
    assert_eq!(short(&run(&node, &put("a")).await), ["1"]);
}

#[tokio::test]
async fn a_node_that_ends_ends_its_streams() {
    let node = Node::leader().await;
    let mut open = Open::at(&node).await;
    open.send(&put("a"));
    assert!(open.piece().await.is_some());
    node.context.handle.stop().await;
    let last = open.piece().await.expect("why it ends");
    assert_eq!(short(&[serde_json::from_str(&last).expect("JSON")]), ["503 no_leader 2"]);
    assert_eq!(open.piece().await, None);
}

/// The number comes from outside: a caller that claims to forward lines may state the largest number.
#[tokio::test]
async fn a_line_has_no_number_beyond_all_bounds() {
    let node = Node::leader().await;
    for (said, counted) in [("18446744073709551615", [1, 2]), ("-1", [1, 2]), ("7", [7, 8])] {
        let headers = [NDJSON, ("eldest-forwarded", "2"), ("eldest-first-line", said)];
        let told = node.send(request(RUN, &headers, "nul\nnul\n")).await;
        let lines: Vec<u64> = told
            .text
            .lines()
            .map(|line| {
                serde_json::from_str::<Value>(line).expect("JSON")["line"].as_u64().expect("a number")
            })
            .collect();
        assert_eq!(lines, counted, "{said}");
    }
}

#[tokio::test]
async fn there_are_so_many_streams_at_a_node() {
    let node = Node::leader().await;
    let mut open = Vec::new();
    let is_full = || {
        let (taken, most) = node.context.streams.in_use();
        taken == most
    };
    while !is_full() {
        open.push(Open::at(&node).await);
    }
    let refused = node.send(request(RUN, &[NDJSON], "")).await;
    assert_eq!(refused.problem(), (429, "too_many_requests".to_string()));
    drop(open);
    while is_full() {
        tokio::task::yield_now().await;
    }
    assert_eq!(short(&run(&node, &put("a")).await), ["1"]);
    assert!(node.send(request(RUN, &[NDJSON], &put("b"))).now_or_never().is_none());
}
