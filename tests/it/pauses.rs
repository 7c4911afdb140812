//! A leader that is frozen and does not know it.

use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::json;

use crate::harness::{Call, Cluster};
use crate::load::Load;

/// The requests wait in the frozen process's sockets, so they are the first thing that it does when it goes
/// on: before any message can tell it what it missed.
#[tokio::test]
async fn a_frozen_leader_tells_nothing_of_the_past_when_it_goes_on() {
    let cluster = Arc::new(Cluster::brisk(3).await);
    cluster.write_doc("k", 1).await;
    let old = cluster.leader().await;
    cluster.stop(old);
    let others = cluster.others(old);
    let new = cluster.leader_among(&others).await;
    let put = Call::put("/v1/docs/k").raw_json("2");
    cluster.answer(new, put).await.expect(200);

    let ask = |call: Call| {
        let cluster = cluster.clone();
        tokio::spawn(async move { cluster.answer(old, call).await })
    };
    let asked_to_lead: Vec<_> = (0..8).map(|_| ask(Call::post("/is_leader"))).collect();
    let read: Vec<_> = ["leader", "linear", "leader", "linear"]
        .map(|level| ask(Call::get(format!("/v1/docs/k?level={level}"))))
        .into_iter()
        .collect();
    let unforwarded = ask(Call::get("/v1/docs/k?level=leader&forward=no"));
    // Lets the requests leave before the process goes on; nothing depends on how many do.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    cluster.cont(old);

    for answer in asked_to_lead {
        assert_eq!(answer.await.expect("an answer").expect(200).json(), json!(false));
    }
    for answer in read.into_iter().chain([unforwarded]) {
        let answer = answer.await.expect("an answer");
        match answer.status {
            200 => assert_eq!(answer.json(), json!(2), "n{old} answered from the past"),
            421 | 503 => {}
            _ => panic!("{}", answer.show()),
        }
    }
    assert_eq!(cluster.leader().await, new, "who returns follows");
    cluster.equal_states(&[1, 2, 3]).await;
}

/// Both followers pass it on to the frozen leader before they suspect it.
#[tokio::test]
async fn a_write_under_a_key_outlives_the_leader_that_it_had_left_for() {
    let cluster = Cluster::brisk(3).await;
    let frozen = cluster.leader().await;
    cluster.stop(frozen);
    let writes = cluster.others(frozen).into_iter().map(|id| {
        let put = Call::put(format!("/v1/docs/by-{id}")).json(&json!(id)).header("idempotency-key", id);
        cluster.answer(id, put)
    });
    for answer in join_all(writes).await {
        answer.expect(201);
    }
    cluster.cont(frozen);
    cluster.is_ready(frozen).await;
    cluster.equal_states(&[1, 2, 3]).await;
}

#[tokio::test]
async fn writes_go_on_while_each_leader_in_turn_is_frozen() {
    let cluster = Arc::new(Cluster::brisk(3).await);
    let load = Load::start(&cluster, "load");
    for round in 0..3 {
        let frozen = cluster.leader().await;
        cluster.stop(frozen);
        let next = cluster.leader_among(&cluster.others(frozen)).await;
        let put = Call::put(format!("/v1/docs/round-{round}")).json(&json!(round));
        cluster.answer(next, put).await.expect(201);
        cluster.cont(frozen);
        cluster.is_ready(frozen).await;
    }
    let tally = load.end().await;
    println!("{}", tally.show());
    for id in cluster.ids() {
        tally.verify(&cluster, id).await;
    }
    cluster.equal_states(&[1, 2, 3]).await;
}
