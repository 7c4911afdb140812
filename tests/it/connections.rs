//! More connections than a node has room for: the node keeps running, and the other nodes still reach it.

use crate::harness::{Call, Cluster, Plan, Raw};

/// The number of files that each node may open: very few, so that a test needs few
/// connections to use them all.
const FILES: u32 = 128;

/// More than the number of files that a node may have open.
const CROWD: usize = 160;

/// Open connections that send nothing.
async fn crowd(cluster: &Cluster) -> Vec<Raw> {
    let mut silent = Vec::new();
    for id in cluster.ids() {
        for _ in 0..CROWD {
            silent.push(Raw::connect(cluster.node(id)).await);
        }
    }
    silent
}

#[tokio::test]
async fn no_number_of_connections_ends_a_node() {
    let launcher = ["prlimit".to_string(), format!("--nofile={FILES}:{FILES}")];
    let plan = Plan::new(3).launchers(vec![launcher.to_vec(); 3]);
    let cluster = plan.config("snapshot_every = 2\nlimits.header_timeout_ms = 3000").start().await;
    let silent = crowd(&cluster).await;
    // The log and its snapshots need files while none are free.
    for number in 0..20 {
        let call = Call::put(format!("/v1/docs/crowded/{number}")).raw_json("1");
        let _ = cluster.ask(number % 3 + 1, &call).await;
    }
    for id in cluster.ids() {
        assert!(cluster.node(id).alive(), "n{id} has ended: {}", cluster.node(id).log_tail());
    }
    drop(silent);
    cluster.ready().await;
    cluster.write_doc("after", 1).await;
    cluster.equal_states(&[1, 2, 3]).await;
}
