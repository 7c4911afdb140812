//! `/v1/explain` and `eldest why`: their answers are compared with what the test has done.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::harness::{Call, Cluster, Plan, eldest, problem, wait_for, watch_for};
use crate::roles::{acquire, grant, line_is, patient};

async fn explained(cluster: &Cluster, node: u32) -> Value {
    cluster.answer(node, Call::get("/v1/explain/leader")).await.expect(200).json()
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(|node| node["name"].as_str()).collect()
}

fn said(change: &Value) -> Vec<&str> {
    let steps = change["steps"].as_array().into_iter().flatten();
    steps.filter_map(|step| step["event"].as_str()).collect()
}

/// The output of `eldest why` at that node, once it contains all of these parts.
async fn why_says(cluster: &Cluster, node: u32, words: &[&str], parts: &[&str]) -> String {
    watch_for("why tells it all", async || {
        let text = why(cluster, node, words);
        if parts.iter().all(|part| text.contains(part)) { Ok(text) } else { Err(text) }
    })
    .await
}

fn why(cluster: &Cluster, node: u32, words: &[&str]) -> String {
    let url = cluster.node(node).url();
    let output = eldest(&[&["why"], words, &["--url", &url]].concat());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// The explanation, once that node leads, every live node has noted it, and only these have not answered: a
/// busy node may miss the second that it has.
async fn told_that_leads(cluster: &Cluster, asked: u32, leader: u32, silent: &[&str]) -> Value {
    watch_for("the change of leader is told", async || {
        let told = explained(cluster, asked).await;
        let noted =
            told["as_seen"].as_array().is_some_and(|seen| seen.iter().all(|one| one["leader"] == leader));
        let is_told =
            noted && told["changes"][0]["leader"]["id"] == leader && names(&told["silent"]) == silent;
        if is_told { Ok(told) } else { Err(told.to_string()) }
    })
    .await
}

/// True if this node has written the epoch into its chronicle: a separate thread writes it, and a killed
/// process loses the lines that are not written yet.
pub(crate) fn has_written(cluster: &Cluster, node: u32, epoch: &Value) -> bool {
    let text = std::fs::read_to_string(cluster.node(node).data.join("chronicle")).unwrap_or_default();
    text.contains(&epoch.to_string())
}

#[tokio::test]
async fn a_failover_is_foretold_told_and_remembered() {
    // A head start that a busy machine cannot use up: the elder leads, and then the next one after it.
    let cluster = Plan::new(3).config("timing.stagger_ms = 10000").start().await;
    let before = wait_for("all three are ready", async || {
        let told = told_that_leads(&cluster, 3, 1, &[]).await;
        (told["next"][0]["next"]["id"] == 2).then_some(told)
    })
    .await;
    assert_eq!(before["next"][0]["says"], "if node-1 died, node-2 would lead");
    assert_eq!(before["next"][1]["next"], Value::Null, "one of three is no majority");

    cluster.kill9(1);
    let after = told_that_leads(&cluster, 3, 2, &["node-1"]).await;
    let change = &after["changes"][0];
    assert!(change["because"].as_str().is_some_and(|because| because.contains("gave up node-1")), "{change}");
    assert!(change["leaderless_ms"].is_u64(), "{change}");
    for step in ["suspected", "claimed", "approved", "backed", "opened", "following"] {
        assert!(said(change).contains(&step), "{step} is no step of {change}");
    }
    let text = why_says(&cluster, 2, &[], &["\nBecause ", "gave up node-1"]).await;
    assert!(text.starts_with("node-2 leads, in epoch "), "{text}");

    let epoch = change["epoch"].clone();
    wait_for("it is written down", async || {
        [2, 3].into_iter().any(|id| has_written(&cluster, id, &epoch)).then_some(())
    })
    .await;
    for id in [2, 3] {
        cluster.kill9(id);
    }
    for id in [1, 2, 3] {
        cluster.start(id);
    }
    cluster.ready().await;
    watch_for("it is remembered", async || {
        let told = explained(&cluster, 3).await;
        let mut changes = told["changes"].as_array().expect("a list").iter();
        if changes.any(|one| one["epoch"] == epoch) { Ok(()) } else { Err(format!("no {epoch} in {told}")) }
    })
    .await;
}

#[tokio::test]
async fn why_nobody_leads_is_said_by_whoever_is_left() {
    let cluster = Cluster::of(3).await;
    cluster.kill9(1);
    cluster.kill9(2);
    let told = wait_for("node 3 says why nobody leads", async || {
        let told = explained(&cluster, 3).await;
        (!told["nobody_leads_because"].as_array()?.is_empty()).then_some(told)
    })
    .await;
    assert_eq!(told["leader"], Value::Null);
    let says = told["nobody_leads_because"][0]["says"].as_str().expect("a text");
    assert!(says.contains("node-1") && says.contains("node-2"), "{says}");
    assert_eq!(names(&told["silent"]), ["node-1", "node-2"]);
    let text = why_says(&cluster, 3, &["leader"], &["There is no leader now"]).await;
    assert!(text.starts_with("There is no leader now"), "{text}");
    why_says(&cluster, 3, &["node/node-1"], &["it does not answer"]).await;
    let unknown = eldest(&["why", "node/node-9", "--url", &cluster.node(3).url()]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("node-1, node-2, node-3"));
}

#[tokio::test]
async fn a_role_tells_who_had_it_and_why_that_ended() {
    let cluster = Cluster::of(3).await;
    let first = grant(cluster.answer(2, acquire("x/y", "ann", json!({"ttl_ms": 1000}))).await);
    let path = "/v1/explain/roles/x/y";
    let second = grant(cluster.answer(3, patient("x/y", "bob", json!({}))).await);
    let told = cluster.answer(3, Call::get(path)).await.expect(200).json();
    assert_eq!(told["holder"], json!({"instance_id": "bob", "token": second}), "{told}");
    assert_eq!(told["waiting"], 0, "{told}");
    let turns: Vec<(&str, &str, u64)> = told["turns"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|turn| {
            let text = |name: &str| turn[name].as_str().expect("a text");
            (text("event"), text("instance_id"), turn["token"].as_u64().expect("a token"))
        })
        .collect();
    assert_eq!(turns, [("acquired", "ann", first), ("lost", "ann", first), ("acquired", "bob", second)]);
    let text = why_says(&cluster, 1, &["role/x/y"], &["ann did not renew it in time"]).await;
    assert!(text.starts_with(&format!("bob holds x/y with token {second}.")), "{text}");

    for id in [1, 2, 3] {
        cluster.kill9(id);
        cluster.start(id);
    }
    cluster.ready().await;
    let again = cluster.answer(2, Call::get(path)).await.expect(200).json();
    assert_eq!(again["turns"].as_array().map(Vec::len), Some(3), "it outlives all processes: {again}");
    problem(&cluster.answer(2, Call::get("/v1/explain/roles/")).await, 404, "not_found");
}

#[tokio::test]
async fn a_role_tells_who_would_get_it_next() {
    let cluster = Arc::new(Cluster::of(3).await);
    let told = async || cluster.answer(2, Call::get("/v1/explain/roles/r")).await.expect(200).json();
    let token = grant(cluster.answer(1, acquire("r", "ann", json!({}))).await);
    assert_eq!(told().await["waiters"], json!([]));
    // Each comes when the one before is in the queue, and a higher priority comes first all the same.
    for (count, (instance, priority)) in (1..).zip([("bob", 0), ("cid", 0), ("dan", 7)]) {
        let (cluster_of_call, call) =
            (cluster.clone(), patient("r", instance, json!({"priority": priority})));
        tokio::spawn(async move { cluster_of_call.answer(3, call).await });
        line_is(&cluster, count).await;
    }
    let names: Vec<Value> = told().await["waiters"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| one["instance_id"].clone())
        .collect();
    assert_eq!(names, [json!("dan"), json!("bob"), json!("cid")]);
    assert_eq!(told().await["waiters"][0], json!({"instance_id": "dan", "priority": 7}));
    let local = cluster.answer(2, Call::get("/v1/explain/roles/r?level=local")).await.expect(200).json();
    assert_eq!((&local["waiting"], &local["waiters"]), (&Value::Null, &Value::Null));
    let release = Call::post("/v1/roles/r/release").json(&json!({"instance_id": "ann", "token": token}));
    cluster.answer(1, release).await.expect(200);
    wait_for("the first of them has it", async || {
        (told().await["holder"]["instance_id"] == "dan").then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_role_tells_how_it_is_held() {
    let cluster = Cluster::of(3).await;
    let path = "/v1/explain/roles/r";
    let held_by = async |node: u32, by: &str, at: Option<u32>| {
        let at = at.map(|id| json!({"id": id, "name": format!("node-{id}")}));
        let wanted = json!({"by": by, "node": at});
        // A busy node may answer too late: then it is not known.
        watch_for("it tells how the role is held", async || {
            let told = cluster.answer(node, Call::get(path)).await.expect(200).json();
            if told["held_by"] == wanted { Ok(()) } else { Err(told.to_string()) }
        })
        .await;
    };
    // The stream is at a node that leads, and at one that does not.
    for node in cluster.ids() {
        let ttl_ms = 3_600_000;
        let mut stream = cluster
            .posted(node, &format!("/v1/roles/r/hold?instance_id=ann&ttl_ms={ttl_ms}"))
            .await
            .expect("a stream");
        let token = stream.event().await["token"].clone();
        held_by(2, "stream", Some(node)).await;
        why_says(&cluster, 3, &["role/r"], &[&format!("by a stream at node-{node}.")]).await;
        let local =
            cluster.answer(node, Call::get("/v1/explain/roles/r?level=local")).await.expect(200).json();
        assert_eq!(local["streams"], json!([{"token": token, "tie": null}]), "{local}");
        assert_eq!((&local["node"], &local["held_by"]), (&json!(node), &Value::Null), "{local}");
        drop(stream);
        let token = grant(cluster.answer(1, patient("r", "bob", json!({"ttl_ms": ttl_ms}))).await);
        held_by(1, "calls", None).await;
        let tie = format!("/v1/roles/r/tie?instance_id=bob&token={token}&tie=1&ttl_ms={ttl_ms}&grace_ms=0");
        let mut tied = cluster.posted(node, &tie).await.expect("a stream");
        tied.event().await;
        held_by(3, "tie", Some(node)).await;
        drop(tied);
        wait_for("it is free", async || {
            let told = cluster.answer(1, Call::get(path)).await.expect(200).json();
            (told["holder"].is_null() && told["held_by"].is_null()).then_some(())
        })
        .await;
    }
}

/// The explanation of the role `r`, once it says this about how the role is held.
async fn is_held(cluster: &Cluster, held_by: Value) {
    watch_for("it tells how the role is held", async || {
        let told = cluster.answer(2, Call::get("/v1/explain/roles/r")).await.expect(200).json();
        if told["held_by"] == held_by { Ok(()) } else { Err(told.to_string()) }
    })
    .await;
}

fn calls() -> Value {
    json!({"by": "calls", "node": null})
}

#[tokio::test]
async fn only_the_newest_tie_counts_and_only_while_its_holder_names_it() {
    let cluster = Cluster::of(3).await;
    let ttl_ms = 3_600_000;
    let token = grant(cluster.answer(1, acquire("r", "ann", json!({"ttl_ms": ttl_ms}))).await);
    let tie = async |node: u32, tie: u64| {
        let path =
            format!("/v1/roles/r/tie?instance_id=ann&token={token}&tie={tie}&ttl_ms={ttl_ms}&grace_ms=0");
        let mut stream = cluster.posted(node, &path).await.expect("a stream");
        stream.event().await;
        stream
    };
    let tied = |node: u32| json!({"by": "tie", "node": {"id": node, "name": format!("node-{node}")}});
    let old = tie(1, 1).await;
    is_held(&cluster, tied(1)).await;
    let new = tie(3, 2).await;
    is_held(&cluster, tied(3)).await;
    let renew = Call::post("/v1/roles/r/renew").json(&json!({"instance_id": "ann", "token": token}));
    cluster.answer(2, renew).await.expect(200);
    is_held(&cluster, calls()).await;
    let newest = tie(2, 3).await;
    is_held(&cluster, tied(2)).await;
    // A new leader does not know of the tie until the holder names it again.
    let leader = cluster.leader().await;
    let heir = cluster.others(leader)[0];
    cluster.answer(2, Call::post("/elect").json(&json!({"node_idx": heir}))).await.expect(200);
    is_held(&cluster, calls()).await;
    drop((old, new, newest));
}

#[tokio::test]
async fn how_a_role_is_held_is_not_known_while_a_node_does_not_answer() {
    let cluster = Cluster::of(3).await;
    grant(cluster.answer(1, acquire("r", "ann", json!({"ttl_ms": 3_600_000}))).await);
    is_held(&cluster, calls()).await;
    let leader = cluster.leader().await;
    let other = cluster.others(leader).into_iter().find(|id| *id != 2).expect("another node");
    cluster.kill9(other);
    is_held(&cluster, Value::Null).await;
}

#[tokio::test]
async fn a_refused_call_is_found_by_its_id_at_any_node() {
    let cluster = Cluster::of(3).await;
    let refused = Call::command("CreateUser", json!({"name": ""})).header("X-Request-Id", "why-1");
    problem(&cluster.answer(2, refused).await, 400, "bad_field");
    watch_for("the refusal is found", async || {
        let told = cluster.answer(3, Call::get("/v1/explain/calls/why-1")).await.expect(200).json();
        let refusals = told["refused"].as_array().expect("a list");
        if refusals.iter().any(|one| one["code"] == "bad_field") { Ok(()) } else { Err(told.to_string()) }
    })
    .await;
    why_says(&cluster, 1, &["call/why-1"], &["refused POST /v1/commands with 400 (bad_field)"]).await;
    let nobody = why(&cluster, 1, &["call/nobody"]);
    assert!(nobody.starts_with("No node knows of a refusal"), "{nobody}");
}

#[tokio::test]
async fn a_node_is_told_by_itself_and_then_by_the_others() {
    let cluster = Cluster::of(3).await;
    let parts = ["node-2 and node-3 reach it", "it reaches node-2 and node-3"];
    let text = why_says(&cluster, 3, &["node/node-1"], &parts).await;
    assert!(text.starts_with(&format!("node-1 ({}):", cluster.node(1).url())), "{text}");
    assert!(text.contains("it leads, in epoch ") || text.contains("it follows node-"), "{text}");
    assert!(!text.contains("did not answer"), "{text}");

    cluster.kill9(1);
    let parts = ["it does not answer node-3", "node-2 does not reach it", "node-3 does not reach it"];
    why_says(&cluster, 3, &["node/1"], &parts).await;
    let told = cluster.answer(2, Call::get("/v1/explain/nodes/node-1")).await.expect(200).json();
    assert_eq!((&told["state"], names(&told["silent"])), (&Value::Null, vec!["node-1"]), "{told}");
    assert_eq!(names(&told["as_seen"]), ["node-2", "node-3"], "{told}");
    // Another node that does not answer is named as well.
    why_says(&cluster, 3, &["node/node-2"], &["node-1 did not answer: ", "it does not reach node-1"]).await;

    let unknown = cluster.answer(2, Call::get("/v1/explain/nodes/node-9")).await;
    problem(&unknown, 404, "not_found");
    assert_eq!(unknown.json()["nodes"], json!(["node-1", "node-2", "node-3"]));
    let unknown = eldest(&["why", "node/node-9", "--url", &cluster.node(3).url()]);
    assert_eq!(unknown.status.code(), Some(2));
    let text = String::from_utf8_lossy(&unknown.stderr);
    assert!(text.contains("no node node-9; the cluster has node-1, node-2, node-3"), "{text}");
}
