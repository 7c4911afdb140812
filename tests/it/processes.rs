//! Processes that register and send heartbeats, and processes that stop.

use std::time::Instant;

use serde_json::{Value, json};

use crate::harness::{Answer, Call, Cluster, Events, problem, wait_for};

/// A ttl that no test outlasts.
const LONG: u64 = 3_600_000;

async fn calm() -> Cluster {
    Cluster::of(3).await
}

fn register(id: &str, more: Value) -> Call {
    let mut body = json!({"identifier": "worker", "ttl_ms": LONG});
    body.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
    Call::put(format!("/v1/processes/{id}")).json(&body)
}

fn heartbeat(id: &str) -> Call {
    Call::post(format!("/v1/processes/{id}/heartbeat"))
}

async fn get(cluster: &Cluster, node: u32, id: &str) -> Answer {
    cluster.answer(node, Call::get(format!("/v1/processes/{id}"))).await
}

async fn process_events(cluster: &Cluster, node: u32) -> Events {
    let path = "/v1/feed?kinds=process_registered,process_changed,process_removed&prefix=w";
    let mut events = cluster.events(node, path).await.expect("a feed");
    assert_eq!(events.event().await["kind"], "bookmark", "it begins here");
    events
}

#[tokio::test]
async fn a_process_comes_and_goes() {
    let cluster = calm().await;
    let mut events = process_events(&cluster, 1).await;
    let about = json!({"role": "slave", "capabilities": ["render", "scan"], "metadata": {"cores": 4}});
    let first = cluster.answer(2, register("w1", about.clone())).await.expect(201).json();
    for (member, value) in [
        ("id", json!("w1")),
        ("identifier", json!("worker")),
        ("role", json!("slave")),
        ("capabilities", json!(["render", "scan"])),
        ("metadata", json!({"cores": 4})),
        ("channel", json!("worker:slave:w1")),
        ("ttl_ms", json!(LONG)),
    ] {
        assert_eq!(first[member], value, "{member}");
    }
    assert!(first["expires_in_ms"].as_u64().is_some_and(|left| left <= LONG), "{first}");
    for time in ["registered_at", "last_seen"] {
        assert!(first[time].as_str().is_some_and(|time| time.ends_with('Z')), "{time}: {first}");
    }
    let same = cluster.answer(3, register("w1", about)).await.expect(200).json();
    assert_eq!((&same["registered_at"], &same["expires_in_ms"]), (&first["registered_at"], &json!(LONG)));
    let beat = cluster.answer(1, heartbeat("w1")).await.expect(200).json();
    assert_eq!(beat, json!({"id": "w1", "expires_in_ms": LONG}));
    cluster.answer(1, heartbeat("w1").raw_json("{}")).await.expect(200);
    let changed = cluster.answer(3, register("w1", json!({"role": "master"}))).await.expect(200).json();
    assert_eq!(
        (&changed["role"], &changed["capabilities"]),
        (&json!("master"), &json!(null)),
        "all of it is new"
    );
    assert_eq!(changed["registered_at"], first["registered_at"]);
    assert_eq!(get(&cluster, 2, "w1").await.expect(200).json()["role"], "master");
    assert_eq!(
        cluster.answer(2, Call::delete("/v1/processes/w1")).await.expect(200).json(),
        json!({"id": "w1"})
    );
    for call in [Call::delete("/v1/processes/w1"), heartbeat("w1"), Call::get("/v1/processes/w1")] {
        problem(&cluster.answer(1, call).await, 404, "not_found");
    }
    // Two registrations that said the same, and two heartbeats, are no events.
    let (came, turned, went) = (events.news().await, events.news().await, events.news().await);
    let expected = json!({
        "id": came["id"], "kind": "process_registered", "at": came["at"], "process": "w1", "identifier": "worker", "role": "slave",
    });
    assert_eq!(came, expected);
    let expected = json!({
        "id": turned["id"], "kind": "process_changed", "at": turned["at"], "process": "w1", "identifier": "worker", "role": "master",
        "previous_role": "slave",
    });
    assert_eq!(turned, expected);
    let expected = json!({
        "id": went["id"], "kind": "process_removed", "at": went["at"], "process": "w1", "identifier": "worker", "role": "master",
        "reason": "removed",
    });
    assert_eq!(went, expected);
}

