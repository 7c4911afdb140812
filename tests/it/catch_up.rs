//! A node that was away comes back, by the log and by a snapshot.

use std::collections::BTreeMap;

use serde_json::json;

use crate::harness::{Call, Cluster, Plan, wait_for, watch_for};

/// Waits until the node has applied everything that the leader has committed.
async fn caught_up(cluster: &Cluster, id: u32) {
    let leader = cluster.leader().await;
    let index = cluster.status_of(leader, "commit_index").await.as_u64();
    wait_for("a node catches up", async || {
        let status = cluster.status(id).await?;
        (status["applied_index"].as_u64() >= index).then_some(())
    })
    .await;
}

/// Waits until the newest boundary that the node has reached is on its disk: it writes
/// snapshots in the background.
async fn newest_snapshot(cluster: &Cluster, id: u32) {
    watch_for("the newest boundary has a snapshot", async || {
        let status = cluster.status(id).await.ok_or("no status")?;
        let due = status["applied_index"].as_u64().map(|index| index / 10);
        if due.is_some() && status["snapshot_id"].as_u64() == due { Ok(()) } else { Err(status.to_string()) }
    })
    .await;
}

async fn write_many(cluster: &Cluster, from: u64, upto: u64) {
    for number in from..upto {
        cluster.write_doc(&format!("d/{number:04}"), number).await;
    }
}

async fn has_all(cluster: &Cluster, id: u32, upto: u64) {
    for number in (0..upto).step_by(17).chain([upto - 1]) {
        let key = format!("d/{number:04}");
        assert_eq!(cluster.read_doc(id, &key, "local").await, Some(number), "n{id}, {key}");
    }
}

#[tokio::test]
async fn by_the_log() {
    let cluster = Cluster::of(3).await;
    write_many(&cluster, 0, 20).await;
    cluster.kill9(3);
    write_many(&cluster, 20, 90).await;
    cluster.start(3);
    caught_up(&cluster, 3).await;
    has_all(&cluster, 3, 90).await;
    cluster.equal_states(&[1, 2, 3]).await;
    let commit = cluster.status_of(1, "commit_index").await.as_u64().expect("an index");
    cluster.equal_logs(&[1, 2, 3], commit);
    // A node applies a record that two other disks have, before its own disk has it.
    let has = |id: u32| {
        let lines = cluster.log_lines(id);
        (commit - 69..=commit).all(|index| lines.contains_key(&index))
    };
    wait_for("one that was always there has the newest records", async || has(1).then_some(())).await;
    wait_for("they came by the log, and no other way", async || has(3).then_some(())).await;
}

/// The log is kept as short as possible, so that the records that the absent node needs are gone.
#[tokio::test]
async fn by_a_snapshot() {
    let cluster = Plan::new(3).config("limits.keep = 20").start().await;
    write_many(&cluster, 0, 20).await;
    cluster.kill9(3);
    let away_at = *cluster.log_lines(3).keys().next_back().expect("a record");
    write_many(&cluster, 20, 320).await;
    // The two others forget the records that the third needs only when this snapshot is on their disks.
    newest_snapshot(&cluster, 1).await;
    newest_snapshot(&cluster, 2).await;
    cluster.start(3);
    caught_up(&cluster, 3).await;
    has_all(&cluster, 3, 320).await;
    cluster.equal_states(&[1, 2, 3]).await;
    let lines = cluster.log_lines(3);
    assert!(!lines.contains_key(&(away_at + 1)), "it came by the log, from {away_at} on");

    // A snapshot from the leader is as durable as records from the leader.
    cluster.kill9(3);
    cluster.start(3);
    caught_up(&cluster, 3).await;
    has_all(&cluster, 3, 320).await;
    cluster.kill9(cluster.leader().await);
    write_many(&cluster, 320, 330).await;
    caught_up(&cluster, 3).await;
    has_all(&cluster, 3, 330).await;
}

