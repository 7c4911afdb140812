//! A leader that is frozen and does not know it.

use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::json;

use crate::harness::{Call, Cluster, Network, Plan, watch_for};
use crate::load::Load;
use crate::partitions::SECRET;

/// A frozen leader is missed after this time, and a busy machine does not make a running one look frozen.
const PATIENCE: &str = "timing.dead_after_ms = 3000";

async fn patient() -> Arc<Cluster> {
    Arc::new(Plan::new(3).brisk().config(PATIENCE).start().await)
}

/// Writes a document through one of these nodes, and retries with one key, so that it is written once.
async fn written(cluster: &Cluster, ids: &[u32], key: &str, value: u64) {
    let put = Call::put(format!("/v1/docs/{key}")).json(&json!(value)).header("idempotency-key", key);
    watch_for("a node takes a write", async || {
        let mut said = Vec::new();
        for id in ids {
            match cluster.ask(*id, &put).await {
                Ok(answer) if answer.ok() => return Ok(()),
                other => said.push(format!("n{id}: {:?}", other.map(|answer| answer.show()))),
            }
        }
        Err(said.join("\n"))
    })
    .await;
}

/// The leader is cut off while it is frozen, so no message tells it what it missed: its own lease must. The
/// requests wait in its sockets.
#[tokio::test]
async fn a_frozen_leader_tells_nothing_of_the_past_when_it_goes_on() {
    let Some(network) = Network::new(3) else { return };
    let config = format!("{SECRET}\n{PATIENCE}");
    let plan = Plan::at(network.addresses()).brisk().launchers(network.launchers()).config(&config);
    let cluster = Arc::new(plan.start().await);
    cluster.write_doc("k", 1).await;
    let old = cluster.leader().await;
    cluster.stop(old);
    let others = cluster.others(old);
    network.split(&[old], &others);
    let new = cluster.leader_among(&others).await;
    written(&cluster, &others, "k", 2).await;

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
    // Lets the requests leave before the process continues; nothing depends on how many do.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    cluster.cont(old);

    for answer in asked_to_lead {
        assert_eq!(answer.await.expect("an answer").expect(200).json(), json!(false));
    }
    for answer in read.into_iter().chain([unforwarded]) {
        let answer = answer.await.expect("an answer");
        assert!([421, 503].contains(&answer.status), "n{old} answered from the past: {}", answer.show());
    }
    network.heal();
    cluster.is_ready(old).await;
    assert_eq!(cluster.leader().await, new, "who returns follows");
    cluster.equal_states(&[1, 2, 3]).await;
}

/// Both followers forward the write to the frozen leader before they suspect it.
#[tokio::test]
async fn a_write_under_a_key_outlives_the_leader_that_it_had_left_for() {
    let cluster = patient().await;
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
    let cluster = patient().await;
    let load = Load::start(&cluster, "load");
    for round in 0..3 {
        let frozen = cluster.leader().await;
        cluster.stop(frozen);
        let others = cluster.others(frozen);
        cluster.leader_among(&others).await;
        written(&cluster, &others, &format!("round-{round}"), round).await;
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
