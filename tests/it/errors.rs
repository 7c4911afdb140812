//! Every error is a problem with its own code, no matter which part of the process noticed it.

use serde_json::json;

use crate::harness::{Call, Cluster, LogLine, Plan, Raw, problem, wait_for};

#[tokio::test]
async fn bad_bodies_are_named() {
    let cluster = Cluster::of(3).await;
    let commands = || Call::post("/v1/commands");
    for id in cluster.ids() {
        for text in ["", "{", "{\"storage_cmd\": \"CreateUser\",}", "nonsense", "{\"a\": 01}", "\u{1}"] {
            problem(&cluster.answer(id, commands().raw_json(text)).await, 400, "bad_json");
        }
        problem(&cluster.answer(id, commands().raw_json("").body([0xff, 0xfe])).await, 400, "bad_json");
        for body in
            [json!({}), json!({"storage_cmd": 5, "payload": {}}), json!(7), json!("text"), json!(null)]
        {
            problem(&cluster.answer(id, commands().json(&body)).await, 400, "bad_field");
        }
        let missing =
            problem(&cluster.answer(id, Call::command("CreateUser", json!({}))).await, 400, "bad_field");
        assert!(
            missing["detail"].as_str().expect("a detail").contains("name"),
            "the field is named: {missing}"
        );
        problem(&cluster.answer(id, Call::command("Fly", json!({}))).await, 400, "unknown_command");
        problem(&cluster.answer(id, Call::put("/v1/docs/k").raw_json("{")).await, 400, "bad_json");
        problem(&cluster.answer(id, Call::post("/declare_capability").raw_json("{")).await, 400, "bad_json");
        let wrong = Call::post("/declare_capability").json(&json!({"node_idx": "two"}));
        problem(&cluster.answer(id, wrong).await, 400, "bad_field");
    }
}

#[tokio::test]
async fn unknown_routes_and_methods_are_named() {
    let cluster = Cluster::of(1).await;
    for path in ["/nothing", "/v1", "/v1/nothing", "/v1/users/a/b/c", "/V1/status", "//", "/v1/status/"] {
        problem(&cluster.answer(1, Call::get(path)).await, 404, "not_found");
    }
    for call in [
        Call::get("/heartbeat"),
        Call::get("/is_leader"),
        Call::post("/v1/status"),
        Call::delete("/v1/users"),
        Call::put("/v1/commands"),
        Call::post("/v1/docs/k"),
        Call::post("/livez"),
    ] {
        let answer = cluster.answer(1, call).await;
        problem(&answer, 405, "method_not_allowed");
        assert!(answer.header("allow").is_some_and(|allow| !allow.is_empty()), "{}", answer.show());
    }
}

#[tokio::test]
async fn sizes_and_types_beyond_the_bounds_are_named() {
    let cluster = Cluster::of(1).await;
    let large = format!("\"{}\"", "x".repeat(3 << 20));
    problem(&cluster.answer(1, Call::put("/v1/docs/k").raw_json(&large)).await, 413, "body_too_large");
    // A body whose announced length is too large is refused before it arrives.
    let mut raw = Raw::connect(cluster.node(1)).await;
    raw.send(b"PUT /v1/docs/k HTTP/1.1\r\nhost: node-1\r\ncontent-length: 99999999\r\n\r\n").await;
    let text = String::from_utf8(raw.read_to_end().await).expect("text");
    assert!(text.starts_with("HTTP/1.1 413") && text.contains("\"body_too_large\""), "{text}");
    let xml = Call::put("/v1/docs/k").header("content-type", "application/xml").body("<a/>");
    problem(&cluster.answer(1, xml).await, 415, "unsupported_media_type");
    let with_header = |bytes| Call::get("/v1/status").header("x-long", "y".repeat(bytes));
    problem(&cluster.answer(1, with_header(20_000)).await, 431, "request_header_fields_too_large");
    // A head that does not even fit into the read buffer is refused without a problem body.
    cluster.answer(1, with_header(300_000)).await.expect(431);
    cluster.answer(1, Call::get("/v1/status")).await.expect(200);
}

/// curl sends its own type with `-d`; a body is judged by its content.
#[tokio::test]
async fn what_curl_sends_by_default_is_taken() {
    let cluster = Cluster::of(1).await;
    let form = "application/x-www-form-urlencoded";
    let call = Call::post("/v1/commands")
        .header("content-type", form)
        .body("{\"storage_cmd\": \"CreateUser\", \"payload\": {\"name\": \"a\"}}");
    cluster.answer(1, call).await.expect(200);
    let call = Call::put("/v1/docs/k").header("content-type", form).body("{\"a\": 1}");
    cluster.answer(1, call).await.expect(201);
    cluster.answer(1, Call::put("/v1/docs/untyped").body("[1]")).await.expect(201);
}

