//! kill -9: one node after the other, and all at once.

use std::sync::Arc;

use crate::harness::{Cluster, tear_the_tail, watch_for};
use crate::load::{Load, documents};

#[tokio::test]
async fn each_node_in_turn_is_killed_and_returns_under_load() {
    let cluster = Arc::new(Cluster::of(3).await);
    let load = Load::start(&cluster, "load");
    for id in cluster.ids() {
        cluster.kill9(id);
        // Two of three still accept writes, whichever node led.
        cluster.write_doc(&format!("without-{id}"), id.into()).await;
        cluster.start(id);
        cluster.is_ready(id).await;
    }
    let tally = load.end().await;
    println!("{}", tally.show());
    for id in cluster.ids() {
        tally.verify(&cluster, id).await;
        for dead in cluster.ids() {
            let key = format!("without-{dead}");
            assert_eq!(cluster.read_doc(id, &key, "linear").await, Some(dead.into()));
        }
    }
    cluster.equal_states(&[1, 2, 3]).await;
}

/// Each of the four writers waits for an answer before it writes again: with nine documents, one of
/// them has had two answers.
async fn has_had_answers(cluster: &Cluster, prefix: &str) {
    watch_for("the load has had answers", async || {
        let found = documents(cluster, 1, &format!("{prefix}/")).await.len();
        if found > 8 { Ok(()) } else { Err(found.to_string()) }
    })
    .await;
}

#[tokio::test]
async fn all_lose_power_at_once_under_load_and_start_by_themselves() {
    let cluster = Arc::new(Cluster::of(3).await);
    for (round, prefix) in (0..).zip(["first", "second", "third"]) {
        let load = Load::start(&cluster, prefix);
        cluster.write_doc(&format!("round-{round}"), round).await;
        has_had_answers(&cluster, prefix).await;
        cluster.ids().for_each(|id| cluster.kill9(id));
        let tally = load.end().await;
        println!("{}", tally.show());
        cluster.ids().for_each(|id| cluster.start(id));
        cluster.ready().await;
        for id in cluster.ids() {
            tally.verify(&cluster, id).await;
            for earlier in 0..=round {
                let key = format!("round-{earlier}");
                assert_eq!(cluster.read_doc(id, &key, "linear").await, Some(earlier));
            }
        }
    }
    cluster.equal_states(&[1, 2, 3]).await;
}

#[tokio::test]
async fn torn_last_lines_on_every_disk_are_cut_and_nothing_else() {
    let cluster = Cluster::of(3).await;
    for number in 0..25 {
        cluster.write_doc(&format!("d/{number}"), number).await;
    }
    let leader = cluster.leader().await;
    let acknowledged = cluster.status_of(leader, "commit_index").await.as_u64().expect("an index");
    // A disk notes that it is admitted. It says so at once when it comes back, unless it is doubted.
    for id in cluster.ids() {
        cluster.counts(id).await;
    }
    cluster.ids().for_each(|id| cluster.kill9(id));
    for id in cluster.ids() {
        tear_the_tail(&cluster.node(id).data);
    }
    cluster.ids().for_each(|id| cluster.start(id));
    cluster.ready().await;
    for id in cluster.ids() {
        for number in 0..25 {
            assert_eq!(cluster.read_doc(id, &format!("d/{number}"), "linear").await, Some(number));
        }
        assert_eq!(cluster.status_of(id, "admitted").await, true, "a torn line is no reason for doubt");
    }
    cluster.equal_logs(&[1, 2, 3], acknowledged);
    cluster.equal_states(&[1, 2, 3]).await;
}
