//! The seed's management routes: a call with an envelope comes from a peer, one without it from an operator,
//! and an operator's call never changes protocol state by accident.

use serde_json::{Value, json};

use crate::harness::{Answer, Call, Cluster, Plan, peer_problem, problem, wait_for};

async fn post(cluster: &Cluster, id: u32, route: &str) -> Answer {
    cluster.answer(id, Call::post(route)).await
}

/// Reads all that this leader gives after a boundary. The leader serves one such caller at a time, and may
/// notice a moment later than the caller that the previous answer is complete.
pub async fn caught_up(cluster: &Cluster, leader: u32, boundary: u64) -> Value {
    let call = Call::post("/catch_up").json(&json!({"snapshot_id": boundary}));
    let answer = wait_for("the leader has time for another reader", async || {
        let answer = cluster.answer(leader, call.clone()).await;
        (answer.status != 429).then_some(answer)
    });
    answer.await.expect(200).json()
}

#[tokio::test]
async fn heartbeat_says_that_the_node_is_alive() {
    let cluster = Cluster::of(3).await;
    for id in cluster.ids() {
        for route in ["/heartbeat", "/hearbeat"] {
            for call in [Call::post(route), Call::post(route).json(&json!({})), Call::post(route).body("{}")]
            {
                let answer = cluster.answer(id, call).await.expect(200);
                assert!(answer.body.is_empty(), "{}", answer.show());
            }
        }
    }
}

#[tokio::test]
async fn writesync_is_for_peers() {
    let cluster = Cluster::of(3).await;
    let leader = cluster.leader().await;
    let body = json!({"storage_cmd": "CreateUser", "payload": {"name": "smuggled"}});
    for id in cluster.ids() {
        let answer = cluster.answer(id, Call::post("/writesync").json(&body)).await;
        if id == leader {
            problem(&answer, 409, "leader_does_not_take_writesync");
        } else {
            problem(&answer, 403, "not_the_leader_calling");
        }
    }
    problem(&cluster.answer(1, Call::get("/v1/users/smuggled")).await, 404, "not_found");
}

