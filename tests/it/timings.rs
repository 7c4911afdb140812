//! Timings are changed node by node: a leader relies on the leases that it was granted, even if the others
//! have other settings by now.

use std::collections::BTreeSet;

use crate::harness::{Plan, wait_for};

/// Long enough for two nodes to start and elect a leader meanwhile, on any machine.
const LONG: &str = "timing.lease_ms = 20000\ntiming.dead_after_ms = 20000";

#[tokio::test]
async fn leases_are_shortened_node_by_node() {
    let cluster = Plan::new(3).brisk().config(LONG).start().await;
    cluster.hand_to(1).await;
    cluster.write_doc("k", 1).await;
    // Nodes with different timings refuse each other: the second node that is changed makes the new majority.
    for id in [2, 3] {
        cluster.kill9(id);
        cluster.configure(id, "");
        cluster.start(id);
    }
    let (mut beside, mut waited) = (false, BTreeSet::new());
    wait_for("n2 may be relied on", async || {
        let status = cluster.status(2).await?;
        let leads = status["role"] == "leader";
        waited.extend(status["remark"].as_str().map(str::to_string));
        let (second, first) = (cluster.says_it_leads(2).await, cluster.says_it_leads(1).await);
        assert!(!(second && first), "n1 says that it leads, and n2 has said so before");
        beside |= leads && first;
        second.then_some(())
    })
    .await;
    let remarked = waited.iter().any(|remark| remark.contains("/is_leader"));
    assert!(remarked, "nobody says why n2 is not relied on: {waited:?}");
    assert!(beside, "n2 led only when n1 was not relied on any more: this shows nothing");
    cluster.kill9(1);
    cluster.configure(1, "");
    cluster.start(1);
    cluster.ready().await;
    cluster.equal_states(&[1, 2, 3]).await;
    assert_eq!(cluster.read_doc(1, "k", "linear").await, Some(1));
}
