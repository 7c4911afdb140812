//! A stream of commands, one a line: order, refusals in the middle, a leader that dies in the middle, a
//! client that reads no answers, and 20,000 large lines in bounded memory.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::process::Command;
use std::time::{Duration, Instant};

use axum::http::Request;
use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::stream;
use http_body_util::Full;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::harness::{Call, Cluster, Plan, Raw, bounded, problem, wait_for};

const NDJSON: (&str, &str) = ("content-type", "application/x-ndjson");

/// The memory that a node may use beyond what it had before a stream: some megabytes for the lines under way
/// and for allocators, and less than half of the stream's size.
const MORE_KIB: u64 = 64 << 10;

/// The pause between two lines of a slow client: all of them together take longer than a head may.
const DRIP: Duration = Duration::from_millis(200);

/// The number of looks, one `DRIP` apart, in which nothing moves: a stream that only waits for a processor
/// moves again before that.
const STILL: usize = 10;

/// No answer takes this long: it only makes a test fail, and is no measure.
const LONG: Duration = Duration::from_secs(300);

fn put(key: &str, value: u64) -> String {
    format!("{}\n", json!({"storage_cmd": "PutDoc", "payload": {"key": key, "value": value}}))
}

fn once(key: &str, mark: &str) -> String {
    let payload = json!({"key": key, "value": 1, "if_absent": true});
    format!("{}\n", json!({"storage_cmd": "PutDoc", "payload": payload, "idempotency_key": mark}))
}

async fn bulk(cluster: &Cluster, node: u32, body: &str) -> Vec<Value> {
    let call = Call::post("/v1/commands").header(NDJSON.0, NDJSON.1).body(body).timeout(LONG);
    answers(&cluster.answer(node, call).await.expect(200).body)
}

fn answers(body: &[u8]) -> Vec<Value> {
    let lines = body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).expect("each line is JSON")).collect()
}

#[tokio::test]
async fn lines_are_judged_in_order_through_any_node() {
    let cluster = Cluster::of(3).await;
    for node in cluster.ids() {
        let user = json!({"storage_cmd": "CreateUser", "payload": {"name": format!("u{node}")}});
        let mut body = format!("{user}\n{user}\nno json\n");
        (0..2000).for_each(|value| body += &put(&format!("counter/{node}"), value));
        let told = bulk(&cluster, node, &body).await;
        assert_eq!(told.len(), 2003);
        assert_eq!(told[0]["result"]["name"], format!("u{node}"));
        assert_eq!(
            (&told[1]["status"], &told[1]["code"], &told[1]["line"]),
            (&409.into(), &"exists".into(), &2.into())
        );
        assert_eq!((&told[2]["code"], &told[2]["line"]), (&"bad_json".into(), &3.into()));
        let indexes: Vec<u64> = told.iter().filter_map(|line| line["index"].as_u64()).collect();
        assert_eq!(indexes.len(), 2001);
        assert!(indexes.is_sorted_by(|one, next| one < next));
        assert_eq!(cluster.read_doc(1, &format!("counter/{node}"), "linear").await, Some(1999));
    }
    let leader = cluster.leader().await;
    let stays = Call::post("/v1/commands?forward=no").header(NDJSON.0, NDJSON.1).body(put("k", 1));
    for follower in cluster.others(leader) {
        problem(&cluster.answer(follower, stays.clone()).await, 421, "not_leader");
    }
    cluster.equal_states(&[1, 2, 3]).await;
}

