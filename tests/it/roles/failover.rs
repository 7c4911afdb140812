//! Leases outlive leaders, and tokens always rise.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde_json::json;

use super::{acquire, got, grant, renew, role_events, until};
use crate::harness::{Call, Cluster, problem};

/// Long enough for a failover on a busy machine, short enough to wait for its end.
const TTL: u64 = 30_000;

/// Long enough for any failover; no test waits for its end.
const KEPT: u64 = 120_000;

/// The last answer to a renewal: the time of the call, and the time that was promised.
struct Promise {
    sent: Instant,
    ms: u64,
}

async fn renewed(cluster: &Cluster, token: u64) -> Promise {
    let sent = Instant::now();
    let answer = cluster.eventually(renew("r", "a", token)).await.expect(200);
    Promise { sent, ms: answer.json()["expires_in_ms"].as_u64().expect("a time") }
}

#[tokio::test]
async fn a_lease_outlives_its_leader_and_ends() {
    let cluster = Cluster::of(3).await;
    let token = got(cluster.eventually(acquire("r", "a", json!({"ttl_ms": TTL}))).await);
    let leader = cluster.leader().await;
    let mut events = role_events(&cluster, cluster.others(leader)[0], "r").await;
    let promise = renewed(&cluster, token).await;
    cluster.kill9(leader);
    let held = problem(&cluster.eventually(acquire("r", "b", json!({}))).await, 409, "role_held");
    assert_eq!((&held["leader"]["instance_id"], &held["token"]), (&json!("a"), &json!(token)));
    let lost = until(&mut events, "role_lost", "a").await;
    assert!(promise.sent.elapsed().as_millis() >= u128::from(promise.ms), "before what was promised");
    let lost = lost.last().expect("the loss");
    assert_eq!((&lost["reason"], &lost["token"]), (&json!("expired"), &json!(token)));
    problem(&cluster.eventually(renew("r", "a", token)).await, 410, "lease_lost");
}

/// The answers may promise less than its ttl during a failover, but the holder never loses it.
#[tokio::test]
async fn who_renews_keeps_it_over_leaders() {
    let cluster = Cluster::of(3).await;
    let token = got(cluster.eventually(acquire("r", "a", json!({"ttl_ms": KEPT}))).await);
    for _ in 0..3 {
        let leader = cluster.leader().await;
        cluster.kill9(leader);
        let promise = renewed(&cluster, token).await;
        assert!((KEPT / 2..=KEPT).contains(&promise.ms), "half of the ttl at least: {}", promise.ms);
        let again = cluster.eventually(acquire("r", "a", json!({"ttl_ms": KEPT}))).await.expect(200).json();
        assert_eq!((&again["outcome"], &again["token"]), (&json!("already_leader"), &json!(token)));
        cluster.start(leader);
        cluster.ready().await;
    }
}

#[tokio::test]
async fn tokens_rise_over_everything() {
    // The first is greater than any that an earlier cluster can have given (P30).
    let started = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock");
    let mut last = u64::try_from(started.as_micros()).expect("a time");
    let cluster = Cluster::of(3).await;
    let mut higher = async |instance: &str| {
        let body = json!({"instance_id": instance, "ttl_ms": 10_000});
        let call = Call::post("/v1/roles/r/elect").json(&body);
        let token = got(cluster.eventually(call).await);
        assert!(token > last, "{token} after {last}");
        assert!(token < 1 << 53);
        last = token;
    };
    higher("a").await;
    higher("b").await;
    // A failover.
    let leader = cluster.leader().await;
    cluster.kill9(leader);
    higher("c").await;
    cluster.start(leader);
    cluster.ready().await;
    // All data is replaced by a document without roles.
    let leader = cluster.leader().await;
    let document = json!({"docs": [{"key": "k", "value": 1}]});
    cluster.answer(leader, Call::post("/override_all_data").json(&document)).await.expect(200);
    higher("d").await;
    // All nodes are killed at once.
    cluster.ids().for_each(|id| cluster.kill9(id));
    cluster.ids().for_each(|id| cluster.start(id));
    cluster.ready().await;
    higher("e").await;
    for id in cluster.ids() {
        cluster.term(id).await;
    }
    cluster.ids().for_each(|id| cluster.start(id));
    cluster.ready().await;
    higher("f").await;
}

/// Live processes and the roles that they hold are not data.
#[tokio::test]
async fn a_restore_takes_no_role_from_anybody() {
    let cluster = Cluster::of(3).await;
    let token = grant(cluster.answer(1, acquire("r", "a", json!({}))).await);
    let leader = cluster.leader().await;
    let document = json!({"docs": [{"key": "k", "value": 1}]});
    cluster.answer(leader, Call::post("/override_all_data").json(&document)).await.expect(200);
    cluster.answer(2, renew("r", "a", token)).await.expect(200);
    let held = problem(&cluster.answer(3, acquire("r", "b", json!({}))).await, 409, "role_held");
    assert_eq!(held["token"], json!(token));
    cluster.equal_states(&[1, 2, 3]).await;
}

/// The next leader starts each ttl again: a hand-over costs no holder anything.
#[tokio::test]
async fn a_hand_over_takes_leases_along() {
    let cluster = Cluster::of(3).await;
    let token = grant(cluster.answer(1, acquire("r", "a", json!({}))).await);
    for _ in 0..3 {
        cluster.answer(1, Call::post("/handoff")).await.expect(200);
        let answer = cluster.eventually(renew("r", "a", token)).await.expect(200);
        assert_eq!(answer.json()["expires_in_ms"], json!(super::LONG));
    }
}
