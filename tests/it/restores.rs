//! All data is replaced by a document, or a document is merged in, while something else happens (P46); and
//! the answer to a reader that has nothing (P47).

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Answer, Call, Cluster, Plan, problem, wait_for};
use crate::seed_routes::caught_up;

const AVAILABLE: &str =
    "mode = \"available\"\ncluster_secret = \"the secret of these tests, long enough to pass\"\n";

/// It only makes a test fail: a node bounds the time of such a call by its steps, not by
/// the time for other answers.
const RESTORE_MOST: Duration = Duration::from_secs(120);

/// Sends the document, however long that takes.
fn restore(route: &str) -> Call {
    Call::post(route).json(&large()).timeout(RESTORE_MOST)
}

/// A document of a few hundred parts.
fn large() -> Value {
    let value = "v".repeat(64 << 10);
    let docs = (0..1_000).map(|number| json!({"key": format!("new/{number:04}"), "value": value}));
    json!({"users": [{"name": "eve"}], "docs": docs.collect::<Vec<_>>()})
}

async fn index(cluster: &Cluster, id: u32) -> u64 {
    cluster.status_of(id, "last_index").await.as_u64().expect("an index")
}

/// Sends the document to the leader, and runs `what` once a few of its parts are in the log.
async fn in_the_middle<F: Future>(
    cluster: &Arc<Cluster>,
    leader: u32,
    route: &'static str,
    what: impl FnOnce() -> F,
) -> Answer {
    let before = index(cluster, leader).await;
    let (sending, call) = (cluster.clone(), restore(route));
    let restoring = tokio::spawn(async move { sending.answer(leader, call).await });
    wait_for("parts of the document are in the log", async || {
        (index(cluster, leader).await >= before + 3).then_some(())
    })
    .await;
    what().await;
    restoring.await.expect("it ends")
}

async fn docs_of_the_document(cluster: &Cluster, id: u32) -> usize {
    let answer = cluster.answer(id, Call::get("/v1/docs?prefix=new/&limit=1")).await.expect(200);
    answer.json()["items"].as_array().map_or(0, Vec::len)
}

/// The answer matches the outcome, snapshots are still taken, and the document can be sent again.
async fn is_all_or_nothing(cluster: &Cluster, answer: &Answer, route: &'static str) {
    println!("{}", answer.show());
    assert!([200, 421, 503, 504].contains(&answer.status), "{}", answer.show());
    let leader = cluster.leader().await;
    let there = docs_of_the_document(cluster, leader).await > 0;
    assert!(there || answer.status != 200, "acknowledged, and not in place");
    assert!(!there || [200, 504].contains(&answer.status), "refused, and in place");
    let before = cluster.status_of(leader, "snapshot_id").await.as_u64();
    for number in 0..25 {
        cluster.write_doc(&format!("later/{number}"), number).await;
    }
    wait_for("snapshots go on", async || {
        (cluster.status_of(leader, "snapshot_id").await.as_u64() > before).then_some(())
    })
    .await;
    let again = cluster.answer(cluster.leader().await, restore(route)).await;
    assert!(again.ok(), "{}", again.show());
    assert!(docs_of_the_document(cluster, cluster.leader().await).await > 0);
    let all: Vec<u32> = cluster.ids().collect();
    cluster.equal_states(&all).await;
}

pub async fn hand_over(cluster: &Cluster, heir: u32) {
    wait_for("leadership is handed over", async || {
        let elect = Call::post("/elect").json(&json!({"node_idx": heir}));
        cluster.answer(1, elect).await.ok().then_some(())
    })
    .await;
}

#[tokio::test]
async fn leadership_changes_and_comes_back_in_the_middle() {
    for (config, route) in [("", "/override_all_data"), (AVAILABLE, "/merge_conflict")] {
        let cluster = Arc::new(Plan::new(3).config(config).start().await);
        cluster.write_doc("old", 1).await;
        let leader = cluster.leader().await;
        let answer = in_the_middle(&cluster, leader, route, async || {
            for heir in [cluster.others(leader)[0], leader] {
                hand_over(&cluster, heir).await;
            }
        })
        .await;
        is_all_or_nothing(&cluster, &answer, route).await;
    }
}

