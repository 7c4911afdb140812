//! The waiter queue of a role, and its order.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::{Asks, WAIT, acquire, got, grant, line_is, patient, role, role_events, until};
use crate::harness::{Answer, Call, Cluster, Raw, problem};

async fn calm() -> Arc<Cluster> {
    Arc::new(Cluster::of(3).await)
}

fn waiting(cluster: &Arc<Cluster>, node: u32, instance: &str, more: Value) -> JoinHandle<Answer> {
    let (cluster, call) = (cluster.clone(), patient("r", instance, more));
    tokio::spawn(async move { cluster.answer(node, call).await })
}

async fn release(cluster: &Cluster, instance: &str, token: u64) {
    Asks { cluster, node: 1 }.release("r", instance, token).await.expect(200);
}

#[tokio::test]
async fn priority_goes_before_arrival() {
    let cluster = calm().await;
    let mut events = role_events(&cluster, 1, "r").await;
    let mut token = grant(cluster.answer(1, acquire("r", "holder", json!({}))).await);
    let mut holder = "holder".to_string();
    let mut line = Vec::new();
    for (place, (instance, priority)) in
        [("late", -1), ("one", 0), ("two", 0), ("first", 5)].into_iter().enumerate()
    {
        let more = json!({"priority": priority});
        line.push((instance, waiting(&cluster, place as u32 % 3 + 1, instance, more)));
        line_is(&cluster, place as u64 + 1).await;
    }
    for (left, instance) in ["first", "one", "two", "late"].into_iter().enumerate() {
        release(&cluster, &holder, token).await;
        let place = line.iter().position(|(name, _)| *name == instance).expect("it waits");
        let next = grant(line.remove(place).1.await.expect("no panic"));
        assert!(next > token);
        (token, holder) = (next, instance.to_string());
        line_is(&cluster, 3 - left as u64).await;
    }
    let told = until(&mut events, "role_acquired", "late").await;
    let holders: Vec<_> = told.iter().map(|event| (&event["kind"], &event["instance_id"])).collect();
    let expected = ["holder", "first", "one", "two"];
    let expected = expected.iter().flat_map(|name| [("role_acquired", *name), ("role_lost", *name)]);
    let expected: Vec<_> = expected.chain([("role_acquired", "late")]).collect();
    assert!(
        holders
            .iter()
            .map(|(kind, name)| (kind.as_str(), name.as_str()))
            .eq(expected.iter().map(|(kind, name)| (Some(*kind), Some(*name)))),
        "{told:?}"
    );
}

#[tokio::test]
async fn a_lease_that_ends_is_the_next_ones() {
    let cluster = calm().await;
    let mut events = role_events(&cluster, 3, "r").await;
    let token = grant(cluster.answer(1, acquire("r", "silent", json!({"ttl_ms": 1000}))).await);
    let next = waiting(&cluster, 2, "next", json!({}));
    let lost = until(&mut events, "role_lost", "silent").await;
    assert_eq!(lost.last().expect("it is told")["reason"], json!("expired"));
    // The grant is the record right after the end (P41): no write that is made once the end
    // is known comes before it.
    let later = cluster.answer(1, Call::put("/v1/docs/later").raw_json("1")).await.expect(201);
    let later: u64 = later.header("eldest-index").and_then(|index| index.parse().ok()).expect("an index");
    assert!(grant(next.await.expect("no panic")) > token);
    let told = until(&mut events, "role_acquired", "next").await;
    assert_eq!(told.len(), 1, "{told:?}");
    let id = told[0]["id"].as_str().expect("an id");
    let granted: u64 = id.split('.').next().and_then(|index| index.parse().ok()).expect("an index");
    assert!(granted < later, "granted at {granted}, and not before {later}");
}

