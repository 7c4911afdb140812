//! Any node takes any call, and every answer names the node that gave it.

use serde_json::json;

use crate::harness::{Answer, Call, Cluster, Plan, problem, watch_for};

#[tokio::test]
async fn every_node_takes_writes_and_reads() {
    let cluster = Cluster::of(3).await;
    for writer in cluster.ids() {
        let key = format!("/v1/docs/from-{writer}");
        cluster.answer(writer, Call::put(&key).raw_json("{\"a\": [1, 2]}")).await.expect(201);
        for reader in cluster.ids() {
            let answer = cluster.answer(reader, Call::get(&key)).await.expect(200);
            assert_eq!(answer.json(), json!({"a": [1, 2]}));
        }
    }
}

#[tokio::test]
async fn who_may_not_forward_names_the_leader() {
    let cluster = Cluster::of(3).await;
    let leader = cluster.leader().await;
    let calls = [
        Call::put("/v1/docs/k?forward=no").raw_json("1"),
        Call::get("/v1/docs/k?forward=no"),
        Call::get("/v1/docs/k?level=leader&forward=no"),
        Call::get("/v1/users?forward=no"),
        Call::post("/v1/commands?forward=no")
            .json(&json!({"storage_cmd": "CreateUser", "payload": {"name": "u"}})),
    ];
    for follower in cluster.others(leader) {
        for call in &calls {
            let refused = problem(&cluster.answer(follower, call.clone()).await, 421, "not_leader");
            assert_eq!(refused["leader_node"]["id"], leader, "{refused}");
            assert_eq!(refused["leader_node"]["url"], cluster.node(leader).url(), "{refused}");
            assert_eq!(refused["retryable"], true, "{refused}");
        }
        // Any node may serve its own state, however old.
        cluster.answer(follower, Call::get("/v1/docs?level=local&forward=no")).await.expect(200);
    }
    let put = Call::put("/v1/docs/k?forward=no").raw_json("1");
    cluster.answer(leader, put).await.expect(201);
}

fn number(answer: &Answer, header: &str) -> u64 {
    let value = answer.header(header).unwrap_or_else(|| panic!("no {header}: {}", answer.show()));
    value.parse().unwrap_or_else(|_| panic!("{header} is no number: {}", answer.show()))
}

#[tokio::test]
async fn every_answer_carries_its_receipt() {
    let cluster = Cluster::of(3).await;
    let leader = cluster.leader().await;
    for id in cluster.ids() {
        let answers = [
            cluster.answer(id, Call::get("/v1/docs/none")).await.expect(404),
            cluster.answer(id, Call::get("/v1/status")).await.expect(200),
            cluster.answer(id, Call::get("/no/such/route")).await.expect(404),
            cluster.answer(id, Call::get("/livez")).await.expect(200),
            cluster.answer(id, Call::put("/v1/docs/a").raw_json("{")).await.expect(400),
        ];
        for answer in &answers {
            number(answer, "eldest-node");
            assert_eq!(number(answer, "eldest-leader"), u64::from(leader), "{}", answer.show());
            let epoch = answer.header("eldest-epoch").expect("an epoch");
            assert!(epoch.ends_with(&format!(".{leader}")), "{}", answer.show());
            assert!(number(answer, "eldest-index") > 0, "{}", answer.show());
            assert_eq!(answer.header("eldest-acks"), None, "nothing was written: {}", answer.show());
        }

        let written =
            cluster.answer(id, Call::put(format!("/v1/docs/w{id}")).raw_json("1")).await.expect(201);
        let acks = written.header("eldest-acks").expect("acks");
        assert!(["2/3", "3/3"].contains(&acks), "{}", written.show());
        let rev = written.json()["rev"].as_str().and_then(|rev| rev.parse().ok()).expect("a log index");
        assert!(number(&written, "eldest-index") >= rev, "{}", written.show());
    }
}

#[tokio::test]
async fn a_request_keeps_its_id_on_every_way() {
    let cluster = Cluster::of(3).await;
    for id in cluster.ids() {
        for (call, status) in [
            (Call::put(format!("/v1/docs/w{id}")).raw_json("1"), 201),
            (Call::get("/v1/docs/none"), 404),
            (Call::get("/v1/status"), 200),
            (Call::post("/heartbeat"), 200),
            (Call::get("/no/such/route"), 404),
        ] {
            let named = call.clone().header("x-request-id", "my-id-17");
            let answer = cluster.answer(id, named).await;
            assert_eq!(answer.header("x-request-id"), Some("my-id-17"), "{}", answer.show());
            if status >= 400 {
                assert_eq!(answer.json()["request_id"], "my-id-17");
            } else {
                assert_eq!(answer.status, status, "{}", answer.show());
            }
            let made = cluster.answer(id, call).await;
            assert!(made.header("x-request-id").is_some_and(|id| !id.is_empty()), "{}", made.show());
        }
    }
}

/// A write that waits for every follower says so: the seed's rule.
#[tokio::test]
async fn with_ack_all_every_node_has_it_when_it_is_acknowledged() {
    // A node that gets no processor for a second is suspected, and not waited for: here it has ten seconds.
    let cluster = Plan::new(3).config("ack = \"all\"").start().await;
    // A disk that was admitted a moment ago is counted once its node has said that it knows.
    watch_for("every disk counts", async || {
        let written = cluster.answer(1, Call::put("/v1/docs/first").raw_json("1")).await;
        match written.header("eldest-acks") {
            Some("3/3") => Ok(()),
            _ => Err(written.show()),
        }
    })
    .await;
    for number in 0..10 {
        let put = Call::put(format!("/v1/docs/{number}")).raw_json("1");
        let written = cluster.answer(number % 3 + 1, put).await.expect(201);
        assert_eq!(written.header("eldest-acks"), Some("3/3"), "{}", written.show());
    }
    // A node that is known to be dead does not hold up the others.
    cluster.kill9(3);
    cluster.write_doc("after", 1).await;
}
