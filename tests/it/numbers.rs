//! Messages that no node should send, and damage to disks: the greatest numbers, messages that would end a
//! node, and clusters in which no disk is admitted any more (P27, P50, P51).

use std::fs;

use crate::harness::{Call, Cluster, Plan, problem, wait_for};

const MOST: u64 = (1 << 53) - 1;

/// Without a secret any process can speak in a node's name.
async fn say(cluster: &Cluster, from: u32, to: u32, message: &str) -> u16 {
    let head = format!("it mode=safe settings={}", cluster.node(to).settings_digest());
    let sender = format!("{from} to={to} boot=77 incarnation=1 admitted=yes format=1");
    let call = Call::post("/heartbeat").header("eldest-cluster", head);
    let call = call.header("eldest-from", sender).header("eldest-message", message);
    cluster.answer(to, call).await.status
}

/// The three calls that ended a cluster forever, and similar ones.
#[tokio::test]
async fn an_epoch_without_end_ends_nothing() {
    let cluster = Cluster::of(3).await;
    cluster.write_doc("before", 1).await;
    for to in cluster.ids() {
        let from = to % 3 + 1;
        for number in [MOST + 1, u64::MAX] {
            let message = format!("stale term={number}.1/1");
            assert_eq!(say(&cluster, from, to, &message).await, 400, "{message}");
        }
        for message in [
            format!("stale term={MOST}.1/1"),
            format!("resigned epoch={MOST}.{from}"),
            format!("notmember ask=1 as_of={MOST} last={MOST}.1@{MOST}"),
        ] {
            let status = say(&cluster, from, to, &message).await;
            assert!((200..300).contains(&status), "{status} to {message}");
        }
    }
    cluster.write_doc("after", 1).await;
    for id in cluster.ids() {
        assert!(cluster.node(id).alive(), "n{id} is gone");
        cluster.is_ready(id).await;
    }
    let leader = cluster.leader().await;
    cluster.kill9(leader);
    cluster.leader().await;
    cluster.write_doc("later", 1).await;
    cluster.start(leader);
    cluster.is_ready(leader).await;
    cluster.equal_states(&[1, 2, 3]).await;
}

/// The only node of a cluster, and all nodes of a larger one, lose the file with their promises: the
/// status says what to type.
#[tokio::test]
async fn no_disk_counts_and_an_operator_says_so() {
    for nodes in [1, 3] {
        let cluster = Plan::new(nodes).start().await;
        cluster.write_doc("kept", 1).await;
        for id in cluster.ids() {
            cluster.kill9(id);
            fs::remove_file(cluster.node(id).data.join("vote")).expect("a promise file");
        }
        cluster.ids().for_each(|id| cluster.start(id));
        for id in cluster.ids() {
            let remark = wait_for("a node says what to type", async || {
                let remark = cluster.status(id).await?["remark"].as_str()?.to_string();
                remark.contains("eldest serve --trust-disk").then_some(remark)
            })
            .await;
            assert!(remark.contains("may have lost acknowledged records"), "{remark}");
        }
        let refused = cluster.answer(1, Call::put("/v1/docs/k").raw_json("1")).await;
        problem(&refused, 503, "catching_up");
        wait_for("whoever calls is told what to type, too", async || {
            let refused = cluster.ask(1, &Call::put("/v1/docs/k").raw_json("1")).await.ok()?;
            refused.json()["detail"].as_str()?.contains("--trust-disk").then_some(())
        })
        .await;
        for id in cluster.ids() {
            cluster.kill9(id);
            cluster.node(id).start_with(&["--trust-disk"]);
        }
        cluster.ready().await;
        for id in cluster.ids() {
            assert_eq!(cluster.read_doc(id, "kept", "linear").await, Some(1), "n{id} of {nodes}");
            // It answers reads, through the leader, before its own disk is admitted.
            cluster.counts(id).await;
        }
        cluster.write_doc("after", 1).await;
    }
}