#[tokio::test]
async fn other_words_are_a_sign_of_life_too() {
    let cluster = calm().await;
    cluster.answer(1, register("w1", json!({}))).await.expect(201);
    let left = wait_for("some of the lease is over", async || {
        let left = get(&cluster, 1, "w1").await.json()["expires_in_ms"].as_u64()?;
        (left + 2000 < LONG).then_some(left)
    })
    .await;
    let sent = Instant::now();
    let changed = cluster.answer(1, register("w1", json!({"metadata": 1}))).await.expect(200).json();
    // It was renewed when this call came, so it has lost no more than the time since.
    let least = LONG - sent.elapsed().as_millis() as u64 - 1;
    let renewed = changed["expires_in_ms"].as_u64();
    assert!(renewed >= Some(least), "it was not renewed: {renewed:?} after {left}, not {least}");
}

#[tokio::test]
async fn a_list_is_filtered_and_comes_in_pages() {
    let cluster = calm().await;
    for (id, about) in [
        ("a", json!({"role": "slave", "capabilities": ["scan"]})),
        (
            "b",
            json!({"role": "slave", "capabilities": {"scan": true, "print": false, "fax": null, "dpi": 0}}),
        ),
        ("c", json!({"role": "master", "capabilities": "scan", "identifier": "other"})),
        ("d", json!({"capabilities": 7})),
        ("e%2Ff", json!({})),
    ] {
        cluster.answer(1, register(id, about)).await.expect(201);
    }
    let list = async |query: &str| {
        let page = cluster.answer(2, Call::get(format!("/v1/processes?{query}"))).await.expect(200).json();
        let items = page["items"].as_array().expect("a list").clone();
        let ids: Vec<_> = items.iter().map(|item| item["id"].as_str().expect("an id").to_string()).collect();
        (ids.join(" "), page["next"].clone())
    };
    for (query, ids) in [
        ("", "a b c d e/f"),
        ("role=slave", "a b"),
        ("role=none", ""),
        ("identifier=other", "c"),
        ("capability=scan", "a b c"),
        ("capability=print", ""),
        ("capability=fax", ""),
        ("capability=dpi", "b"),
        ("capability=scan&role=slave", "a b"),
        ("identifier=worker&capability=scan&after=a", "b"),
    ] {
        assert_eq!(list(query).await, (ids.to_string(), json!(null)), "{query}");
    }
    assert_eq!(list("limit=2").await, ("a b".to_string(), json!("b")));
    assert_eq!(list("limit=2&after=b").await, ("c d".to_string(), json!("d")));
    assert_eq!(list("limit=2&after=d").await, ("e/f".to_string(), json!(null)));
    assert_eq!(list("role=slave&limit=1").await, ("a".to_string(), json!("a")));
    cluster.answer(3, heartbeat("e%2Ff")).await.expect(200);
}

#[tokio::test]
async fn who_falls_silent_is_gone() {
    let cluster = calm().await;
    let mut events = process_events(&cluster, 3).await;
    cluster.answer(2, register("w2", json!({}))).await.expect(201);
    let began = Instant::now();
    cluster.answer(2, register("w1", json!({"ttl_ms": 1000}))).await.expect(201);
    assert_eq!(events.news().await["process"], "w2");
    assert_eq!(events.news().await["process"], "w1");
    let gone = events.news().await;
    assert!(began.elapsed().as_millis() >= 1000, "never before its ttl");
    assert_eq!((&gone["process"], &gone["reason"]), (&json!("w1"), &json!("expired")));
    assert_eq!(gone.get("role"), None, "it has none");
    problem(&cluster.answer(1, heartbeat("w1")).await, 404, "not_found");
    cluster.answer(1, register("w1", json!({}))).await.expect(201);
    assert_eq!(events.news().await["kind"], "process_registered");
}

