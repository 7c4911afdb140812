//! Available mode: each side of a split has its own holder, and one of them remains.

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;

use super::{acquire, got, renew, until};
use crate::harness::{Answer, Call, Cluster, Network, problem, watch_for};
use crate::sides::{cluster_on, one_again, split_in_two};

/// The statuses of a node while leadership changes. With the timings of a release a busy
/// machine may do so at any time.
const TRY_AGAIN: [u16; 4] = [421, 429, 503, 504];

/// A side that continues has its leader at once; a node that does not know it yet is called
/// again, under the same key.
async fn answered(cluster: &Cluster, node: u32, call: &Call) -> Answer {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let key = format!("splits-{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let call = call.clone().header("idempotency-key", key);
    watch_for("a side answers", async || match cluster.ask(node, &call).await {
        Ok(answer) if !TRY_AGAIN.contains(&answer.status) => Ok(answer),
        said => Err(format!("{said:?}")),
    })
    .await
}

#[tokio::test]
async fn the_elder_sides_holder_stays() {
    let Some(network) = Network::new(3) else { return };
    let cluster = cluster_on(&network).await;
    let before = got(answered(&cluster, 2, &acquire("before", "everywhere", json!({}))).await);
    split_in_two(&network, &cluster).await;
    // Whether they are granted one or two seconds of wall time apart or at the same
    // moment, the tokens differ.
    let elder = got(answered(&cluster, 1, &acquire("r", "elder", json!({}))).await);
    let younger = got(answered(&cluster, 3, &acquire("r", "younger", json!({}))).await);
    assert_ne!(elder, younger);
    let alone = got(answered(&cluster, 2, &acquire("theirs", "alone", json!({}))).await);
    for (node, instance, token) in [(1, "elder", elder), (2, "younger", younger)] {
        answered(&cluster, node, &renew("r", instance, token)).await.expect(200);
    }
    let mut events = cluster.events(3, "/v1/feed?kinds=role_acquired,role_lost").await.expect("a feed");
    assert_eq!(events.event().await["kind"], "bookmark");
    network.heal();
    one_again(&cluster).await;
    let told = until(&mut events, "role_acquired", "elder").await;
    let lost = told.iter().find(|event| event["kind"] == "role_lost").expect("a loss");
    assert_eq!((&lost["role"], &lost["instance_id"]), (&json!("r"), &json!("younger")));
    assert_eq!((&lost["token"], &lost["reason"]), (&json!(younger), &json!("merged")));
    for node in cluster.ids() {
        let shown = answered(&cluster, node, &Call::get("/v1/roles/r")).await.expect(200).json();
        assert_eq!(shown["leader"]["instance_id"], "elder");
        let lost = answered(&cluster, node, &renew("r", "younger", younger)).await;
        problem(&lost, 410, "lease_lost");
        answered(&cluster, node, &renew("r", "elder", elder)).await.expect(200);
        answered(&cluster, node, &renew("before", "everywhere", before)).await.expect(200);
        answered(&cluster, node, &renew("theirs", "alone", alone)).await.expect(200);
    }
    let all = json!({"instance_id": "new", "ttl_ms": super::LONG});
    let next = got(answered(&cluster, 3, &Call::post("/v1/roles/next/acquire").json(&all)).await);
    assert!(next > elder.max(younger).max(alone).max(before), "tokens rise over merges");
    let conflicts = answered(&cluster, 1, &Call::get("/v1/conflicts")).await.json();
    assert_eq!(conflicts["items"], json!([]), "who lost a role lost no data");
}