#[tokio::test]
async fn snapshots_fall_due_every_ten_records_and_carry_the_same_state() {
    let cluster = Cluster::of(3).await;
    write_many(&cluster, 0, 47).await;
    cluster.equal_states(&[1, 2, 3]).await;
    for id in cluster.ids() {
        newest_snapshot(&cluster, id).await;
    }
    // All of it is there when a whole cluster starts from its snapshots.
    cluster.ids().for_each(|id| cluster.kill9(id));
    cluster.ids().for_each(|id| cluster.start(id));
    cluster.ready().await;
    let status = cluster.answer(2, Call::get("/v1/status")).await.expect(200).json();
    assert!(status["snapshot_id"].as_u64() >= Some(4), "{status}");
    caught_up(&cluster, 2).await;
    has_all(&cluster, 2, 47).await;
    cluster.equal_states(&[1, 2, 3]).await;
}

/// All data is replaced on every node; boundaries are counted from there, and no reader
/// gets anything from before.
#[tokio::test]
async fn an_override_replaces_all_data_and_snapshots_count_anew() {
    let cluster = Cluster::of(3).await;
    write_many(&cluster, 0, 25).await;
    let leader = cluster.leader().await;
    let document = json!({"users": [{"name": "eve"}], "docs": [{"key": "k", "value": 1}]});
    let answer = cluster.answer(leader, Call::post("/override_all_data").json(&document)).await.expect(200);
    assert_eq!(answer.json()["snapshot_id"], 0);
    cluster.equal_states(&[1, 2, 3]).await;
    for id in cluster.ids() {
        let users = cluster.answer(id, Call::get("/v1/users?level=local")).await.expect(200).json();
        assert_eq!(users["items"], json!([{"name": "eve"}]), "n{id}");
        let docs = cluster.answer(id, Call::get("/v1/docs?level=local")).await.expect(200).json();
        assert_eq!(docs["items"].as_array().map(Vec::len), Some(1), "n{id}: {docs}");
        wait_for("boundaries count from there", async || {
            (cluster.status_of(id, "snapshot_id").await == 0).then_some(())
        })
        .await;
    }
    let told =
        cluster.answer(leader, Call::post("/catch_up").json(&json!({"snapshot_id": 0}))).await.expect(200);
    assert!(told.text().contains("eve") && !told.text().contains("d/0003"), "{}", told.show());
}

/// A client that writes back the answer of `/catch_up` loses nothing, no matter where between two boundaries
/// the newest write stands.
#[tokio::test]
async fn what_a_reader_is_given_may_be_put_back() {
    let cluster = Plan::new(3).config("limits.keep = 10").start().await;
    write_many(&cluster, 0, 40).await;
    let leader = cluster.leader().await;
    let all = async |id: u32| {
        let docs = cluster.answer(id, Call::get("/v1/docs?limit=1000")).await.expect(200).json();
        let items = docs["items"].as_array().expect("a list").iter();
        items.map(|item| (item["key"].to_string(), item["value"].to_string())).collect::<BTreeMap<_, _>>()
    };
    for number in 40..70 {
        write_many(&cluster, number, number + 1).await;
        let before = all(leader).await;
        assert_eq!(before.len() as u64, number + 1);
        // The number is that of no boundary so far.
        let asked = Call::post("/catch_up").json(&json!({"snapshot_id": 1_000_000}));
        let given = cluster.answer(leader, asked).await.expect(200).json();
        assert_eq!(given["logs"], json!([]), "all of it is in the snapshot");
        let boundary = &given["snapshot_id"];
        let later = Call::post("/catch_up").json(&json!({"snapshot_id": boundary}));
        let behind = cluster.answer(leader, later).await.expect(200).json();
        let lines = behind["logs"].as_array().map_or(0, Vec::len);
        // From 0 all of it is sent once more.
        let told = if *boundary == 0 { behind["skip"].clone() } else { json!(lines) };
        assert_eq!(given["skip"], told, "lines behind {boundary} that are in the snapshot");
        if number % 13 != 0 {
            continue;
        }
        let put_back = Call::post("/override_all_data").json(&given["snapshot"]);
        cluster.answer(leader, put_back).await.expect(200);
        assert_eq!(all(leader).await, before, "after {number} writes");
    }
}
