//! The first promises of the README: any node takes a write, the leader dies, nothing is lost.

use serde_json::json;

use crate::harness::{Call, Cluster, Plan, wait_for};

#[tokio::test]
async fn a_write_through_any_node_survives_the_leader() {
    let cluster = Cluster::of(3).await;
    for id in cluster.ids() {
        let user = json!({"name": format!("user-{id}"), "group": "staff"});
        let answer = cluster.answer(id, Call::command("CreateUser", user)).await.expect(200);
        assert_eq!(answer.json()["result"]["name"], format!("user-{id}"), "{}", answer.show());
    }
    let leader = cluster.leader().await;
    let acknowledged = cluster.status_of(leader, "commit_index").await.as_u64().expect("an index");

    cluster.kill9(leader);
    for survivor in cluster.others(leader) {
        for id in cluster.ids() {
            let user = cluster.eventually(Call::get(format!("/v1/users/user-{id}"))).await.expect(200);
            assert_eq!(user.json()["name"], format!("user-{id}"));
        }
        cluster.is_ready(survivor).await;
    }
    cluster.equal_logs(&[1, 2, 3], acknowledged);
}

#[tokio::test]
async fn the_log_is_the_seeds_own_lines_and_the_same_on_every_disk() {
    let cluster = Cluster::of(3).await;
    let commands = [
        ("CreateUser", json!({"name": "tester", "group": "staff"})),
        ("CreateElection", json!({"name": "e", "choices": ["a", "b"]})),
        ("VoteElection", json!({"election_name": "e", "voter_name": "tester", "choice": "a"})),
        ("RemoveUser", json!({"name": "tester"})),
    ];
    let mut indexes = Vec::new();
    for (command, payload) in &commands {
        let answer = cluster.answer(1, Call::command(command, payload.clone())).await.expect(200).json();
        indexes.push(answer["index"].as_u64().expect("an index"));
    }
    let last = *indexes.last().expect("four commands");
    for id in cluster.ids() {
        // A write is committed by any majority of disks, so this node's own may get it later.
        let written = async || cluster.log_lines(id).contains_key(&last).then_some(());
        wait_for("the last record is on the disk", written).await;
    }
    cluster.equal_states(&[1, 2, 3]).await;
    cluster.equal_logs(&[1, 2, 3], last);
    for id in cluster.ids() {
        let lines = cluster.log_lines(id);
        for ((index, kind), (command, payload)) in indexes.iter().zip([1, 3, 4, 2]).zip(&commands) {
            let typed = &lines[index].typed;
            let (number, text) = typed.split_once('|').expect("type|JSON");
            assert_eq!(number, kind.to_string(), "{command}: {typed}");
            let logged: serde_json::Value = serde_json::from_str(text).expect("JSON after the type");
            for (member, value) in payload.as_object().expect("an object") {
                assert_eq!(&logged[member], value, "{command}: {typed}");
            }
        }
    }
}

#[tokio::test]
async fn the_lowest_index_leads_a_cluster_that_starts_together() {
    // A head start that a slow machine cannot use up.
    let cluster = Plan::new(3).config("timing.stagger_ms = 10000").start().await;
    assert_eq!(cluster.leader().await, 1);
    // The same holds once the first is gone: the lowest of the others leads.
    cluster.kill9(1);
    assert_eq!(cluster.leader().await, 2);
}

#[tokio::test]
async fn one_node_alone_is_a_cluster() {
    let cluster = Cluster::of(1).await;
    cluster.write_doc("a", 7).await;
    cluster.kill9(1);
    cluster.start(1);
    assert_eq!(cluster.read_doc(1, "a", "linear").await, Some(7));
}

#[tokio::test]
async fn five_nodes_bear_the_loss_of_two() {
    let cluster = Cluster::of(5).await;
    cluster.write_doc("a", 1).await;
    let first = cluster.leader().await;
    cluster.kill9(first);
    let second = cluster.leader().await;
    cluster.kill9(second);
    cluster.write_doc("b", 2).await;
    for id in cluster.running() {
        assert_eq!(cluster.read_doc(id, "a", "linear").await, Some(1));
        assert_eq!(cluster.read_doc(id, "b", "linear").await, Some(2));
    }
}
