//! 503, 421 and 429 mean: certainly not applied, now or later.

use std::sync::Arc;

use tokio::task::JoinHandle;

use crate::harness::{Call, Cluster, wait_for};
use crate::load::{Tally, documents};

/// Writes to one node, all at once.
fn write_all(cluster: &Arc<Cluster>, node: u32, prefix: &str) -> Vec<JoinHandle<Tally>> {
    let write = |number| {
        let (cluster, key) = (cluster.clone(), format!("{prefix}-{number}"));
        tokio::spawn(async move {
            let mut tally = Tally::new("load");
            tally.write(&cluster, node, key, number).await;
            tally
        })
    };
    (0..50).map(write).collect()
}

/// The followers are frozen and then continue, so any message that the leader sent them may still arrive;
/// then the leader is frozen while the others elect, and continues.
#[tokio::test]
async fn what_was_refused_never_appears() {
    let cluster = Arc::new(Cluster::brisk(3).await);
    cluster.write_doc("before", 1).await;
    let mut tally = Tally::new("load");
    for round in 0..3 {
        let leader = cluster.leader().await;
        let others = cluster.others(leader);
        others.iter().for_each(|id| cluster.stop(*id));
        let mut number = 0;
        wait_for("the leader refuses writes", async || {
            number += 1;
            let key = format!("load/{round}/{number}");
            let status = tally.write(&cluster, leader, key, number).await;
            (status == Some(503)).then_some(())
        })
        .await;
        // Every write to it from here on is refused, and each is checked later.
        for more in write_all(&cluster, leader, &format!("load/{round}/more")) {
            tally.add(more.await.expect("a writer does not panic"));
        }
        others.iter().for_each(|id| cluster.cont(*id));
        cluster.ready().await;
        wait_for("writes are taken again", async || {
            number += 1;
            let key = format!("load/{round}/after-{number}");
            (tally.write(&cluster, leader, key, number).await == Some(201)).then_some(())
        })
        .await;
        let leader = cluster.leader().await;
        cluster.stop(leader);
        // They wait in its sockets.
        let late = write_all(&cluster, leader, &format!("load/{round}/late"));
        cluster.leader_among(&cluster.others(leader)).await;
        cluster.cont(leader);
        for late in late {
            tally.add(late.await.expect("a writer does not panic"));
        }
        cluster.ready().await;
    }
    println!("{}", tally.show());
    assert!(tally.refused.len() >= 100, "{}", tally.show());
    for id in cluster.ids() {
        tally.verify(&cluster, id).await;
    }
    // It must not appear later either: after every node has been restarted.
    cluster.ids().for_each(|id| cluster.kill9(id));
    cluster.ids().for_each(|id| cluster.start(id));
    cluster.ready().await;
    tally.verify(&cluster, 1).await;
    cluster.equal_states(&[1, 2, 3]).await;
}

/// A write that a lone follower refused does not wait in it until there is a leader.
#[tokio::test]
async fn a_lone_follower_keeps_nothing_for_later() {
    let cluster = Arc::new(Cluster::brisk(3).await);
    cluster.write_doc("before", 1).await;
    cluster.kill9(1);
    cluster.kill9(2);
    let mut tally = Tally::new("load");
    // Once it knows no leader, itself included, no write reaches a leader.
    wait_for("n3 knows that it is alone", async || {
        let answer = cluster.answer(3, Call::get("/v1/docs/before")).await;
        let alone = answer.status == 503 && cluster.status(3).await?["leader"].is_null();
        alone.then_some(())
    })
    .await;
    for number in 0..40 {
        let status = tally.write(&cluster, 3, format!("load/{number}"), number).await;
        assert_eq!(status, Some(503));
    }
    cluster.start(1);
    cluster.start(2);
    cluster.ready().await;
    cluster.write_doc("after", 1).await;
    assert!(documents(&cluster, 2, "load/").await.is_empty());
    cluster.equal_states(&[1, 2, 3]).await;
}
