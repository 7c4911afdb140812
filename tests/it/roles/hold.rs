//! A role that is held by an open connection.

use std::time::Instant;

use futures_util::future::join_all;
use rustix::process::Signal;
use serde_json::json;

use super::{Asks, LONG, WAIT, acquire, got, grant, line_is, patient, role, role_events, until};
use crate::harness::{Call, Cluster, Events, Network, Plan, Told, problem, wait_for};

async fn calm() -> Cluster {
    Cluster::of(3).await
}

/// A busy machine renews in time, and a test can wait for its end.
const SHORT: u64 = 10_000;

/// Holds the role, and returns the stream and the token.
async fn hold(cluster: &Cluster, node: u32, instance: &str, ttl_ms: u64) -> (Events, u64) {
    let path = format!("/v1/roles/r/hold?instance_id={instance}&ttl_ms={ttl_ms}");
    let mut events = cluster.posted(node, &path).await.expect("a stream");
    let first = events.event().await;
    let token = first["token"].as_u64().expect("a token");
    let held =
        json!({"kind": "held", "role": "r", "instance_id": instance, "token": token, "ttl_ms": ttl_ms});
    assert_eq!(first, held);
    (events, token)
}

#[tokio::test]
async fn it_is_free_as_soon_as_the_connection_is_closed() {
    let cluster = calm().await;
    let mut last = 0;
    for node in cluster.ids() {
        let (stream, token) = hold(&cluster, node, "held", LONG).await;
        assert!(token > last);
        let refused = problem(&cluster.answer(1, acquire("r", "other", json!({}))).await, 409, "role_held");
        assert_eq!(refused["leader"]["instance_id"], "held");
        drop(stream);
        // Its ttl is an hour: only a release makes it free.
        last = grant(cluster.answer(2, patient("r", "other", json!({}))).await);
        Asks { cluster: &cluster, node: 1 }.release("r", "other", last).await.expect(200);
    }
}

#[tokio::test]
async fn it_is_renewed_while_the_connection_is_open() {
    let cluster = calm().await;
    let mut events = role_events(&cluster, 1, "").await;
    let (stream, token) = hold(&cluster, 2, "held", SHORT).await;
    // The ttl passes twice, once for each of these roles.
    for round in 0..2 {
        let other = format!("s{round}");
        grant(cluster.answer(1, acquire(&other, "silent", json!({"ttl_ms": SHORT}))).await);
        let told = until(&mut events, "role_lost", "silent").await;
        assert!(
            told.iter().all(|event| event["role"] != "r" || event["kind"] == "role_acquired"),
            "{told:?}"
        );
    }
    assert_eq!(role(&cluster, 3, "r").await["token"], json!(token));
    drop(stream);
    let told = until(&mut events, "role_lost", "held").await;
    assert_eq!(told.last().expect("the loss")["reason"], "released");
}

#[tokio::test]
async fn it_lapses_when_the_node_that_serves_it_dies() {
    let cluster = Cluster::of(3).await;
    // First a follower dies, then the leader.
    for round in 0..2 {
        let leader = cluster.leader().await;
        let serving = if round == 0 { cluster.others(leader)[1] } else { leader };
        let witness = cluster.others(serving)[0];
        let mut events = role_events(&cluster, witness, "r").await;
        let began = Instant::now();
        let (mut stream, token) = hold(&cluster, serving, "held", SHORT).await;
        cluster.kill9(serving);
        assert_eq!(stream.next().await, Told::BrokenOff);
        let lost = until(&mut events, "role_lost", "held").await;
        assert!(began.elapsed().as_millis() >= u128::from(SHORT), "it is its holder's until the ttl is over");
        let lost = lost.last().expect("the loss");
        assert_eq!((&lost["reason"], &lost["token"]), (&json!("expired"), &json!(token)));
        cluster.start(serving);
        cluster.ready().await;
    }
}

#[tokio::test]
async fn whoever_loses_it_is_told() {
    let cluster = calm().await;
    for node in cluster.ids() {
        let (mut stream, token) = hold(&cluster, node, "held", SHORT).await;
        let asks = Asks { cluster: &cluster, node: 1 };
        let named = grant(asks.elect("r", "named").await);
        assert_eq!(stream.event().await, json!({"kind": "lost", "role": "r", "token": token}));
        assert_eq!(stream.next().await, Told::End);
        assert_eq!(role(&cluster, 1, "r").await["token"], json!(named), "it is the other one's");
        asks.release("r", "named", named).await.expect(200);
    }
}

