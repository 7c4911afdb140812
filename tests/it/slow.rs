//! Connections that send nothing, or send slowly, are closed, and other clients do not notice them.

use std::time::Duration;

use crate::harness::{Call, Cluster, Plan, Raw, wait_for};

const SHORT: &str = "limits.header_timeout_ms = 300\nlimits.idle_timeout_ms = 300";

/// The number of silent connections at once: more than a client opens by mistake.
const MANY: usize = 200;

/// The pause between the bytes of a head that never ends; well below the timeout, so
/// that each byte is in time.
const DRIP: Duration = Duration::from_millis(50);

async fn node() -> Cluster {
    Plan::new(1).config(SHORT).start().await
}

#[tokio::test]
async fn silence_is_closed() {
    let cluster = node().await;
    let mut silent = Vec::new();
    for _ in 0..MANY {
        silent.push(Raw::connect(cluster.node(1)).await);
    }
    // A busy machine may be too slow for a call as well: then the call is repeated.
    cluster.eventually(Call::put("/v1/docs/k").raw_json("1")).await.expect(201);
    for mut raw in silent {
        raw.read_to_end().await;
    }
}

#[tokio::test]
async fn half_a_head_is_closed() {
    let cluster = node().await;
    for start in [
        "G",
        "GET /v1/status HTTP/1.1\r\n",
        "GET /v1/status HTTP/1.1\r\nhost: node-1\r\nx: ",
        "PRI * HTTP/2.0\r\n",
    ] {
        let mut raw = Raw::connect(cluster.node(1)).await;
        raw.send(start.as_bytes()).await;
        raw.read_to_end().await;
    }
    cluster.eventually(Call::get("/livez")).await.expect(200);
}

#[tokio::test]
async fn a_head_that_drips_is_closed() {
    let cluster = node().await;
    let mut raw = Raw::connect(cluster.node(1)).await;
    raw.send(b"GET /v1/status HTTP/1.1\r\nx: ").await;
    wait_for("the node loses patience", async || {
        raw.send(b"y").await;
        let (_, ended) = raw.read_for(DRIP).await;
        ended.then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_idle_connection_is_closed_after_its_answer() {
    // The head may take as long as a busy machine needs, and the idle bound closes the connection.
    let idle = "limits.header_timeout_ms = 600000\nlimits.idle_timeout_ms = 300";
    let cluster = Plan::new(1).config(idle).start().await;
    let mut raw = Raw::connect(cluster.node(1)).await;
    raw.send(b"GET /livez HTTP/1.1\r\nhost: node-1\r\n\r\n").await;
    let answer = raw.read_to_end().await;
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
}

/// Clients that hold all connections are closed in the end, so the other clients do not wait forever.
#[tokio::test]
async fn a_full_house_empties() {
    let config = format!("{SHORT}\nlimits.connections = 64");
    let cluster = Plan::new(3).config(&config).start().await;
    cluster.write_doc("k", 1).await;
    let mut silent = Vec::new();
    for id in cluster.ids() {
        for _ in 0..MANY {
            silent.push(Raw::connect(cluster.node(id)).await);
        }
    }
    cluster.write_doc("k", 2).await;
    drop(silent);
    cluster.ready().await;
    cluster.equal_states(&[1, 2, 3]).await;
}
