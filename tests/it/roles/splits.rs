//! Available mode: each side of a split has a holder of its own, and one of them is left.

use serde_json::json;

use super::{acquire, grant, renew, role, until};
use crate::harness::{Answer, Call, Cluster, Network, problem, wait_for};
use crate::sides::{cluster_on, one_again, split_in_two};

/// A side that goes on has its leader at once; whoever has not heard of it yet is asked again.
async fn answered(cluster: &Cluster, node: u32, call: &Call) -> Answer {
    wait_for("a side answers", async || {
        cluster.ask(node, call).await.ok().filter(|answer| answer.status < 500)
    })
    .await
}

#[tokio::test]
async fn the_elder_sides_holder_stays() {
    let Some(network) = Network::new(3) else { return };
    let cluster = cluster_on(&network).await;
    let before = grant(answered(&cluster, 2, &acquire("before", "everywhere", json!({}))).await);
    split_in_two(&network, &cluster).await;
    // One and two seconds of wall time apart, or at the same moment: they are never the same.
    let elder = grant(answered(&cluster, 1, &acquire("r", "elder", json!({}))).await);
    let younger = grant(answered(&cluster, 3, &acquire("r", "younger", json!({}))).await);
    assert_ne!(elder, younger);
    let alone = grant(answered(&cluster, 2, &acquire("theirs", "alone", json!({}))).await);
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
        assert_eq!(role(&cluster, node, "r").await["leader"]["instance_id"], "elder");
        let lost = answered(&cluster, node, &renew("r", "younger", younger)).await;
        problem(&lost, 410, "lease_lost");
        answered(&cluster, node, &renew("r", "elder", elder)).await.expect(200);
        answered(&cluster, node, &renew("before", "everywhere", before)).await.expect(200);
        answered(&cluster, node, &renew("theirs", "alone", alone)).await.expect(200);
    }
    let all = json!({"instance_id": "new", "ttl_ms": super::LONG});
    let next = grant(answered(&cluster, 3, &Call::post("/v1/roles/next/acquire").json(&all)).await);
    assert!(next > elder.max(younger).max(alone).max(before), "tokens rise over merges");
    let conflicts = answered(&cluster, 1, &Call::get("/v1/conflicts")).await.json();
    assert_eq!(conflicts["items"], json!([]), "who lost a role lost no data");
}
