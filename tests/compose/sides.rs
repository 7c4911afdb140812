//! Available mode in containers: cables are pulled, every side continues, and everything that each side
//! wrote is there afterwards.

use serde_json::json;

use crate::cluster::{Cluster, NODES, document, until};

pub async fn the_eldest_is_cut_off(cluster: &Cluster) {
    cluster.whole().await;
    cluster.cut(1);
    cluster.leader_among(&[2, 3]).await;
    cluster.put_within(1, "alone", "1").await;
    cluster.put_within(1, "both", "1").await;
    cluster.put_within(3, "together", "2").await;
    cluster.put_within(2, "both", "2").await;
    cluster.mend(1);
    one_again(cluster).await;
    for (key, value) in [("alone", 1), ("together", 2), ("both", 1)] {
        everywhere(cluster, key, value).await;
    }
    let look = async || cluster.client.get(3, "/v1/conflicts").await.filter(|answer| answer.status == 200);
    let conflicts = until("node 3 tells the conflicts", look).await.body;
    let items = conflicts["items"].as_array().expect("a list");
    let found = items.iter().any(|item| item["key"] == "both" && item["lost"]["value"] == 2);
    assert!(found, "the younger side's value is not in the journal: {conflicts}");
}

/// Three sides, of one container each.
pub async fn everybody_is_alone(cluster: &Cluster) {
    NODES.iter().for_each(|&node| cluster.cut(node));
    for node in NODES {
        cluster.put_within(node, &format!("of-{node}"), &node.to_string()).await;
    }
    NODES.iter().rev().for_each(|&node| cluster.mend(node));
    one_again(cluster).await;
    for node in NODES {
        everywhere(cluster, &format!("of-{node}"), node).await;
    }
}

async fn one_again(cluster: &Cluster) {
    let look = async || {
        for node in NODES {
            let status = cluster.client.get(node, "/v1/status").await?.body;
            if status["leader"]["id"] != 1 || status["service_down"] != false {
                return None;
            }
        }
        Some(())
    };
    until("all follow the eldest", look).await;
    cluster.whole().await;
}

async fn everywhere(cluster: &Cluster, key: &str, value: u32) {
    for node in NODES {
        assert_eq!(document(&cluster.client, node, key).await, Some(json!(value)), "{key} on node {node}");
    }
}