#[tokio::test]
async fn it_can_be_waited_for() {
    let cluster = calm().await;
    let (stream, token) = hold(&cluster, 1, "first", LONG).await;
    let refused = cluster.answer(2, Call::post("/v1/roles/r/hold?instance_id=second")).await;
    assert_eq!(problem(&refused, 409, "role_held")["token"], json!(token));
    let path = format!("/v1/roles/r/hold?instance_id=second&wait_ms={WAIT}&format=ndjson");
    let closed = async {
        line_is(&cluster, 1).await;
        drop(stream);
    };
    let ((), second) = tokio::join!(closed, cluster.posted(2, &path));
    let held = second.expect("a stream").event().await;
    assert_eq!(held["instance_id"], "second");
    assert!(held["token"].as_u64() > Some(token));
}

/// The client does not close its connection here, but the node knows that it ends, and releases the role.
#[tokio::test]
async fn a_node_that_ends_gives_it_back() {
    let cluster = calm().await;
    let leader = cluster.leader().await;
    let serving = cluster.others(leader)[0];
    // First a follower ends, then the leader.
    for serving in [serving, leader] {
        let (mut stream, token) = hold(&cluster, serving, "held", LONG).await;
        cluster.term(serving).await;
        let event = stream.event().await;
        assert_eq!((&event["kind"], &event["code"]), (&json!("error"), &json!("stopping")));
        assert_eq!(stream.next().await, Told::End);
        let next = got(cluster.eventually(patient("r", "other", json!({}))).await);
        assert!(next > token);
        let body = json!({"instance_id": "other", "token": next});
        cluster.eventually(Call::post("/v1/roles/r/release").json(&body)).await.expect(200);
        cluster.start(serving);
        cluster.ready().await;
    }
}

/// Clients may close their connections as soon as they hear of the end; then only the
/// releases keep the process up.
#[tokio::test]
async fn a_node_that_ends_gives_back_what_its_clients_have_left() {
    let cluster = calm().await;
    let leader = cluster.leader().await;
    // Each of them leaves at a different moment of its release.
    let roles: Vec<String> = (0..64).map(|number| format!("r{number}")).collect();
    for serving in [cluster.others(leader)[0], leader] {
        let held = join_all(roles.iter().map(async |role| {
            let path = format!("/v1/roles/{role}/hold?instance_id=held&ttl_ms={LONG}");
            let mut stream = cluster.posted(serving, &path).await.expect("a stream");
            assert_eq!(stream.event().await["kind"], "held");
            stream
        }))
        .await;
        cluster.node(serving).signal(Signal::TERM);
        join_all(held.into_iter().map(async |mut stream| {
            assert_eq!(stream.event().await["code"], "stopping");
        }))
        .await;
        let status = wait_for("the process ends", async || cluster.node(serving).ended()).await;
        assert_eq!(status.code(), Some(0), "{status}");
        for role in &roles {
            let next = got(cluster.eventually(patient(role, "other", json!({}))).await);
            let body = json!({"instance_id": "other", "token": next});
            let release = Call::post(format!("/v1/roles/{role}/release"));
            cluster.eventually(release.json(&body)).await.expect(200);
        }
        cluster.start(serving);
        cluster.ready().await;
    }
}

/// A client's host that vanishes sends no end of its connection.
#[tokio::test]
async fn it_is_free_when_nothing_reaches_the_client() {
    /// The test's own end of the network.
    const TEST: u32 = 254;
    let Some(network) = Network::new(3) else { return };
    // Beyond loopback a node requires a secret.
    let config = "cluster_secret = \"the secret of these tests, long enough to pass\"";
    let plan = Plan::at(network.addresses()).launchers(network.launchers()).config(config);
    let cluster = plan.start().await;
    let mut events = role_events(&cluster, 2, "r").await;
    // Its ttl is an hour: it is free because the node that serves it notices.
    let (_stream, token) = hold(&cluster, 1, "held", LONG).await;
    network.cut(TEST, 1);
    let lost = until(&mut events, "role_lost", "held").await;
    let lost = lost.last().expect("the loss");
    assert_eq!((&lost["reason"], &lost["token"]), (&json!("released"), &json!(token)));
}
