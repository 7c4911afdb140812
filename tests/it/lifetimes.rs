//! Documents that end by themselves, on real nodes (P54): with a role or a process, or by their ttl, while
//! leaders die and all nodes are restarted.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::harness::{Call, Cluster, Events, problem, wait_for};

/// A ttl that no test outlasts.
const LONG: u64 = 3_600_000;

/// Writes a document that is bound to a lease or has a ttl.
async fn put(cluster: &Cluster, key: &str, ending: &str) {
    cluster.eventually(Call::put(format!("/v1/docs/{key}?{ending}")).raw_json("1")).await.expect(201);
}

async fn acquire(cluster: &Cluster, role: &str) -> Value {
    let claim = json!({"instance_id": "i", "ttl_ms": LONG});
    let granted = cluster.eventually(Call::post(format!("/v1/roles/{role}/acquire")).json(&claim)).await;
    json!({"instance_id": "i", "token": granted.json()["token"]})
}

async fn release(cluster: &Cluster, role: &str, tenure: &Value) {
    cluster.eventually(Call::post(format!("/v1/roles/{role}/release")).json(tenure)).await.expect(200);
}

async fn reader(cluster: &Cluster, node: u32) -> Events {
    let path = "/v1/feed?kinds=change&prefix=end/&format=ndjson";
    wait_for("a node tells", async || cluster.events(node, path).await.ok()).await
}

/// The deletions that the feed reports next: key and reason.
async fn gone(feed: &mut Events, count: usize) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let mut gone = BTreeMap::new();
    while gone.len() < count {
        let event = feed.news().await;
        if event["op"] == "delete" {
            gone.insert(text(&event["key"]), text(&event["reason"]));
        }
    }
    gone
}

fn told(gone: &[(&str, &str)]) -> BTreeMap<String, String> {
    gone.iter().map(|(key, why)| (key.to_string(), why.to_string())).collect()
}

/// Checks each node's own state.
async fn only_the_one_that_stays(cluster: &Cluster) {
    for id in cluster.ids() {
        wait_for("the ends have come to every node", async || {
            let all = cluster.ask(id, &Call::get("/v1/docs?prefix=end/&level=local")).await.ok()?.json();
            let keys: Vec<&str> =
                all["items"].as_array()?.iter().filter_map(|item| item["key"].as_str()).collect();
            (keys == ["end/stays"]).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn documents_end_by_records_whoever_leads() {
    let cluster = Cluster::of(3).await;
    let leader = cluster.leader().await;
    let mut feed = reader(&cluster, cluster.others(leader)[0]).await;
    let tenure = acquire(&cluster, "r").await;
    let process = Call::put("/v1/processes/p").json(&json!({"identifier": "worker", "ttl_ms": LONG}));
    cluster.eventually(process).await;
    put(&cluster, "end/role", &format!("with=role/r&token={}", tenure["token"])).await;
    put(&cluster, "end/process", "with=process/p").await;
    put(&cluster, "end/stays", &format!("ttl_ms={LONG}")).await;
    put(&cluster, "end/soon", "ttl_ms=1000").await;
    assert_eq!(gone(&mut feed, 1).await, told(&[("end/soon", "expired")]));

    // The leader that counts the ttl dies, and the next one knows of all documents.
    put(&cluster, "end/soon", "ttl_ms=2000").await;
    cluster.kill9(leader);
    assert_ne!(cluster.leader().await, leader);
    assert_eq!(gone(&mut feed, 1).await, told(&[("end/soon", "expired")]));
    release(&cluster, "r", &tenure).await;
    cluster.eventually(Call::delete("/v1/processes/p")).await;
    let with_lease = told(&[("end/role", "lease_ended"), ("end/process", "lease_ended")]);
    assert_eq!(gone(&mut feed, 2).await, with_lease);
    let late = format!("/v1/docs/end/role?with=role/r&token={}", tenure["token"]);
    problem(&cluster.eventually(Call::put(late).raw_json("1")).await, 409, "lease_not_held");
    cluster.start(leader);
    cluster.is_ready(leader).await;
    only_the_one_that_stays(&cluster).await;
    cluster.equal_states(&[1, 2, 3]).await;

    // The records on disk bind documents, so they are bound after a restart as well.
    let tenure = acquire(&cluster, "s").await;
    put(&cluster, "end/later", &format!("with=role/s&token={}", tenure["token"])).await;
    put(&cluster, "end/soon", "ttl_ms=2000").await;
    cluster.ids().for_each(|id| cluster.kill9(id));
    cluster.ids().for_each(|id| cluster.start(id));
    cluster.ready().await;
    let kept = cluster.eventually(Call::get("/v1/docs/end/stays")).await.expect(200);
    assert_eq!(kept.header("eldest-ttl-ms"), Some("3600000"));
    let bound = cluster.eventually(Call::get("/v1/docs/end/later")).await.expect(200);
    assert_eq!(bound.header("eldest-with"), Some("role/s"));
    release(&cluster, "s", &tenure).await;
    only_the_one_that_stays(&cluster).await;
    cluster.equal_states(&[1, 2, 3]).await;
    // A record in the log ends a ttl or a role. The documents bound to the role have no record of their end.
    // Two other disks are enough for a record: that of n1 may get it later.
    wait_for("a record on the disk of n1 ends it", async || {
        let mut ends = cluster.log_lines(1).into_values().filter(|line| line.text.contains("107|"));
        ends.any(|line| line.text.contains("[[\"end/soon\",")).then_some(())
    })
    .await;
}