/// A client sends all its lines again under the same keys until each has a final answer.
#[tokio::test]
async fn what_was_answered_survives_the_leader_and_nothing_happens_twice() {
    let cluster = Cluster::of(3).await;
    let leader = cluster.leader().await;
    let follower = cluster.others(leader)[0];
    const LINES: usize = 30_000;
    let line = |number: usize| once(&format!("d/{number}"), &format!("mark-{number}"));
    let mut acknowledged = BTreeSet::new();
    let mut first_indexes = vec![None; LINES];
    let mut left: Vec<usize> = (0..LINES).collect();
    let mut killed = false;
    while !left.is_empty() {
        let body: String = left.iter().map(|number| line(*number)).collect();
        let request = cluster.client().post(format!("{}/v1/commands", cluster.node(follower).url()));
        let sent = request.header(NDJSON.0, NDJSON.1).body(body).timeout(LONG).send().await;
        let mut response = sent.expect("a follower takes the stream");
        assert_eq!(response.status(), 200);
        let (mut text, mut told) = (Vec::new(), 0);
        while let Some(piece) = response.chunk().await.expect("the stream ends well") {
            text.extend_from_slice(&piece);
            while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
                let answer: Value = serde_json::from_slice(&text[..end]).expect("JSON");
                text.drain(..=end);
                let number = left[told];
                told += 1;
                match (answer["index"].as_u64(), answer["status"].as_u64()) {
                    (Some(index), _) => {
                        assert!(acknowledged.insert(number), "line {number} is answered twice");
                        assert_eq!(*first_indexes[number].get_or_insert(index), index);
                    }
                    (None, Some(421 | 429 | 503 | 504)) => {}
                    _ => panic!("{answer}"),
                }
            }
            if !killed && told > 2000 {
                cluster.kill9(leader);
                killed = true;
            }
        }
        assert_eq!(told, left.len(), "each line has an answer");
        left.retain(|number| !acknowledged.contains(number));
    }
    assert!(killed);
    // Every document is there, and was created once: its revision is the index that
    // its line was answered with.
    let again: String = (0..LINES).map(line).collect();
    let told = bulk(&cluster, follower, &again).await;
    let indexes: Vec<Option<u64>> = told.iter().map(|answer| answer["index"].as_u64()).collect();
    assert_eq!(indexes, first_indexes);
    cluster.start(leader);
    cluster.is_ready(leader).await;
    cluster.equal_states(&[1, 2, 3]).await;
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_not_read_from() {
    let cluster = Cluster::of(3).await;
    let leader = cluster.leader().await;
    let url = format!("{}/v1/commands", cluster.node(leader).url());
    let chunk: String = (0..1024).map(|value| put("slow", value)).collect();
    let (count, sent) = tokio::sync::watch::channel(0);
    let pieces = stream::unfold(0, move |number| {
        let (chunk, _) = (chunk.clone(), count.send_replace(number));
        async move { Some((Ok::<_, Infallible>(chunk), number + 1)) }
    });
    let request =
        cluster.client().post(url).header(NDJSON.0, NDJSON.1).body(reqwest::Body::wrap_stream(pieces));
    let response = request.send().await.expect("the answer begins before the body has ended");
    // The client reads no answer, so at some point the node accepts no more lines.
    let stuck_at = wait_for("the stream comes to a stop", async || {
        let before = *sent.borrow();
        let index = cluster.status_of(leader, "commit_index").await;
        for _ in 0..STILL {
            if cluster.status_of(leader, "commit_index").await != index || *sent.borrow() != before {
                return None;
            }
            tokio::time::sleep(DRIP).await;
        }
        (before > 0).then_some(before)
    })
    .await;
    // The sockets' buffers hold some megabytes of answers.
    assert!(stuck_at < 1000, "{stuck_at} chunks were taken");
    cluster.write_doc("beside", 1).await;
    drop(response);
    // Its place is free again.
    assert_eq!(bulk(&cluster, leader, &put("after", 1)).await[0]["result"]["key"], "after");
}