#[tokio::test]
async fn declare_capability_is_a_dry_run() {
    let cluster = Cluster::of(3).await;
    let before = cluster.status_of(1, "epoch").await;
    let leader = cluster.leader().await;
    for id in cluster.ids() {
        for candidate in [1, 2, 3] {
            let call = Call::post("/declare_capability").json(&json!({"node_idx": candidate}));
            let opinion = cluster.answer(id, call).await.expect(200).json();
            assert!(opinion["approved"].is_boolean(), "{opinion}");
            assert!(opinion["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{opinion}");
            if candidate != leader && candidate != id {
                assert_eq!(opinion["approved"], false, "a living leader is not given up: {opinion}");
            }
        }
        let plain = Call::post("/declare_capability").json(&json!({"node_idx": leader}));
        let in_brackets = Call::post("/declare_capability").json(&json!({"node_idx": [leader]}));
        let of = async |call| cluster.answer(id, call).await.expect(200).json()["approved"].clone();
        assert_eq!(of(in_brackets).await, of(plain).await);
        for bad in [
            json!({}),
            json!({"node_idx": -1}),
            json!({"node_idx": "2"}),
            json!({"node_idx": [1, 2]}),
            json!({"node_idx": []}),
            json!([]),
        ] {
            problem(
                &cluster.answer(id, Call::post("/declare_capability").json(&bad)).await,
                400,
                "bad_field",
            );
        }
    }
    cluster.write_doc("k", 1).await;
    assert_eq!(cluster.status_of(1, "epoch").await, before, "nothing changed");
}

#[tokio::test]
async fn recv_elect_needs_an_envelope() {
    let cluster = Cluster::of(3).await;
    let before = cluster.status_of(2, "epoch").await;
    for id in cluster.ids() {
        for body in [json!({"approved": true}), json!({"approved": false})] {
            problem(
                &cluster.answer(id, Call::post("/recv_elect").json(&body)).await,
                400,
                "envelope_required",
            );
        }
    }
    assert_eq!(cluster.status_of(2, "epoch").await, before);
}

fn lines(answer: &Value) -> Vec<(u64, Value)> {
    let parse = |line: &Value| {
        let (kind, text) = line.as_str().expect("a line").split_once('|').expect("type|JSON");
        (kind.parse().expect("a type"), serde_json::from_str(text).expect("JSON"))
    };
    answer["logs"].as_array().expect("logs").iter().map(parse).collect()
}

#[tokio::test]
async fn catch_up_gives_the_lines_after_a_boundary() {
    let cluster = Cluster::of(3).await;
    for number in 0..25 {
        let user = json!({"name": format!("user-{number}")});
        cluster.answer(1, Call::command("CreateUser", user)).await.expect(200);
    }
    let leader = cluster.leader().await;
    let all = caught_up(&cluster, leader, 0).await;
    assert!(all.get("snapshot").is_none(), "the whole log is there: {all}");
    let all = lines(&all);
    let users = all.iter().filter(|(kind, _)| *kind == 1).map(|(_, user)| user["name"].clone());
    let expected: Vec<Value> = (0..25).map(|number| json!(format!("user-{number}"))).collect();
    assert_eq!(users.collect::<Vec<_>>(), expected);
    assert!(all.iter().any(|(kind, _)| *kind == 0 || *kind >= 100), "all types: the leader's record, too");

    let later = lines(&caught_up(&cluster, leader, 1).await);
    assert_eq!(all.len(), later.len() + 10, "ten records a boundary");
    assert_eq!(all[10..], later);
    for follower in cluster.others(leader) {
        let call = Call::post("/catch_up").json(&json!({"snapshot_id": 0}));
        let refused = problem(&cluster.answer(follower, call).await, 421, "not_leader");
        assert_eq!(refused["leader_node"]["id"], leader, "{refused}");
    }
    problem(
        &cluster.answer(leader, Call::post("/catch_up").json(&json!({"snapshot_id": "x"}))).await,
        400,
        "bad_field",
    );
}

#[tokio::test]
async fn catch_up_gives_a_snapshot_where_the_lines_are_gone() {
    let cluster = Plan::new(3).config("limits.keep = 10").start().await;
    for number in 0..80 {
        cluster.write_doc(&format!("d/{number}"), number).await;
    }
    let leader = cluster.leader().await;
    wait_for("the oldest lines are gone", async || {
        let answer = caught_up(&cluster, leader, 0).await;
        let found = answer["snapshot"].is_object() && answer["snapshot_id"].as_u64() > Some(0);
        let text = answer.to_string();
        (found && text.contains("d/0") && text.contains("d/79")).then_some(())
    })
    .await;
}

#[tokio::test]
async fn is_leader_is_true_on_one_node() {
    let cluster = Cluster::of(3).await;
    let leader = cluster.leader().await;
    for call in [Call::post("/is_leader"), Call::post("/is_leader").json(&json!({}))] {
        for id in cluster.others(leader) {
            assert_eq!(cluster.answer(id, call.clone()).await.expect(200).text().trim(), "false", "n{id}");
        }
        // The lease of a leader may lapse for a moment.
        wait_for("the leader says that it leads", async || {
            let text = cluster.answer(leader, call.clone()).await.expect(200).text();
            assert!(["true", "false"].contains(&text.trim()), "{text}");
            (text.trim() == "true").then_some(())
        })
        .await;
    }
}

/// Merging and overriding are for the mode that lets both sides of a split write.
#[tokio::test]
async fn safe_mode_does_not_merge() {
    let cluster = Cluster::of(3).await;
    cluster.write_doc("k", 1).await;
    for id in cluster.ids() {
        let answer = cluster.answer(id, Call::post("/merge_conflict").json(&json!({}))).await;
        assert_eq!(answer.status, 409, "{}", answer.show());
        problem(&answer, 409, answer.json()["code"].as_str().expect("a code"));
    }
    assert_eq!(cluster.read_doc(3, "k", "linear").await, Some(1));
}

/// Without a secret a node believes its peers; their messages must still make sense for this cluster.
#[tokio::test]
async fn an_envelope_of_another_cluster_is_refused() {
    let cluster = Cluster::of(3).await;
    let epoch = cluster.status_of(1, "epoch").await;
    let with = |route: &str, cluster: &str, from: &str, message: &str| {
        Call::post(route)
            .header("eldest-cluster", cluster)
            .header("eldest-from", from)
            .header("eldest-message", message)
    };
    let from = "2 to=1 boot=9f incarnation=4c admitted=yes format=1";
    let beat = "heartbeat term=9999.2/1 round=1 lease=0 commit=0 heir=0 boundary=0";
    let other = with("/heartbeat", "other mode=safe settings=00000000000000aa", from, beat);
    peer_problem(&cluster.answer(1, other).await, 409, "wrong_cluster");
    let timings = with("/heartbeat", "it mode=safe settings=00000000000000aa", from, beat);
    peer_problem(&cluster.answer(1, timings).await, 409, "mode_mismatch");
    for (cluster_head, from, message) in [
        ("", "", ""),
        ("it", from, beat),
        ("it mode=safe settings=zz", from, beat),
        ("it mode=safe settings=00000000000000aa", "x", beat),
        ("it mode=safe settings=00000000000000aa", from, "nonsense"),
    ] {
        for route in ["/heartbeat", "/writesync", "/declare_capability", "/recv_elect", "/catch_up"] {
            let answer = cluster.answer(1, with(route, cluster_head, from, message)).await;
            assert!((400..500).contains(&answer.status), "{route} {cluster_head:?}: {}", answer.show());
            peer_problem(&answer, answer.status, answer.json()["code"].as_str().expect("a code"));
        }
    }
    cluster.write_doc("k", 1).await;
    assert_eq!(cluster.status_of(1, "epoch").await, epoch, "somebody was unseated");
    post(&cluster, 1, "/heartbeat").await.expect(200);
}
