//! Messages between real nodes: each listener hears each message once, and no sender waits for a dead node.

use serde_json::{Value, json};

use crate::harness::{Call, Cluster, Events, Plan, Raw, wait_for};

/// A node that does not answer within two heartbeats is left out, and its listeners are not counted. Here two
/// heartbeats are eight seconds.
const PATIENT: &str = "timing.heartbeat_ms = 4000";

async fn send(cluster: &Cluster, node: u32, channel: &str, message: &Value) -> Value {
    let call = Call::post(format!("/v1/channels/{channel}")).json(message);
    cluster.answer(node, call).await.expect(200).json()
}

async fn listen(cluster: &Cluster, node: u32, path: &str) -> Events {
    cluster.events(node, path).await.expect("a channel")
}

#[tokio::test]
async fn a_message_reaches_every_listener_once() {
    let cluster = Plan::new(3).config(PATIENT).start().await;
    let mut listeners = Vec::new();
    for node in [1, 2, 3, 3] {
        listeners.push(listen(&cluster, node, "/v1/channels/worker:slave:7").await);
    }
    listeners.push(listen(&cluster, 2, "/v1/channels/worker:slave:7?format=ndjson").await);
    let mut other = listen(&cluster, 1, "/v1/channels/worker:slave:8").await;
    for number in 0..30 {
        let sent = send(&cluster, number % 3 + 1, "worker:slave:7", &json!({"n": number})).await;
        assert_eq!(sent, json!({"delivered": 5}));
    }
    for listener in &mut listeners {
        for number in 0..30 {
            assert_eq!(listener.event().await, json!({"n": number}), "once, and in the sender's order");
        }
    }
    assert_eq!(send(&cluster, 3, "worker:slave:8", &json!([])).await, json!({"delivered": 1}));
    assert_eq!(other.event().await, json!([]), "it has heard nothing else");
    assert_eq!(send(&cluster, 3, "nobody", &json!(null)).await, json!({"delivered": 0}));
    drop(other);
    wait_for("a listener that has left is not counted", async || {
        (send(&cluster, 1, "worker:slave:8", &json!(1)).await == json!({"delivered": 0})).then_some(())
    })
    .await;
}

/// One node is dead, one is frozen, and the cluster has no leader: a channel needs no leader and no majority.
#[tokio::test]
async fn nobody_waits_for_the_dead() {
    let cluster = Cluster::brisk(3).await;
    let mut here = listen(&cluster, 1, "/v1/channels/c").await;
    let _still = listen(&cluster, 2, "/v1/channels/c").await;
    let _dead = listen(&cluster, 3, "/v1/channels/c").await;
    let mut sent = 0;
    wait_for("all three are counted", async || {
        sent += 1;
        (send(&cluster, 1, "c", &json!(sent)).await == json!({"delivered": 3})).then_some(())
    })
    .await;
    cluster.kill9(3);
    cluster.stop(2);
    wait_for("nobody leads", async || cluster.status(1).await?["leader"].is_null().then_some(())).await;
    assert_eq!(send(&cluster, 1, "c", &json!("last")).await, json!({"delivered": 1}));
    cluster.cont(2);
    wait_for("the one that stood still is counted again", async || {
        (send(&cluster, 1, "c", &json!("after")).await == json!({"delivered": 2})).then_some(())
    })
    .await;
    for number in 1..=sent {
        assert_eq!(here.event().await, json!(number));
    }
    assert_eq!((here.event().await, here.event().await), (json!("last"), json!("after")));
}

#[tokio::test]
async fn a_slow_listener_is_dropped_with_a_reason() {
    // The node does not give up a connection before the listener lags too far, even if a busy machine
    // takes long to get there.
    let cluster = Plan::new(1).config("limits.answer_timeout_ms = 600000").start().await;
    let mut slow = Raw::connect(cluster.node(1)).await;
    slow.send(b"GET /v1/channels/c HTTP/1.1\r\nhost: node-1\r\nconnection: close\r\n\r\n").await;
    let mut quick = listen(&cluster, 1, "/v1/channels/c").await;
    let message = json!("x".repeat(512 << 10));
    wait_for("both listen", async || {
        (send(&cluster, 1, "c", &json!(0)).await == json!({"delivered": 2})).then_some(())
    })
    .await;
    let mut heard = 0;
    wait_for("the slow one is counted no more", async || {
        let sent = send(&cluster, 1, "c", &message).await;
        while quick.event().await != message {}
        heard += 1;
        (sent == json!({"delivered": 1})).then_some(())
    })
    .await;
    assert!(heard > 8, "it was given a chance: {heard}");
    let told = String::from_utf8(slow.read_to_end().await).expect("text");
    let end = &told[told.len().saturating_sub(500)..];
    assert!(end.contains("event: error") && end.contains("\"code\":\"too_slow\""), "{end}");
    assert!(end.ends_with("0\r\n\r\n"), "the answer ends cleanly: {end}");
}