#[tokio::test]
async fn curl_sends_a_file_after_100_continue() {
    let cluster = Cluster::of(3).await;
    let follower = cluster.others(cluster.leader().await)[0];
    let file = cluster.folder().join("lines");
    // The file is longer than what curl sends without asking.
    let body: String = (0..20_000).map(|value| put("file", value)).collect();
    std::fs::write(&file, &body).expect("a file");
    for node in [follower, cluster.leader().await] {
        let url = format!("{}/v1/commands", cluster.node(node).url());
        let mut curl = Command::new("curl");
        curl.args(["-sS", "-v", "--max-time", "300", "--expect100-timeout", "60"]);
        curl.args(["-X", "POST", "-H", "Expect: 100-continue", "-H", "Content-Type: application/x-ndjson"]);
        curl.arg("-T").arg(&file).arg(url);
        let done = tokio::task::spawn_blocking(move || curl.output().expect("curl is there")).await;
        let done = done.expect("it does not panic");
        let said = String::from_utf8_lossy(&done.stderr).to_string();
        assert!(said.contains("100 Continue"), "{said}");
        assert_eq!(answers(&done.stdout).iter().filter(|line| line["index"].is_u64()).count(), 20_000);
    }
}

#[tokio::test]
async fn a_client_that_goes_away_leaves_the_node_well() {
    let cluster = Cluster::of(3).await;
    let leader = cluster.leader().await;
    for _ in 0..100 {
        let mut raw = Raw::connect(cluster.node(leader)).await;
        let line = put("gone", 1);
        let head = "POST /v1/commands HTTP/1.1\r\nhost: node-1\r\ncontent-type: application/x-ndjson\r\ncontent-length: 9999\r\n\r\n";
        raw.send(format!("{head}{line}{line}{{").as_bytes()).await;
    }
    // These are more streams than there may be at once: each has given its place back.
    wait_for("a place for a stream", async || {
        let call = Call::post("/v1/commands").header(NDJSON.0, NDJSON.1).body(put("here", 1));
        cluster.answer(leader, call).await.ok().then_some(())
    })
    .await;
    cluster.equal_states(&[1, 2, 3]).await;
}

/// Lines that come one by one do not count as a head that takes too long.
#[tokio::test]
async fn a_stream_outlasts_the_patience_for_heads() {
    // A head that is sent at once arrives in time even on a busy machine; the lines take longer.
    let config = "limits.header_timeout_ms = 2000\nlimits.idle_timeout_ms = 2500\n";
    let cluster = Plan::new(1).config(config).start().await;
    let mut raw = Raw::connect(cluster.node(1)).await;
    let lines: Vec<String> = (0..20).map(|value| put("slow", value)).collect();
    let length: usize = lines.iter().map(String::len).sum();
    let head = "POST /v1/commands HTTP/1.1\r\nhost: node-1\r\nconnection: close\r\ncontent-type: application/x-ndjson\r\n";
    raw.send(format!("{head}content-length: {length}\r\n\r\n").as_bytes()).await;
    let (mut said, began) = (Vec::new(), Instant::now());
    for line in lines {
        raw.send(line.as_bytes()).await;
        let (bytes, ended) = raw.read_for(DRIP).await;
        said.extend(bytes);
        assert!(!ended || said.ends_with(b"0\r\n\r\n"), "{}", String::from_utf8_lossy(&said));
    }
    assert!(began.elapsed() > Duration::from_millis(2500), "it has outlasted them");
    said.extend(raw.read_to_end().await);
    assert_eq!(String::from_utf8_lossy(&said).matches("{\"index\":").count(), 20);
    assert_eq!(cluster.read_doc(1, "slow", "linear").await, Some(19));
}

