//! Two sides that cannot merge serve their clients, say why, and merge once an operator has
//! removed the cause (P48).

use serde_json::json;

use crate::harness::{Cluster, Network, wait_for};
use crate::sides::{CONFIG, PATIENCE, cluster_with, conflicts, one_again, put, split_in_two};

const EACH: u32 = 40;

/// All of them end in order, and start with another configuration.
async fn restart(cluster: &Cluster, config: &str) {
    for id in cluster.ids() {
        cluster.term(id).await;
        cluster.configure(id, config);
    }
    cluster.ids().for_each(|id| cluster.start(id));
}

async fn remark(cluster: &Cluster, id: u32) -> String {
    wait_for("a node says why the sides stay apart", async || {
        let remark = cluster.status(id).await?["remark"].as_str()?.to_string();
        remark.contains("limits.merge_bytes").then_some(remark)
    })
    .await
}

#[tokio::test]
async fn what_is_too_large_is_merged_once_the_bound_is_raised() {
    let Some(network) = Network::new(3) else { return };
    let cluster = cluster_with(&network, &format!("{CONFIG}{PATIENCE}limits.merge_bytes = 1024\n")).await;
    let younger = split_in_two(&network, &cluster).await;
    put(&cluster, 1, "shared", 1).await;
    put(&cluster, 3, "shared", 2).await;
    for number in 0..EACH {
        put(&cluster, 1, &format!("elder/{number}"), number).await;
        put(&cluster, 2, &format!("younger/{number}"), number).await;
    }
    let feed = "/v1/feed?kinds=merge_called_off";
    let mut told = cluster.events(younger, feed).await.expect("a feed");
    told.event().await;
    network.heal();
    let called_off = told.news().await;
    assert_eq!(
        [&called_off["node"], &called_off["with"], &called_off["reason"], &called_off["most"]],
        [&json!(younger), &json!(1), &json!("too_large"), &json!(1024)]
    );
    assert!(called_off["bytes"].as_u64() > Some(1024), "{called_off}");
    assert!(called_off.get("id").is_none(), "it is in no record");
    println!("{}", remark(&cluster, younger).await);
    // They hear each other, stay apart, and take writes.
    for id in [1, younger] {
        put(&cluster, id, &format!("after-{id}"), id).await;
        assert_eq!(cluster.status_of(id, "leader").await["id"], json!(id), "a side of its own");
    }
    restart(&cluster, &[CONFIG, PATIENCE].concat()).await;
    one_again(&cluster).await;
    for id in cluster.ids() {
        for number in 0..EACH {
            let (elder, younger) = (format!("elder/{number}"), format!("younger/{number}"));
            assert_eq!(cluster.read_doc(id, &elder, "local").await, Some(number.into()));
            assert_eq!(cluster.read_doc(id, &younger, "local").await, Some(number.into()));
        }
        for side in [1, younger] {
            assert_eq!(cluster.read_doc(id, &format!("after-{side}"), "local").await, Some(side.into()));
        }
        assert_eq!(cluster.read_doc(id, "shared", "local").await, Some(1), "the elder's value");
    }
    let lost: Vec<_> =
        conflicts(&cluster, 3).await.iter().map(|entry| entry["lost"]["value"].clone()).collect();
    assert_eq!(lost, [json!(2)]);
}
