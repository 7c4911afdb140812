//! A node at the right address that belongs to another cluster, or has other timings, does not count.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::net::TcpListener;

use crate::harness::{Call, Cluster, Plan, wait_for};

/// The trouble with n3, by the leader's status.
async fn trouble_with_3(cluster: &Cluster) -> String {
    wait_for("the leader tells what is wrong with n3", async || {
        let leader = cluster.leader_among(&[1, 2]).await;
        let status = cluster.status(leader).await?;
        let members = status["members"].as_array()?;
        let third = members.iter().find(|member| member["id"] == 3)?;
        third["trouble"].as_str().map(str::to_string)
    })
    .await
}

/// n1 and n2 continue; without n2, n3 makes no majority; once corrected, it does.
async fn does_not_count(cluster: &Cluster, expected: &str, put_right: impl AsyncFn()) {
    let trouble = trouble_with_3(cluster).await;
    assert!(trouble.contains(expected), "{trouble}");
    cluster.write_doc("k", 2).await;
    cluster.kill9(2);
    wait_for("n1 and the stranger are no majority", async || {
        let answer = cluster.answer(1, Call::put("/v1/docs/refused").raw_json("9")).await;
        assert!(!answer.ok(), "a stranger was counted: {}", answer.show());
        (answer.status == 503).then_some(())
    })
    .await;
    put_right().await;
    cluster.is_ready(3).await;
    assert_eq!(cluster.read_doc(3, "k", "linear").await, Some(2));
    cluster.start(2);
    cluster.ready().await;
    cluster.equal_states(&[1, 2, 3]).await;
}

#[tokio::test]
async fn of_another_cluster() {
    let cluster = Cluster::brisk(3).await;
    cluster.write_doc("k", 1).await;
    cluster.kill9(3);
    cluster.wipe(3);
    cluster.place(3, &cluster.topology().called("other"));
    cluster.start(3);
    does_not_count(&cluster, "wrong_cluster", async || {
        cluster.kill9(3);
        cluster.wipe(3);
        cluster.place(3, &cluster.topology());
        cluster.start(3);
        // Its disk is new, so a majority without it has to admit it.
        cluster.start(2);
        cluster.counts(3).await;
        cluster.kill9(2);
    })
    .await;
}

/// A disk belongs to one cluster: a node of another cluster does not write to it.
#[tokio::test]
async fn with_a_disk_of_another_cluster_a_node_does_not_start() {
    let cluster = Cluster::of(1).await;
    cluster.write_doc("k", 1).await;
    cluster.kill9(1);
    cluster.place(1, &cluster.topology().called("other"));
    cluster.start(1);
    let status = wait_for("it gives up", async || cluster.node(1).ended()).await;
    assert!(status.code().is_some_and(|code| code != 0), "{status}");
    let log = std::fs::read_to_string(cluster.node(1).stderr_path()).expect("a log");
    assert!(log.contains("\"other\"") && log.contains("\"it\""), "{log}");
    cluster.place(1, &cluster.topology());
    cluster.start(1);
    assert_eq!(cluster.read_doc(1, "k", "linear").await, Some(1));
}

/// A disk also belongs to one node of its cluster.
#[tokio::test]
async fn with_the_disk_of_another_node_a_node_does_not_start() {
    let cluster = Cluster::of(3).await;
    cluster.write_doc("k", 1).await;
    cluster.kill9(2);
    cluster.kill9(3);
    std::fs::rename(&cluster.node(2).data, cluster.node(3).data.with_extension("of-2"))
        .expect("a disk moves");
    std::fs::rename(&cluster.node(3).data, &cluster.node(2).data).expect("a disk moves");
    cluster.start(2);
    let status = wait_for("it gives up", async || cluster.node(2).ended()).await;
    assert!(status.code().is_some_and(|code| code != 0), "{status}");
}

#[tokio::test]
async fn with_other_timings() {
    let cluster = Cluster::brisk(3).await;
    cluster.write_doc("k", 1).await;
    cluster.kill9(3);
    cluster.configure(3, "timing.lease_ms = 250");
    cluster.start(3);
    does_not_count(&cluster, "mode_mismatch", async || {
        cluster.kill9(3);
        cluster.configure(3, "");
        cluster.start(3);
    })
    .await;
}

/// Nodes do not compare names.
#[tokio::test]
async fn a_new_name_is_no_stranger() {
    let cluster = Cluster::of(3).await;
    cluster.write_doc("k", 1).await;
    let renamed = "node-3-on-new-metal";
    cluster.kill9(3);
    cluster.place(3, &cluster.topology().renamed(3, renamed));
    cluster.start(3);
    cluster.is_ready(3).await;
    assert_eq!(cluster.status_of(3, "node").await["name"], renamed);
    cluster.kill9(2);
    assert_eq!(cluster.read_doc(3, "k", "linear").await, Some(1));
    cluster.write_doc("k", 2).await;
}

/// A dead machine is replaced by one with another address: the others learn it from their topology.
#[tokio::test]
async fn a_new_address_is_no_stranger() {
    let mut plan = Plan::new(4);
    let spare = plan.take_last();
    let cluster = plan.start().await;
    cluster.write_doc("k", 1).await;
    cluster.kill9(3);
    let moved = cluster.topology().moved(3, spare);
    for id in [1, 2] {
        cluster.place(id, &moved);
        cluster.term(id).await;
        cluster.start(id);
        cluster.is_ready(id).await;
    }
    let cluster = cluster.with_address(3, spare);
    cluster.place(3, &moved);
    it_comes_back_and_counts(&cluster).await;
}

/// The log still has its old address, where something accepts connections and never answers.
#[tokio::test]
async fn who_is_mute_in_its_old_place_does_not_keep_it_out() {
    let mut plan = Plan::new(4);
    let spare = plan.take_last();
    let cluster = plan.start().await;
    cluster.write_doc("k", 1).await;
    let moved = cluster.topology().moved(3, spare);
    let before = cluster.node(3).ip;
    cluster.kill9(3);
    let mute = TcpListener::bind((before, 9000)).await.expect("its port is free");
    let called = Arc::new(AtomicUsize::new(0));
    let callers = called.clone();
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((caller, _)) = mute.accept().await {
            open.push(caller);
            callers.fetch_add(1, Ordering::SeqCst);
        }
    });
    for id in [1, 2] {
        cluster.place(id, &moved);
        cluster.term(id).await;
        cluster.start(id);
        cluster.is_ready(id).await;
    }
    wait_for("it is called in its old place", async || (called.load(Ordering::SeqCst) > 0).then_some(()))
        .await;
    let cluster = cluster.with_address(3, spare);
    cluster.place(3, &moved);
    it_comes_back_and_counts(&cluster).await;
}

/// Node 3 starts again, and is one of the two that a write needs.
async fn it_comes_back_and_counts(cluster: &Cluster) {
    cluster.start(3);
    cluster.is_ready(3).await;
    cluster.kill9(2);
    assert_eq!(cluster.read_doc(3, "k", "linear").await, Some(1));
    cluster.write_doc("k", 2).await;
}