#[tokio::test]
async fn a_wait_comes_to_its_end() {
    let cluster = calm().await;
    let token = grant(cluster.answer(1, acquire("r", "a", json!({}))).await);
    for node in cluster.ids() {
        let began = Instant::now();
        let refused = cluster.answer(node, acquire("r", "b", json!({"wait_ms": 300}))).await;
        let refused = problem(&refused, 409, "role_held");
        assert!(began.elapsed().as_millis() >= 300, "it waited");
        assert_eq!((&refused["outcome"], &refused["token"]), (&json!("other_leader"), &json!(token)));
    }
    line_is(&cluster, 0).await;
}

#[tokio::test]
async fn whoever_asks_again_keeps_its_turn() {
    let cluster = calm().await;
    let token = grant(cluster.answer(1, acquire("r", "a", json!({}))).await);
    let earlier = waiting(&cluster, 2, "b", json!({}));
    line_is(&cluster, 1).await;
    let other = waiting(&cluster, 3, "c", json!({}));
    line_is(&cluster, 2).await;
    let later = waiting(&cluster, 1, "b", json!({}));
    problem(&earlier.await.expect("no panic"), 429, "too_many_requests");
    line_is(&cluster, 2).await;
    release(&cluster, "a", token).await;
    let token = grant(later.await.expect("no panic"));
    release(&cluster, "b", token).await;
    grant(other.await.expect("no panic"));
}

/// A client that waits under the name `gone`, before all others, and whose connection the test can close.
async fn first_in_line(cluster: &Cluster, node: u32) -> Raw {
    let body = json!({"instance_id": "gone", "ttl_ms": super::LONG, "wait_ms": WAIT, "priority": 9});
    let body = body.to_string();
    let length = body.len();
    let head =
        format!("POST /v1/roles/r/acquire HTTP/1.1\r\nhost: node-1\r\ncontent-length: {length}\r\n\r\n");
    let mut gone = Raw::connect(cluster.node(node)).await;
    gone.send(format!("{head}{body}").as_bytes()).await;
    line_is(cluster, 1).await;
    gone
}

/// Through the leader and through a follower; the client that leaves is the first in the queue.
#[tokio::test]
async fn whoever_has_gone_never_gets_it() {
    let cluster = calm().await;
    let leader = cluster.leader().await;
    let mut token = grant(cluster.answer(1, acquire("r", "holder-0", json!({}))).await);
    let mut events = role_events(&cluster, 1, "r").await;
    for (round, node) in [leader, cluster.others(leader)[0]].into_iter().enumerate() {
        let began = Instant::now();
        let gone = first_in_line(&cluster, node).await;
        let next = format!("holder-{}", round + 1);
        let patient = waiting(&cluster, 1, &next, json!({}));
        line_is(&cluster, 2).await;
        drop(gone);
        // The end of a connection takes time to reach the node, and from there the leader.
        line_is(&cluster, 1).await;
        assert!(began.elapsed().as_millis() < u128::from(WAIT), "it left the line when its wait was over");
        release(&cluster, &format!("holder-{round}"), token).await;
        // A grant to the dead client would last for its ttl of an hour, because nothing would release it.
        let granted = grant(patient.await.expect("no panic"));
        assert!(granted > token);
        token = granted;
    }
    let told = until(&mut events, "role_acquired", "holder-2").await;
    assert!(told.iter().all(|event| event["instance_id"] != "gone"), "{told:?}");
    let shown = role(&cluster, 1, "r").await;
    assert_eq!(shown["leader"]["instance_id"], "holder-2");
}

/// The waiter queue is in the leader's memory: a client that waits there when the leader
/// dies calls the next leader.
#[tokio::test]
async fn a_wait_outlives_its_leader_by_asking_again() {
    let cluster = Cluster::of(3).await;
    let token = grant(cluster.answer(1, acquire("r", "a", json!({}))).await);
    let patient = cluster.eventually(patient("r", "b", json!({})));
    let failover = async {
        line_is(&cluster, 1).await;
        cluster.kill9(cluster.leader().await);
        cluster.leader().await;
        let body = json!({"instance_id": "a", "token": token});
        cluster.eventually(Call::post("/v1/roles/r/release").json(&body)).await.expect(200);
    };
    let (granted, ()) = tokio::join!(patient, failover);
    assert!(got(granted) > token);
}
