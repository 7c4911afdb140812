//! Clients that ask for much: their calls take nothing away from the cluster, nor from
//! clients that hold something.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::harness::{Answer, Call, Cluster, Plan, Silence, problem, wait_for};

/// Each process has nearly as much metadata as is allowed: some 12 KB.
const PROCESSES: usize = 400;
const NAMES: usize = 1500;

/// The readers on each follower, and the number of reads of each.
const READERS: usize = 16;
const READS: usize = 5;

/// The test ends long before a waiter gives up its call.
const PATIENCE: Duration = Duration::from_secs(300);

/// A ttl that no test outlasts.
const LONG: u64 = 3_600_000;

async fn register_all(cluster: &Arc<Cluster>) {
    let names: Vec<String> = (0..NAMES).map(|name| format!("n{name:04}")).collect();
    let body = json!({"identifier": "worker", "ttl_ms": LONG, "capabilities": names}).to_string();
    let (body, next) = (Arc::new(body), Arc::new(AtomicUsize::new(0)));
    let mut writers = JoinSet::new();
    for _ in 0..8 {
        let (cluster, body, next) = (cluster.clone(), body.clone(), next.clone());
        writers.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= PROCESSES {
                    return;
                }
                let call = Call::put(format!("/v1/processes/p{number}")).raw_json(&body);
                cluster.answer(1, call).await.expect(201);
            }
        });
    }
    writers.join_all().await;
}

/// The epoch that each node reports.
async fn epochs(cluster: &Cluster) -> Vec<Value> {
    let mut epochs = Vec::new();
    for id in cluster.ids() {
        epochs.push(cluster.status_of(id, "epoch").await);
    }
    epochs
}

/// A follower takes long to find a capability that no process has. Messages of its leader still get through.
#[tokio::test]
async fn who_looks_for_what_nobody_has_deposes_no_leader() {
    // This is long enough for a busy machine, and short compared with the time that
    // these reads take together.
    let patience = "timing.dead_after_ms = 2000";
    let cluster = Arc::new(Plan::new(3).brisk().config(patience).start().await);
    register_all(&cluster).await;
    let before = epochs(&cluster).await;
    let followers = cluster.others(cluster.leader().await);
    let mut readers = JoinSet::new();
    for number in 0..2 * READERS {
        let (cluster, node) = (cluster.clone(), followers[number % followers.len()]);
        readers.spawn(async move {
            let call = Call::get("/v1/processes?capability=nope&level=local");
            for _ in 0..READS {
                let answer = cluster.ask(node, &call).await;
                assert!(answer.is_ok_and(|answer| matches!(answer.status, 200 | 429)), "n{node} answers");
            }
        });
    }
    readers.join_all().await;
    assert_eq!(epochs(&cluster).await, before);
}

/// Every page says where to continue, until everything has been searched.
#[tokio::test]
async fn who_goes_on_finds_what_is_there() {
    let cluster = Arc::new(Cluster::of(1).await);
    register_all(&cluster).await;
    let last = json!({"identifier": "worker", "ttl_ms": LONG, "capabilities": ["rare"]});
    cluster.answer(1, Call::put("/v1/processes/z").json(&last)).await.expect(201);
    let (mut after, mut found, mut pages) = (String::new(), Vec::new(), 0);
    loop {
        let path = format!("/v1/processes?capability=rare&after={after}");
        let page = cluster.answer(1, Call::get(path)).await.expect(200).json();
        found.extend(page["items"].as_array().expect("items").iter().map(|item| item["id"].clone()));
        pages += 1;
        match page["next"].as_str() {
            Some(next) => after = next.to_string(),
            None => break,
        }
    }
    assert_eq!(found, [json!("z")]);
    assert!(pages > 1, "one page does not go through all of it");
}

/// Waits until the node says that all of them wait, or until one has had an answer.
async fn waits_or_is_refused(
    cluster: &Cluster,
    waiters: &mut JoinSet<Result<Answer, Silence>>,
) -> Option<Answer> {
    wait_for("it waits or is refused", async || {
        if let Some(answered) = waiters.try_join_next() {
            return Some(Some(answered.expect("no panic").expect("an answer")));
        }
        let role = cluster.answer(1, Call::get("/v1/roles/r")).await.expect(200).json();
        (role["waiting"] == waiters.len()).then_some(None)
    })
    .await
}

/// Calls that wait for roles have their own places: a client that fills them keeps no holder
/// from renewing or releasing.
#[tokio::test]
async fn who_waits_takes_no_seat_from_who_renews() {
    let cluster = Arc::new(Plan::new(1).config("[limits]\nrequests = 64\n").start().await);
    let acquire = |instance: &str, wait_ms: u64| {
        let body = json!({"instance_id": instance, "ttl_ms": LONG, "wait_ms": wait_ms});
        Call::post("/v1/roles/r/acquire").json(&body)
    };
    let held = cluster.answer(1, acquire("holder", 0)).await.expect(200).json();
    // They come one after the other: many at once would fill the places of writes for a
    // moment, before they wait.
    let mut waiters = JoinSet::new();
    let refused = loop {
        let (asked, call) = (cluster.clone(), acquire(&format!("w{}", waiters.len()), 60_000));
        waiters.spawn(async move { asked.ask(1, &call.timeout(PATIENCE)).await });
        if let Some(refused) = waits_or_is_refused(&cluster, &mut waiters).await {
            break refused;
        }
    };
    let told = problem(&refused, 429, "too_many_requests");
    assert_eq!(told["bound"], "calls that wait on this node, of one address");
    let tenure = json!({"instance_id": "holder", "token": held["token"]});
    cluster.answer(1, Call::post("/v1/roles/r/renew").json(&tenure)).await.expect(200);
    cluster.answer(1, Call::put("/v1/docs/a").raw_json("1")).await.expect(201);
    cluster.answer(1, Call::get("/v1/docs/a")).await.expect(200);
    cluster.answer(1, Call::get("/v1/docs")).await.expect(200);
    cluster.answer(1, Call::post("/v1/roles/r/release").json(&tenure)).await.expect(200);
}
