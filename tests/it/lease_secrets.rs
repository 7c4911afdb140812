//! The public part of a lease is not enough to act for its holder (P53).

use serde_json::json;

use crate::harness::{Answer, Call, Cluster, problem};
use crate::seed_routes::caught_up;

/// A ttl that no test outlasts.
const LONG: u64 = 3_600_000;

const SECRET: &str = "only the holder knows";

async fn calm() -> Cluster {
    Cluster::of(3).await
}

fn order(what: &str, body: serde_json::Value) -> Call {
    Call::post(format!("/v1/roles/r/{what}")).json(&body)
}

fn forbidden(answer: &Answer) {
    problem(answer, 403, "forbidden");
}

#[tokio::test]
async fn who_reads_a_role_cannot_speak_for_its_holder() {
    let cluster = calm().await;
    let acquire = json!({"instance_id": "i", "ttl_ms": LONG});
    let own = json!({"instance_id": "i", "ttl_ms": LONG, "secret": SECRET});
    cluster.answer(2, order("acquire", own.clone())).await.expect(200);
    let seen = cluster.answer(1, Call::get("/v1/roles/r")).await.expect(200).json();
    let tenure = json!({"instance_id": seen["leader"]["instance_id"], "token": seen["token"]});
    let tied = json!({"instance_id": "i", "token": seen["token"], "tie": 5});
    let stream = format!("/v1/roles/r/tie?instance_id=i&token={}&tie=1", seen["token"]);
    for node in [1, 2] {
        for (what, body) in
            [("renew", &tenure), ("release", &tenure), ("untie", &tied), ("acquire", &acquire)]
        {
            forbidden(&cluster.answer(node, order(what, body.clone())).await);
        }
        forbidden(&cluster.answer(node, Call::post(&stream)).await);
        forbidden(&cluster.answer(node, Call::post("/v1/roles/r/hold?instance_id=i")).await);
        let wrong = order("renew", tenure.clone()).header("Eldest-Secret", "something else");
        forbidden(&cluster.answer(node, wrong).await);
        let right = order("renew", tenure.clone()).header("Eldest-Secret", SECRET);
        cluster.answer(node, right).await.expect(200);
    }
    let again = cluster.answer(3, order("acquire", own)).await.expect(200).json();
    assert_eq!((&again["outcome"], &again["token"]), (&json!("already_leader"), &seen["token"]));
    // A follower does not show its log.
    let log = caught_up(&cluster, cluster.leader().await, 0).await.to_string();
    assert!(log.contains("\\\"instance_id\\\":\\\"i\\\"") && !log.contains("secret"), "{log}");
    let release = order("release", tenure).header("Eldest-Secret", SECRET);
    cluster.answer(2, release).await.expect(200);
}

#[tokio::test]
async fn who_reads_a_process_cannot_speak_for_it() {
    let cluster = calm().await;
    let says = |identifier: &str| json!({"identifier": identifier, "ttl_ms": LONG});
    let put = |identifier: &str| Call::put("/v1/processes/p").json(&says(identifier));
    let heartbeat = || Call::post("/v1/processes/p/heartbeat");
    let shown = |call: Call| call.header("Eldest-Secret", SECRET);
    cluster.answer(2, shown(put("a"))).await.expect(201);
    for node in [1, 2] {
        for call in [put("b"), put("a"), heartbeat(), Call::delete("/v1/processes/p")] {
            forbidden(&cluster.answer(node, call).await);
        }
        cluster.answer(node, shown(heartbeat())).await.expect(200);
    }
    let changed = cluster.answer(3, shown(put("b"))).await.expect(200).json();
    assert_eq!(changed["identifier"], "b");
    cluster.answer(2, shown(Call::delete("/v1/processes/p"))).await.expect(200);
}

#[tokio::test]
async fn a_secret_is_a_text_of_so_many_bytes() {
    let cluster = Cluster::of(1).await;
    for wrong in [json!(""), json!(7), json!("x".repeat(257))] {
        let body = json!({"instance_id": "i", "secret": wrong});
        let told = problem(&cluster.answer(1, order("acquire", body)).await, 400, "bad_field");
        assert_eq!(told["field"], "secret");
    }
    let long = order("acquire", json!({"instance_id": "i"})).header("Eldest-Secret", "x".repeat(257));
    let told = problem(&cluster.answer(1, long).await, 400, "bad_field");
    assert_eq!(told["field"], "Eldest-Secret");
}
