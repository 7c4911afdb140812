//! SIGTERM makes a node hand over and end; a second SIGTERM ends it at once.

use rustix::process::Signal;

use crate::harness::{Call, Cluster, Plan, wait_for, watch_for};

/// It hands over before its port refuses connections, so the others learn of it from its own message.
#[tokio::test]
async fn a_stopped_leader_is_followed_without_a_time_out() {
    let cluster = Cluster::of(3).await;
    cluster.write_doc("k", 1).await;
    let old = cluster.leader().await;
    let epoch = cluster.status_of(old, "epoch").await;
    cluster.term(old).await;
    let next = cluster.leader().await;
    assert_ne!(next, old);
    assert_ne!(cluster.status_of(next, "epoch").await, epoch);
    assert_eq!(cluster.read_doc(next, "k", "linear").await, Some(1));
    cluster.write_doc("k", 2).await;
    cluster.start(old);
    watch_for("the nodes know why", async || {
        let told = cluster.ask(next, &Call::get("/v1/explain/leader")).await;
        let told = told.map_err(|silence| format!("{silence:?}"))?.json();
        let because = told["changes"][0]["because"].as_str().unwrap_or_default().to_string();
        if because.contains("handed over to") { Ok(()) } else { Err(told.to_string()) }
    })
    .await;
}

#[tokio::test]
async fn a_stopped_follower_changes_nothing() {
    let cluster = Cluster::of(3).await;
    let leader = cluster.leader().await;
    let epoch = cluster.status_of(leader, "epoch").await;
    let follower = cluster.others(leader)[0];
    cluster.term(follower).await;
    cluster.write_doc("k", 1).await;
    cluster.start(follower);
    cluster.is_ready(follower).await;
    assert_eq!(cluster.status_of(leader, "epoch").await, epoch);
    assert_eq!(cluster.read_doc(follower, "k", "linear").await, Some(1));
}

/// The others are frozen, so there is no heir, and after the first signal alone the node would wait for
/// one longer than this test.
#[tokio::test]
async fn a_second_signal_ends_the_process_at_once() {
    let cluster = Cluster::of(3).await;
    let leader = cluster.leader().await;
    cluster.others(leader).iter().for_each(|id| cluster.stop(*id));
    cluster.node(leader).signal(Signal::TERM);
    let status = wait_for("the process ends at another signal", async || {
        // Two signals that arrive before the first is handled count as one: so there is a third, and more.
        cluster.node(leader).signal(Signal::TERM);
        cluster.node(leader).ended()
    })
    .await;
    assert_eq!(status.code(), Some(128 + Signal::TERM.as_raw()), "the first one alone ends it with 0");
}

/// A client that keeps a connection open does not keep the process from ending.
#[tokio::test]
async fn open_connections_do_not_hold_it_up() {
    // The idle timeouts alone would not close it before the test gives up.
    let config = "limits.header_timeout_ms = 600000\nlimits.idle_timeout_ms = 600000";
    let cluster = Plan::new(1).config(config).start().await;
    let mut idle = crate::harness::Raw::connect(cluster.node(1)).await;
    idle.send(b"GET /v1/status HTTP/1.1\r\nhost: node-1\r\n").await;
    cluster.answer(1, Call::get("/livez")).await.expect(200);
    cluster.term(1).await;
    idle.read_to_end().await;
}

/// A terminal sends SIGINT.
#[tokio::test]
async fn ctrl_c_is_an_orderly_end_too() {
    let cluster = Cluster::of(1).await;
    cluster.write_doc("k", 1).await;
    cluster.node(1).signal(Signal::INT);
    let status = wait_for("the process ends", async || cluster.node(1).ended()).await;
    assert_eq!(status.code(), Some(0), "{status}");
    cluster.start(1);
    assert_eq!(cluster.read_doc(1, "k", "linear").await, Some(1));
}