#[tokio::test]
async fn a_long_stream_takes_bounded_memory() {
    const LINES: usize = 20_000;
    let cluster = Cluster::of(1).await;
    // A refused line goes the way of every line, and leaves nothing behind.
    cluster.write_doc("there", 1).await;
    let before = cluster.node(1).resident_kib();
    let payload = json!({"key": "there", "value": "x".repeat(8 << 10), "if_absent": true});
    let line = format!("{}\n", json!({"storage_cmd": "PutDoc", "payload": payload}));
    let pieces = stream::iter((0..LINES).map(move |_| Ok::<_, Infallible>(line.clone())));
    let request = cluster.client().post(format!("{}/v1/commands", cluster.node(1).url()));
    let request = request.header(NDJSON.0, NDJSON.1).body(reqwest::Body::wrap_stream(pieces)).timeout(LONG);
    let mut response = request.send().await.expect("the answer begins");
    let (mut told, mut most) = (0, 0);
    while let Some(piece) = response.chunk().await.expect("it does not break off") {
        told += piece.iter().filter(|byte| **byte == b'\n').count();
        most = most.max(cluster.node(1).resident_kib());
    }
    assert_eq!(told, LINES);
    assert!(most < before + MORE_KIB, "{most} KiB, {before} before");
}

/// Requests on one connection that do not wait for each other's answers are answered in order.
#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let cluster = Cluster::of(3).await;
    for node in cluster.ids() {
        let mut raw = Raw::connect(cluster.node(node)).await;
        let mut all = String::new();
        for number in 0..500 {
            let close = if number == 499 { "connection: close\r\n" } else { "" };
            let key = format!("pipe/{node}");
            write!(
                all,
                "PUT /v1/docs/{key} HTTP/1.1\r\nhost: node-1\r\n{close}content-length: 3\r\n\r\n{}",
                100 + number
            )
            .expect("writing to a String cannot fail");
        }
        raw.send(all.as_bytes()).await;
        let said = String::from_utf8(raw.read_to_end().await).expect("text");
        let indexes = said.lines().filter_map(|line| line.strip_prefix("eldest-index: "));
        let indexes: Vec<u64> = indexes.map(|index| index.trim().parse().expect("a number")).collect();
        assert_eq!(indexes.len(), 500, "{said}");
        assert!(indexes.is_sorted_by(|one, next| one < next));
        assert_eq!(cluster.read_doc(node, &format!("pipe/{node}"), "linear").await, Some(599));
    }
}

/// More streams of one HTTP/2 connection than it may have at once: the others wait for their turn.
#[tokio::test]
async fn http2_carries_many_writes_at_once() {
    let cluster = Cluster::of(3).await;
    let url = cluster.node(2).url();
    let stream = TcpStream::connect(url.trim_start_matches("http://")).await.expect("a running node");
    let (calls, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("it speaks HTTP/2");
    tokio::spawn(connection);
    let put = |number: usize| {
        let (mut calls, uri) = (calls.clone(), format!("{url}/v1/docs/h2/{number}"));
        async move {
            let request = Request::put(uri).body(Full::new(Bytes::from("7"))).expect("it is well formed");
            calls.ready().await.expect("the connection lives");
            calls.send_request(request).await.expect("an answer").status().as_u16()
        }
    };
    let statuses = timeout(LONG, join_all((0..600).map(put))).await.expect("each call has an answer");
    assert!(statuses.iter().all(|status| *status == 201), "{statuses:?}");
    for number in [0, 300, 599] {
        assert_eq!(cluster.read_doc(1, &format!("h2/{number}"), "linear").await, Some(7));
    }
}

#[tokio::test]
async fn the_bench_streams() {
    let cluster = Cluster::of(3).await;
    let urls: Vec<String> = cluster.ids().map(|id| cluster.node(id).url()).collect();
    let mut bench = bounded();
    bench
        .args(["bench", "--stream", "2", "--duration", "3s", "--warmup", "0s", "--json", "--url"])
        .arg(urls.join(","));
    let done = tokio::task::spawn_blocking(move || bench.output().expect("the binary runs")).await;
    let done = done.expect("it does not panic");
    assert!(done.status.success(), "{done:?}");
    let report: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    assert!(report["writes"]["count"].as_u64() > Some(0), "{report}");
    assert_eq!((&report["streams"], &report["errors"]), (&2.into(), &json!({})), "{report}");
}