#[tokio::test]
async fn only_the_leader_knows_who_was_seen() {
    let cluster = calm().await;
    cluster.answer(1, register("w1", json!({}))).await.expect(201);
    for id in cluster.ids() {
        let local = wait_for("the node has heard of it", async || {
            let answer = cluster.answer(id, Call::get("/v1/processes/w1?level=local")).await;
            answer.ok().then(|| answer.json())
        })
        .await;
        assert_eq!((&local["last_seen"], &local["expires_in_ms"]), (&json!(null), &json!(null)), "n{id}");
        assert_eq!(local["channel"], "worker:slave:w1");
        for level in ["leader", "linear"] {
            let call = Call::get(format!("/v1/processes?level={level}"));
            // The lease of a leader may lapse for a moment, and with it `level=leader`.
            let known = cluster.eventually_at(id, &call).await.expect(200).json()["items"][0].clone();
            assert!(known["last_seen"].is_string() && known["expires_in_ms"].is_u64(), "{known}");
        }
    }
}

#[tokio::test]
async fn a_process_outlives_the_leader() {
    let cluster = Cluster::of(3).await;
    let first = cluster.eventually(register("w1", json!({}))).await.expect(201).json();
    cluster.kill9(cluster.leader().await);
    cluster.eventually(heartbeat("w1")).await.expect(200);
    let again = cluster.eventually(register("w1", json!({}))).await.expect(200).json();
    assert_eq!(again["registered_at"], first["registered_at"]);
}

#[tokio::test]
async fn a_replay_brings_nobody_back() {
    let cluster = calm().await;
    let keyed = || register("w1", json!({})).header("idempotency-key", "first");
    cluster.answer(1, keyed()).await.expect(201);
    cluster.answer(2, keyed()).await.expect(200);
    let delete = || Call::delete("/v1/processes/w1").header("idempotency-key", "away");
    for node in cluster.ids() {
        cluster.answer(node, delete()).await.expect(200);
    }
    problem(&cluster.answer(3, keyed()).await, 404, "not_found");
    cluster.answer(3, register("w1", json!({})).header("idempotency-key", "second")).await.expect(201);
}

#[tokio::test]
async fn each_bad_field_is_named() {
    let cluster = Cluster::of(1).await;
    let long = "x".repeat(257);
    let cases = [
        ("{}".to_string(), "identifier"),
        ("{\"identifier\":\"\"}".into(), "identifier"),
        (format!("{{\"identifier\":\"{long}\"}}"), "identifier"),
        ("{\"identifier\":\"w\",\"role\":7}".into(), "role"),
        ("{\"identifier\":\"w\",\"role\":\"\"}".into(), "role"),
        ("{\"identifier\":\"w\",\"ttl_ms\":999}".into(), "ttl_ms"),
        ("{\"identifier\":\"w\",\"ttl_ms\":3600001}".into(), "ttl_ms"),
        ("{\"identifier\":\"w\",\"ttl\":1}".into(), "ttl"),
        ("{\"identifier\":\"w\",\"id\":\"w\"}".into(), "id"),
    ];
    for (body, field) in cases {
        let answer = cluster.answer(1, Call::put("/v1/processes/w").raw_json(&body)).await;
        assert_eq!(problem(&answer, 400, "bad_field")["field"], field, "{body}");
    }
    let large = format!("\"{}\"", "x".repeat(17 << 10));
    for member in ["capabilities", "metadata"] {
        let body = format!("{{\"identifier\":\"w\",\"{member}\":{large}}}");
        let answer = cluster.answer(1, Call::put("/v1/processes/w").raw_json(&body)).await;
        assert_eq!(problem(&answer, 413, "body_too_large")["field"], member);
    }
    let calls = [
        (register(&long, json!({})), "id"),
        (heartbeat("w").raw_json("{\"ttl_ms\":1}"), "ttl_ms"),
        (Call::get("/v1/processes?prefix=w"), "prefix"),
        (Call::get("/v1/processes?limit=0"), "limit"),
        (Call::get("/v1/processes/w?capability=x"), "capability"),
    ];
    for (call, field) in calls {
        assert_eq!(problem(&cluster.answer(1, call).await, 400, "bad_field")["field"], field);
    }
    problem(&cluster.answer(1, Call::post("/v1/processes/w/beat")).await, 404, "not_found");
}
