//! A retry with its Idempotency-Key answers with the first result and applies nothing twice.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use serde_json::json;

use crate::harness::{Call, Cluster, LogLine, problem, wait_for};

fn user(name: &str, key: &str) -> Call {
    Call::command("CreateUser", json!({"name": name})).header("idempotency-key", key)
}

/// The number of users created, by the records on this node's own disk up to the index that it has applied.
/// The disks of a majority are enough for a write, so the node's own may get it later.
async fn created_on_disk(cluster: &Cluster, id: u32) -> usize {
    let applied = cluster.status_of(id, "applied_index").await.as_u64().expect("an index");
    let lines: BTreeMap<u64, LogLine> = wait_for("the disk holds what is applied", async || {
        let lines = cluster.log_lines(id);
        lines.contains_key(&applied).then_some(lines)
    })
    .await;
    lines.range(..=applied).filter(|(_, line)| line.typed.starts_with("1|")).count()
}

#[tokio::test]
async fn a_replay_gives_the_first_answer() {
    let cluster = Cluster::of(3).await;
    let first = cluster.answer(1, user("a", "once")).await.expect(200).json();
    for id in cluster.ids() {
        let again = cluster.answer(id, user("a", "once")).await.expect(200).json();
        assert_eq!(again["index"], first["index"]);
        assert_eq!(again["epoch"], first["epoch"]);
        assert_eq!(again["result"], first["result"]);
    }
    // Without the key it is another call, and is judged again.
    problem(&cluster.answer(1, Call::command("CreateUser", json!({"name": "a"}))).await, 409, "exists");
    // Changes in between do not matter.
    cluster.answer(1, Call::command("RemoveUser", json!({"name": "a"}))).await.expect(200);
    let again = cluster.answer(2, user("a", "once")).await.expect(200).json();
    assert_eq!(again["index"], first["index"]);
    problem(&cluster.answer(1, Call::get("/v1/users/a")).await, 404, "not_found");
}

#[tokio::test]
async fn documents_replay_too() {
    let cluster = Cluster::of(3).await;
    let put = || Call::put("/v1/docs/k").raw_json("1").header("idempotency-key", "p");
    let first = cluster.answer(1, put()).await.expect(201);
    let other = Call::put("/v1/docs/k").raw_json("2");
    cluster.answer(1, other).await.expect(200);
    let again = cluster.answer(3, put()).await.expect(201);
    assert_eq!(again.json(), first.json());
    assert_eq!(again.header("etag"), first.header("etag"));
    assert_eq!(cluster.read_doc(1, "k", "linear").await, Some(2));

    let delete = || Call::delete("/v1/docs/k").header("idempotency-key", "d");
    let first = cluster.answer(2, delete()).await;
    assert!(first.ok(), "{}", first.show());
    let again = cluster.answer(1, delete()).await;
    assert_eq!(again.status, first.status, "{}", again.show());
}

#[tokio::test]
async fn a_key_belongs_to_one_body() {
    let cluster = Cluster::of(3).await;
    cluster.answer(1, user("a", "k")).await.expect(200);
    problem(&cluster.answer(2, user("b", "k")).await, 422, "idempotency_key_reused");
    let put = Call::put("/v1/docs/k").raw_json("1").header("idempotency-key", "k");
    problem(&cluster.answer(3, put).await, 422, "idempotency_key_reused");
    problem(&cluster.answer(1, Call::get("/v1/users/b")).await, 404, "not_found");
}

/// A call that changed nothing is not remembered: after a refusal it is judged again.
#[tokio::test]
async fn a_rejection_is_not_remembered() {
    let cluster = Cluster::of(3).await;
    cluster.answer(1, user("a", "first")).await.expect(200);
    problem(&cluster.answer(1, user("a", "second")).await, 409, "exists");
    cluster.answer(1, Call::command("RemoveUser", json!({"name": "a"}))).await.expect(200);
    cluster.answer(2, user("a", "second")).await.expect(200);
}

#[tokio::test]
async fn over_a_failover_it_is_applied_once() {
    let cluster = Cluster::of(3).await;
    for round in 0..3 {
        let leader = cluster.leader().await;
        let (name, key) = (format!("user-{round}"), format!("key-{round}"));
        let call = user(&name, &key);
        let first = cluster.answer(leader, call.clone()).await.expect(200).json();
        cluster.kill9(leader);
        for id in cluster.others(leader) {
            let again = wait_for("the replay is answered", async || {
                let answer = cluster.ask(id, &call).await.ok()?;
                (answer.status == 200).then(|| answer.json())
            })
            .await;
            assert_eq!(again["index"], first["index"], "applied twice");
            assert_eq!(again["result"], first["result"]);
        }
        cluster.start(leader);
        cluster.is_ready(leader).await;
    }
    cluster.equal_states(&[1, 2, 3]).await;
    for id in cluster.ids() {
        assert_eq!(created_on_disk(&cluster, id).await, 3, "n{id}: each exactly once");
    }
}

async fn repeat_until_answered(cluster: &Cluster, leader: u32, number: usize) {
    let call = user(&format!("user-{number}"), &format!("key-{number}"));
    // The same call is repeated until there is an answer, no matter how the first one ended.
    let first = cluster.ask(leader, &call).await;
    let answer = wait_for("an answer", async || {
        let running = cluster.running();
        let answer = cluster.ask(running[number % running.len()], &call).await.ok()?;
        (![421, 429, 503, 504].contains(&answer.status)).then_some(answer)
    })
    .await
    .expect(200);
    if let Some(first) = first.ok().filter(|first| first.status == 200) {
        assert_eq!(answer.json()["index"], first.json()["index"]);
    }
}

/// The leader dies while calls are under way: their outcome is unknown until a retry is answered.
#[tokio::test]
async fn calls_cut_off_by_a_crash_are_safe_to_repeat() {
    let cluster = Cluster::of(3).await;
    let leader = cluster.leader().await;
    let calls = (0..24).map(|number| repeat_until_answered(&cluster, leader, number));
    let crash = async {
        tokio::task::yield_now().await;
        cluster.kill9(leader);
    };
    tokio::join!(join_all(calls), crash);
    let survivor = cluster.leader().await;
    assert_eq!(created_on_disk(&cluster, survivor).await, 24, "each exactly once");
}
