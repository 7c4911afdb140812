//! The operator's orders: taking the service down and up, handing over, and the credential for them.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::{Call, Cluster, Plan, problem, wait_for};

const ADMIN: &str = "admin_token = \"admin-token-of-the-tests-0123456789\"";

fn admin(call: Call) -> Call {
    call.header("authorization", "Bearer admin-token-of-the-tests-0123456789")
}

#[tokio::test]
async fn service_down_is_cluster_wide_and_ends() {
    let cluster = Plan::new(3).config(ADMIN).start().await;
    cluster.write_doc("k", 1).await;
    let down = json!({"ttl_ms": 3_600_000, "reason": "moving house"});
    let down = admin(Call::post("/service_down")).json(&down);
    cluster.answer(2, down).await.expect(200);
    for id in cluster.ids() {
        let refused = cluster.answer(id, Call::put("/v1/docs/k").raw_json("2")).await;
        let refused = problem(&refused, 503, "service_down");
        assert!(refused["detail"].as_str().expect("a detail").contains("moving house"), "{refused}");
        assert_eq!(cluster.read_doc(id, "k", "linear").await, Some(1), "reads go on");
    }
    // The hold is a record: the next leader knows it.
    cluster.kill9(cluster.leader().await);
    let next = cluster.leader().await;
    let put = Call::put("/v1/docs/k").raw_json("2");
    wait_for("the next leader says the same", async || {
        let refused = cluster.answer(next, put.clone()).await;
        assert!(!refused.ok(), "the next leader has forgotten it: {}", refused.show());
        (refused.json()["code"] == "service_down").then(|| problem(&refused, 503, "service_down"))
    })
    .await;
    cluster.eventually(admin(Call::post("/service_up"))).await.expect(200);
    cluster.eventually(put).await.expect(200);
}

#[tokio::test]
async fn service_down_lapses_by_itself() {
    let cluster = Plan::new(3).config(ADMIN).start().await;
    let down = admin(Call::post("/service_down")).json(&json!({"ttl_ms": 300}));
    let began = Instant::now();
    cluster.answer(1, down).await.expect(200);
    wait_for("writes are taken again", async || {
        let answer = cluster.answer(2, Call::put("/v1/docs/k").raw_json("2")).await;
        answer.ok().then_some(())
    })
    .await;
    assert!(began.elapsed() >= Duration::from_millis(300), "it ended before its time");
    // An empty body is enough.
    cluster.answer(3, admin(Call::post("/service_down"))).await.expect(200);
    problem(&cluster.answer(1, Call::put("/v1/docs/k").raw_json("3")).await, 503, "service_down");
    cluster.answer(1, admin(Call::post("/service_up"))).await.expect(200);
    cluster.answer(1, Call::put("/v1/docs/k").raw_json("3")).await.expect(200);
}

#[tokio::test]
async fn admin_routes_need_the_credential() {
    let cluster = Plan::new(3).config(ADMIN).start().await;
    let calls = [
        Call::post("/service_down"),
        Call::post("/service_up"),
        Call::post("/elect").json(&json!({"node_idx": 2})),
        Call::post("/handoff"),
        Call::post("/merge_conflict").json(&json!({})),
    ];
    let before = cluster.status_of(1, "epoch").await;
    for id in cluster.ids() {
        for call in &calls {
            problem(&cluster.answer(id, call.clone()).await, 401, "unauthorized");
            let wrong = call.clone().header("authorization", "Bearer admin-token-of-the-tests-012345678X");
            problem(&cluster.answer(id, wrong).await, 401, "unauthorized");
        }
    }
    assert_eq!(cluster.status_of(1, "epoch").await, before);
    cluster.write_doc("k", 1).await;
}

/// Hands over with this call. A node that is not an heir at this moment, because it has
/// not caught up, becomes one.
async fn handed_over(cluster: &Cluster, call: Call, is_done: impl Fn(u32) -> bool) {
    wait_for("leadership is handed over", async || {
        let answer = cluster.answer(2, admin(call.clone())).await;
        assert!([200, 409, 503, 504].contains(&answer.status), "{}", answer.show());
        let leader = cluster.leader().await;
        assert!(!answer.ok() || is_done(leader), "n{leader} leads after {}", answer.show());
        is_done(leader).then_some(())
    })
    .await;
}