#[tokio::test]
async fn a_body_that_does_not_arrive_is_a_time_out() {
    let cluster = Plan::new(1).config("limits.body_timeout_ms = 300").start().await;
    let mut raw = Raw::connect(cluster.node(1)).await;
    raw.send(b"PUT /v1/docs/k HTTP/1.1\r\nhost: node-1\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{").await;
    let text = String::from_utf8(raw.read_to_end().await).expect("text");
    assert!(text.starts_with("HTTP/1.1 408"), "{text}");
    assert!(text.contains("application/problem+json") && text.contains("\"request_timeout\""), "{text}");
    assert_eq!(cluster.read_doc(1, "k", "linear").await, None);
}

#[tokio::test]
async fn without_a_majority_the_reason_is_named() {
    let cluster = Cluster::brisk(3).await;
    cluster.write_doc("k", 1).await;
    cluster.kill9(1);
    cluster.kill9(2);
    // A leader that has not noticed yet may accept a write whose outcome stays unknown.
    wait_for("the loss is noticed", async || cluster.status(3).await?["leader"].is_null().then_some(()))
        .await;
    for call in [
        Call::put("/v1/docs/k").raw_json("2"),
        Call::get("/v1/docs/k"),
        Call::get("/v1/docs/k?level=leader"),
        Call::get("/v1/users"),
        Call::command("CreateUser", json!({"name": "a"})),
    ] {
        let refused = cluster.answer(3, call).await.expect(503);
        let code = refused.json()["code"].as_str().expect("a code").to_string();
        assert!(["no_leader", "no_quorum"].contains(&code.as_str()), "{}", refused.show());
        problem(&refused, 503, &code);
    }
    cluster.start(1);
    cluster.ready().await;
    assert_eq!(cluster.read_doc(3, "k", "linear").await, Some(1), "503 means never");
}

/// A leader that cannot know whether its write will stand says so. The two others are frozen, not dead: they
/// may still take the record.
#[tokio::test]
async fn an_unknown_outcome_is_named_and_safe_to_repeat() {
    let cluster = Plan::new(3).config("limits.request_timeout_ms = 2000").start().await;
    cluster.write_doc("k", 1).await;
    let leader = cluster.leader().await;
    let others = cluster.others(leader);
    others.iter().for_each(|id| cluster.stop(*id));
    let put = Call::put("/v1/docs/k").raw_json("2").header("idempotency-key", "unknown");
    let unknown = problem(&cluster.answer(leader, put.clone()).await, 504, "outcome_unknown");
    assert_eq!(unknown["retryable"], true, "{unknown}");
    others.iter().for_each(|id| cluster.cont(*id));
    wait_for("the repeated call is answered", async || {
        cluster.ask(leader, &put).await.ok().filter(|answer| answer.ok())
    })
    .await;
    for id in cluster.ids() {
        assert_eq!(cluster.read_doc(id, "k", "linear").await, Some(2));
    }
    cluster.equal_states(&[1, 2, 3]).await;
    // Two other disks may have had the record first.
    let put = |line: &LogLine| line.typed.contains("\"k\"") && line.typed.contains("2}");
    let lines = wait_for("the record is on its disk", async || {
        let lines: Vec<LogLine> = cluster.log_lines(1).into_values().filter(put).collect();
        (!lines.is_empty()).then_some(lines)
    })
    .await;
    assert_eq!(lines.len(), 1, "it was written once: {lines:?}");
    assert!(lines[0].text.contains(" key="), "the key stands in the line: {lines:?}");
}

#[tokio::test]
async fn too_much_at_once_is_refused_at_once() {
    let cluster =
        Plan::new(3).config("limits.uncommitted = 1\nlimits.request_timeout_ms = 2000").start().await;
    let leader = cluster.leader().await;
    let cluster = std::sync::Arc::new(cluster);
    // No write commits while the others are frozen, so the second write reaches the bound.
    cluster.others(leader).iter().for_each(|id| cluster.stop(*id));
    let put = |number: u64| {
        let cluster = cluster.clone();
        let call = Call::put(format!("/v1/docs/{number}")).raw_json("1");
        tokio::spawn(async move { cluster.answer(leader, call).await })
    };
    let mut refused = 0;
    for call in (0..8).map(put).collect::<Vec<_>>() {
        let answer = call.await.expect("an answer");
        if answer.status == 429 {
            problem(&answer, 429, "too_many_requests");
            refused += 1;
        } else {
            problem(&answer, 504, "outcome_unknown");
        }
    }
    assert!(refused > 0, "eight writes, and none was too many");
    cluster.others(leader).iter().for_each(|id| cluster.cont(*id));
    cluster.write_doc("after", 1).await;
}