#[tokio::test]
async fn the_service_goes_down_in_the_middle_and_stays_down() {
    for (config, route) in [("", "/override_all_data"), (AVAILABLE, "/merge_conflict")] {
        let cluster = Arc::new(Plan::new(3).config(config).start().await);
        cluster.write_doc("old", 1).await;
        let leader = cluster.leader().await;
        let answer = in_the_middle(&cluster, leader, route, async || {
            let down = Call::post("/service_down").json(&json!({"ttl_ms": 3_600_000}));
            cluster.eventually(down).await.expect(200);
        })
        .await;
        if answer.status != 200 {
            problem(&answer, 503, "service_down");
        }
        cluster.eventually(Call::post("/service_up")).await.expect(200);
        is_all_or_nothing(&cluster, &answer, route).await;
    }
}

#[tokio::test]
async fn the_leader_dies_in_the_middle() {
    let cluster = Arc::new(Cluster::of(3).await);
    cluster.write_doc("old", 1).await;
    let leader = cluster.leader().await;
    let before = index(&cluster, leader).await;
    let (sending, call) = (cluster.clone(), restore("/override_all_data"));
    let restoring =
        tokio::spawn(async move { sending.ask(leader, &call).await.ok().map(|answer| answer.status) });
    wait_for("parts of the document are in the log", async || {
        (index(&cluster, leader).await >= before + 3).then_some(())
    })
    .await;
    cluster.kill9(leader);
    let told = restoring.await.expect("it ends");
    let next = cluster.leader().await;
    let there = docs_of_the_document(&cluster, next).await > 0;
    assert!(there || told != Some(200), "acknowledged, and not in place");
    cluster.start(leader);
    cluster.is_ready(leader).await;
    let again = cluster.answer(next, restore("/override_all_data")).await;
    assert!(again.ok(), "{}", again.show());
    cluster.equal_states(&[1, 2, 3]).await;
}

/// After an override the log does not have everything.
#[tokio::test]
async fn a_reader_that_has_nothing_is_given_everything() {
    let cluster = Cluster::of(3).await;
    cluster.write_doc("old", 1).await;
    let leader = cluster.leader().await;
    let document = json!({"users": [{"name": "eve"}], "docs": [{"key": "k", "value": 1}]});
    cluster.answer(leader, Call::post("/override_all_data").json(&document)).await.expect(200);
    cluster.write_doc("later", 2).await;
    let given = caught_up(&cluster, leader, 0).await;
    assert_eq!(given["snapshot_id"], 0, "{given}");
    assert_eq!(given["snapshot"]["users"], json!([{"name": "eve"}]));
    let keys = given["snapshot"]["docs"].as_array().expect("a list").iter().map(|doc| doc["key"].clone());
    assert_eq!(keys.collect::<Vec<_>>(), [json!("k"), json!("later")]);
    assert_eq!(given["logs"], json!([]), "all of it is in the snapshot");
    // A boundary that has not been reached is not one of this log.
    let given = caught_up(&cluster, leader, 1_000).await;
    assert!(given["snapshot"].is_object(), "{given}");
    for number in 0..30 {
        cluster.write_doc(&format!("d/{number}"), number).await;
    }
    let given = caught_up(&cluster, leader, 1).await;
    assert!(given.get("snapshot").is_none(), "its lines are there: {given}");
    // The same comes from a process that has only its disk.
    cluster.kill9(leader);
    cluster.start(leader);
    cluster.is_ready(leader).await;
    let leader = cluster.leader().await;
    let given = caught_up(&cluster, leader, 0).await;
    let text = given.to_string();
    assert!(given["snapshot"].is_object() && text.contains("eve") && text.contains("d/29"), "{text}");
}