#[tokio::test]
async fn leadership_is_handed_to_whom_the_operator_names() {
    let cluster = Plan::new(3).config(ADMIN).start().await;
    cluster.write_doc("k", 1).await;
    for heir in [3_u32, 2, 1] {
        let elect = Call::post("/elect").json(&json!({"node_idx": heir}));
        handed_over(&cluster, elect, |leader| leader == heir).await;
        cluster.write_doc("k", heir.into()).await;
    }
    handed_over(&cluster, Call::post("/handoff"), |leader| leader != 1).await;
    assert_eq!(cluster.read_doc(1, "k", "linear").await, Some(1));

    let nobody = admin(Call::post("/elect")).json(&json!({"node_idx": 9}));
    let refused = cluster.answer(1, nobody).await;
    assert!([400, 404, 409].contains(&refused.status), "{}", refused.show());
    problem(&refused, refused.status, refused.json()["code"].as_str().expect("a code"));
    let no_body = cluster.answer(1, admin(Call::post("/elect"))).await;
    assert_eq!(no_body.status, 400, "{}", no_body.show());
}

#[tokio::test]
async fn leadership_is_not_handed_to_the_dead() {
    let cluster = Plan::new(3).config(ADMIN).start().await;
    let leader = cluster.leader().await;
    let dead = cluster.others(leader)[1];
    cluster.kill9(dead);
    cluster.sees(leader, dead, false).await;
    let elect = admin(Call::post("/elect")).json(&json!({"node_idx": dead}));
    // At the moment of its death it may still count as an heir: then the hand-over fails, and is tried again.
    wait_for("nobody hands over to the dead", async || {
        let answer = cluster.answer(leader, elect.clone()).await;
        assert!(!answer.ok(), "{}", answer.show());
        [409, 503].contains(&answer.status).then_some(())
    })
    .await;
    cluster.write_doc("k", 1).await;
}

#[tokio::test]
async fn a_hand_over_under_load_costs_no_acknowledged_write() {
    let cluster = std::sync::Arc::new(Plan::new(3).config(ADMIN).start().await);
    let load = crate::load::Load::start(&cluster, "load");
    for heir in [2_u32, 3, 1, 2] {
        let elect = admin(Call::post("/elect")).json(&json!({"node_idx": heir}));
        wait_for("the hand-over is done", async || {
            let answer = cluster.answer(1, elect.clone()).await;
            answer.ok().then_some(())
        })
        .await;
        cluster.write_doc(&format!("led-by-{heir}"), heir.into()).await;
    }
    let tally = load.end().await;
    println!("{}", tally.show());
    for id in cluster.ids() {
        tally.verify(&cluster, id).await;
    }
    cluster.equal_states(&[1, 2, 3]).await;
}

/// `when_stable`: the elder leads again once it has caught up and stayed.
#[tokio::test]
async fn a_returning_elder_takes_over_only_where_that_is_wanted() {
    let soon = "timing.stable_for_ms = 200";
    let cluster = Plan::new(3).config(&format!("takeover = \"when_stable\"\n{soon}")).start().await;
    cluster.write_doc("k", 1).await;
    // The elder leads, whichever node came first.
    wait_for("the elder leads", async || cluster.says_it_leads(1).await.then_some(())).await;
    cluster.kill9(1);
    assert_ne!(cluster.leader().await, 1);
    cluster.start(1);
    wait_for("the elder leads again", async || cluster.says_it_leads(1).await.then_some(())).await;
    assert_eq!(cluster.read_doc(1, "k", "linear").await, Some(1));

    let cluster = Plan::new(3).config(soon).start().await;
    cluster.hand_to(1).await;
    cluster.kill9(1);
    let next = cluster.leader().await;
    let epoch = cluster.status_of(next, "epoch").await;
    cluster.start(1);
    cluster.is_ready(1).await;
    cluster.equal_states(&[1, 2, 3]).await;
    // It has been up and caught up for several times as long as the other mode would wait.
    let until = Instant::now() + Duration::from_secs(2);
    while Instant::now() < until {
        assert_eq!(cluster.leader().await, next, "never is the default");
        assert_eq!(cluster.status_of(next, "epoch").await, epoch, "never is the default");
    }
}
