//! One address, or one token, opens as many connections as it can: those of others are still served.

use std::net::{Ipv4Addr, SocketAddr};

use serde_json::{Value, json};

use crate::harness::{Call, Cluster, Plan, Raw, wait_for};

const ADMIN: &str = "admin-token-of-the-tests-0123456789";

/// The bounds of a node: streams of commands, and connections for metrics (docs/http-api.md).
const STREAMS: usize = 64;
const SCRAPES: usize = 16;

const ONE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 1);
const OTHER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

async fn token(cluster: &Cluster, name: &str) -> String {
    let body = json!({"name": name, "grants": ["write docs/"]});
    let call = Call::post("/v1/tokens").json(&body).header("authorization", format!("Bearer {ADMIN}"));
    let made = cluster.answer(1, call).await.expect(201).json();
    made["token"].as_str().expect("it is told once").to_string()
}

/// A stream of commands that has sent nothing yet, and the first line of its answer.
async fn stream(cluster: &Cluster, from: Ipv4Addr, token: &str) -> (Raw, String) {
    let mut raw = Raw::connect_from(from, cluster.node(1)).await;
    let head = format!(
        "POST /v1/commands HTTP/1.1\r\nhost: {}\r\nconnection: close\r\nauthorization: Bearer {token}\r\n\
         content-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n",
        cluster.node(1).ip
    );
    raw.send(head.as_bytes()).await;
    let status = raw.read_line().await;
    (raw, status)
}

/// Opens streams until one is refused, and returns the bound that was reached.
async fn fill(cluster: &Cluster, by: impl Fn(usize) -> (Ipv4Addr, String)) -> (Vec<Raw>, String) {
    let mut open = Vec::new();
    loop {
        let (from, token) = by(open.len());
        let (mut raw, status) = stream(cluster, from, &token).await;
        if status == "HTTP/1.1 200 OK" {
            open.push(raw);
            assert!(open.len() <= STREAMS);
            continue;
        }
        assert!(status.starts_with("HTTP/1.1 429 "), "{status}");
        while !raw.read_line().await.is_empty() {}
        let body: Value = serde_json::from_slice(&raw.read_to_end().await).expect("a problem");
        return (open, body["bound"].as_str().expect("the bound").to_string());
    }
}

/// Sends one line and reads its answer.
async fn is_served(cluster: &Cluster, from: Ipv4Addr, token: &str) {
    let (mut raw, status) = stream(cluster, from, token).await;
    assert_eq!(status, "HTTP/1.1 200 OK");
    let line = "{\"storage_cmd\":\"PutDoc\",\"payload\":{\"key\":\"a\",\"value\":1}}\n";
    raw.send(format!("{:x}\r\n{line}\r\n0\r\n\r\n", line.len()).as_bytes()).await;
    let told = String::from_utf8_lossy(&raw.read_to_end().await).into_owned();
    assert!(told.contains("\"key\":\"a\""), "{told}");
}

#[tokio::test]
async fn no_one_takes_all_streams_of_commands() {
    let settings = format!("admin_token = \"{ADMIN}\"\nanonymous = \"none\"");
    let cluster = Plan::new(1).config(&settings).start().await;
    let (mine, another) = (token(&cluster, "mine").await, token(&cluster, "another").await);

    let (open, bound) = fill(&cluster, |number| {
        let token = if number % 2 == 0 { &mine } else { &another };
        (ONE, token.clone())
    })
    .await;
    assert_eq!(bound, "streams of commands at this node, of one address");
    assert!(open.len() < STREAMS);
    is_served(&cluster, OTHER, &another).await;
    drop(open);

    // The places are free again once the node has noticed.
    wait_for("there is room again", async || {
        stream(&cluster, ONE, &mine).await.1.starts_with("HTTP/1.1 200 ").then_some(())
    })
    .await;
    let (open, bound) = fill(&cluster, |number| (Ipv4Addr::new(127, 0, 1, number as u8), mine.clone())).await;
    assert_eq!(bound, "streams of commands at this node, of one token");
    is_served(&cluster, OTHER, &another).await;
    drop(open);
}

/// The status of an answer to a scrape of the metrics.
async fn scrape(from: Ipv4Addr, to: SocketAddr) -> String {
    let mut raw = Raw::open(from, to).await;
    raw.send(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n").await;
    raw.read_line().await
}

#[tokio::test]
async fn no_one_takes_all_connections_for_metrics() {
    let mut plan = Plan::new(2);
    let address = SocketAddr::from((plan.take_last(), 9464));
    let _cluster = plan.config(&format!("metrics_listen = \"{address}\"")).start().await;
    let mut silent = Vec::new();
    for _ in 0..2 * SCRAPES {
        silent.push(Raw::open(ONE, address).await);
    }
    assert_eq!(scrape(OTHER, address).await, "HTTP/1.1 200 OK");
    assert_eq!(scrape(ONE, address).await, "HTTP/1.1 503 Service Unavailable");
    drop(silent);
    wait_for("there is room again", async || (scrape(ONE, address).await == "HTTP/1.1 200 OK").then_some(()))
        .await;
}
