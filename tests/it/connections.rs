//! More connections than a node has room for: it goes on, and whoever has to reach it does.

use crate::harness::{Call, Cluster, Plan, Raw};

/// Files that each node may open: next to nothing, so that a test needs few connections to take them all.
const FILES: u32 = 128;

/// More than a node may have open altogether.
const CROWD: usize = 160;

/// Open connections without a word.
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
    // The log and its snapshots need files of their own while there are none to be had.
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
