//! Documents: compare-and-swap over HTTP's own conditions.

use serde_json::{Value, json};

use crate::harness::{Answer, Call, Cluster, problem, query, wait_for};

fn path(key: &str) -> String {
    format!("/v1/docs/{}", query(key))
}

fn etag(answer: &Answer) -> String {
    let tag = answer.header("etag").unwrap_or_else(|| panic!("no ETag: {}", answer.show()));
    assert!(tag.starts_with('"') && tag.ends_with('"') && tag.len() > 2, "{}", answer.show());
    tag.to_string()
}

#[tokio::test]
async fn a_document_lives_and_ends() {
    let cluster = Cluster::of(3).await;
    let put = |value: &Value| Call::put(path("k")).json(value);
    let created = cluster.answer(1, put(&json!({"a": 1}))).await.expect(201);
    assert_eq!(created.json()["key"], "k");
    let changed = cluster.answer(2, put(&json!([null, 2.5]))).await.expect(200);
    assert_ne!(etag(&created), etag(&changed));

    let read = cluster.answer(3, Call::get(path("k"))).await.expect(200);
    assert_eq!(read.json(), json!([null, 2.5]), "the value itself");
    assert_eq!(etag(&read), etag(&changed));
    assert_eq!(read.header("content-type"), Some("application/json"), "{}", read.show());

    cluster.answer(1, Call::delete(path("k"))).await.expect(200);
    problem(&cluster.answer(3, Call::get(path("k"))).await, 404, "not_found");
    problem(&cluster.answer(2, Call::delete(path("k"))).await, 404, "not_found");
    cluster.answer(1, put(&json!(0))).await.expect(201);
}

#[tokio::test]
async fn the_rev_is_the_index_of_the_change() {
    let cluster = Cluster::of(3).await;
    let created = cluster.answer(1, Call::put(path("k")).raw_json("1")).await.expect(201);
    let rev = etag(&created).trim_matches('"').parse::<u64>().expect("a log index in safe mode");
    assert_eq!(created.json()["rev"], rev.to_string());
    // Two other disks may have had the record first.
    let line = wait_for("the record is on its disk", async || cluster.log_lines(1).remove(&rev)).await;
    assert!(line.typed.contains("\"k\""), "{line:?}");
}

#[tokio::test]
async fn conditions_hold_or_nothing_happens() {
    let cluster = Cluster::of(3).await;
    let put = |value: u64| Call::put(path("k")).raw_json(&value.to_string());
    problem(&cluster.answer(1, put(1).header("if-match", "\"1\"")).await, 412, "precondition_failed");
    problem(&cluster.answer(1, put(1).header("if-match", "*")).await, 412, "precondition_failed");
    let first = cluster.answer(2, put(1).header("if-none-match", "*")).await.expect(201);
    problem(&cluster.answer(3, put(2).header("if-none-match", "*")).await, 412, "precondition_failed");
    let old = etag(&first);
    let second = cluster.answer(1, put(2).header("if-match", &old)).await.expect(200);
    let refused =
        problem(&cluster.answer(2, put(3).header("if-match", &old)).await, 412, "precondition_failed");
    assert_eq!(refused["retryable"], false, "{refused}");
    cluster.answer(3, put(4).header("if-match", "*")).await.expect(200);
    let current = cluster.answer(3, Call::get(path("k"))).await.expect(200);
    assert_eq!(current.json(), 4);

    let delete = |tag: &str| Call::delete(path("k")).header("if-match", tag);
    problem(&cluster.answer(1, delete(&etag(&second))).await, 412, "precondition_failed");
    let gone = cluster.answer(2, delete(&etag(&current))).await;
    assert!(gone.ok(), "{}", gone.show());
    problem(&cluster.answer(3, Call::get(path("k"))).await, 404, "not_found");
}

/// P59: a holder that was replaced changes nothing more, with any revision that it knows, through any node.
#[tokio::test]
async fn who_no_longer_holds_the_role_writes_nothing() {
    let cluster = Cluster::of(3).await;
    let acquire = |instance: &str| {
        Call::post("/v1/roles/jobs%2F%C3%A9/acquire")
            .json(&json!({"instance_id": instance, "ttl_ms": 600_000}))
    };
    let token = |answer: &Answer| answer.json()["token"].as_u64().expect("a token");
    let first = token(&cluster.answer(1, acquire("a")).await.expect(200));
    let names = |token: u64| format!("jobs/%C3%A9; token={token}");
    let put = |token: u64| Call::put(path("k")).raw_json("1").header("if-role", names(token));
    let created = cluster.answer(2, put(first)).await.expect(201);
    let elect = Call::post("/v1/roles/jobs%2F%C3%A9/elect").json(&json!({"instance_id": "b"}));
    let second = token(&cluster.answer(3, elect).await.expect(200));

    let current = etag(&created);
    for id in cluster.ids() {
        let with_rev = put(first).header("if-match", &current);
        let said = problem(&cluster.answer(id, with_rev).await, 412, "role_not_held");
        assert_eq!((&said["role"], &said["retryable"]), (&json!("jobs/é"), &json!(false)));
        let delete = Call::delete(path("k")).header("if-role", names(first));
        problem(&cluster.answer(id, delete).await, 412, "role_not_held");
        let payload = |token| json!({"key": "k", "value": 2, "if_role": "jobs/é", "role_token": token});
        let command = |token| json!({"storage_cmd": "PutDoc", "payload": payload(token)});
        let single = Call::post("/v1/commands").json(&command(first));
        problem(&cluster.answer(id, single).await, 412, "role_not_held");
        let user = json!({"storage_cmd": "CreateUser", "payload": {"name": format!("u{id}")}});
        let batch = Call::post("/v1/commands").json(&json!([user, command(first)]));
        assert_eq!(problem(&cluster.answer(id, batch).await, 412, "role_not_held")["operation"], 1);
        problem(&cluster.answer(id, Call::get(format!("/v1/users/u{id}"))).await, 404, "not_found");
        let lines = format!("{}\n{}\n", command(first), command(second));
        let stream = Call::post("/v1/commands").body(&lines).header("content-type", "application/x-ndjson");
        let told = cluster.answer(id, stream).await.expect(200);
        let told: Vec<Value> =
            told.text().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!((&told[0]["code"], &told[1]["result"]["key"]), (&json!("role_not_held"), &json!("k")));
    }
    // A condition that would not be checked is refused.
    let others =
        ["/v1/commands", "/v1/channels/c", "/v1/roles/r/acquire", "/v1/tokens", "/v1/conflicts/x/apply"];
    let others = others.map(|other| Call::post(other).raw_json("[]"));
    for call in others.into_iter().chain([Call::post(format!("{}?renew", path("k")))]) {
        let said = problem(&cluster.answer(1, call.header("if-role", names(second))).await, 400, "bad_field");
        assert_eq!(said["field"], "If-Role");
    }
    let odd = Call::put(path("k")).raw_json("1").header("if-role", "jobs");
    problem(&cluster.answer(1, odd).await, 400, "bad_field");
    cluster.answer(2, Call::delete(path("k")).header("if-role", names(second))).await.expect(200);
    cluster.equal_states(&[1, 2, 3]).await;
}

#[tokio::test]
async fn odd_conditions_are_refused_and_never_ignored() {
    let cluster = Cluster::of(3).await;
    let put = || Call::put(path("k")).raw_json("1");
    cluster.answer(1, put()).await.expect(201);
    for (name, value) in [
        ("if-match", "7"),
        ("if-match", "W/\"7\""),
        ("if-match", ""),
        ("if-match", "\"7"),
        ("if-none-match", "\"7\""),
        ("if-none-match", "yes"),
    ] {
        let answer = cluster.answer(2, put().header(name, value)).await;
        assert!([400, 412].contains(&answer.status), "{name}: {value}: {}", answer.show());
    }
    assert_eq!(
        cluster.answer(3, Call::get(path("k"))).await.header("etag"),
        Some(etag(&cluster.answer(1, Call::get(path("k"))).await).as_str())
    );
}

#[tokio::test]
async fn keys_of_every_kind_are_kept_apart() {
    let cluster = Cluster::of(3).await;
    let keys = [
        "a",
        "a/b",
        "a/b/c",
        "ä/名前",
        "with space",
        "100%",
        "q?x=1",
        "plus+",
        "a.b-c_d~",
        "\"quoted\"",
        "2|{}",
    ];
    for (number, key) in keys.iter().enumerate() {
        let put = Call::put(path(key)).json(&json!(number));
        let created = cluster.answer(number as u32 % 3 + 1, put).await.expect(201);
        assert_eq!(created.json()["key"], *key);
    }
    for (number, key) in keys.iter().enumerate() {
        let read = cluster.answer(3, Call::get(path(key))).await.expect(200);
        assert_eq!(read.json(), json!(number), "{key}");
        // A client may write the slash either way.
        let encoded = path(key).replacen("/v1/docs/", "", 1).replace('/', "%2F");
        let read = cluster.answer(2, Call::get(format!("/v1/docs/{encoded}"))).await.expect(200);
        assert_eq!(read.json(), json!(number), "{key}");
    }
}

async fn keys(cluster: &Cluster, arguments: &str) -> (Vec<String>, Value) {
    let page = cluster.answer(2, Call::get(format!("/v1/docs?{arguments}"))).await.expect(200).json();
    let items = page["items"].as_array().expect("items");
    for item in items {
        assert!(!item["rev"].is_null() && !item["value"].is_null(), "{item}");
    }
    let keys = items.iter().map(|item| item["key"].as_str().expect("a key").to_string()).collect();
    (keys, page["next"].clone())
}

#[tokio::test]
async fn listings_are_sorted_paged_and_complete() {
    let cluster = Cluster::of(3).await;
    for key in ["b/1", "b/2", "a", "b/3", "b", "c", "b/4", "ä"] {
        cluster.answer(1, Call::put(path(key)).raw_json("{\"v\": 1}")).await.expect(201);
    }
    let (all, next) = keys(&cluster, "").await;
    assert_eq!(all, ["a", "b", "b/1", "b/2", "b/3", "b/4", "c", "ä"]);
    assert!(next.is_null(), "{next}");
    assert_eq!(keys(&cluster, "prefix=b/").await.0, ["b/1", "b/2", "b/3", "b/4"]);
    assert_eq!(keys(&cluster, "prefix=zzz").await.0, Vec::<String>::new());
    assert_eq!(keys(&cluster, &format!("prefix={}", query("ä"))).await.0, ["ä"]);

    let (mut seen, mut after) = (Vec::new(), String::new());
    loop {
        let (page, next) = keys(&cluster, &format!("prefix=b&limit=2&after={}", query(&after))).await;
        assert!(page.len() <= 2, "{page:?}");
        seen.extend(page);
        match next.as_str() {
            Some(next) => after = next.to_string(),
            None => break,
        }
    }
    assert_eq!(seen, ["b", "b/1", "b/2", "b/3", "b/4"]);
    for bad in ["limit=x", "limit=-1", "limit=0"] {
        problem(&cluster.answer(1, Call::get(format!("/v1/docs?{bad}"))).await, 400, "bad_field");
    }
}

#[tokio::test]
async fn a_document_may_be_a_mebibyte_and_no_more() {
    let cluster = Cluster::of(3).await;
    let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
    let most = 1 << 20;
    cluster.answer(2, Call::put(path("big")).raw_json(&text(most))).await.expect(201);
    let read = cluster.answer(3, Call::get(path("big"))).await.expect(200);
    assert_eq!(read.body.len(), most);
    let refused = cluster.answer(1, Call::put(path("bigger")).raw_json(&text(most + 1))).await;
    problem(&refused, 413, "body_too_large");
    problem(&cluster.answer(1, Call::get(path("bigger"))).await, 404, "not_found");
}

#[tokio::test]
async fn values_come_back_as_they_were_given() {
    let cluster = Cluster::of(3).await;
    for (number, text) in [
        "null",
        "true",
        "0",
        "-1.5e3",
        "\"\"",
        "\"\\u0000\\n\"",
        "[]",
        "{}",
        "{\"a\":{\"b\":[1,\"ü\"]}}",
        "12345678901234567890",
        "{\n \"spread\": [\n1,\n2]\n}",
    ]
    .iter()
    .enumerate()
    {
        let path = path(&format!("v{number}"));
        cluster.answer(1, Call::put(&path).raw_json(text)).await.expect(201);
        let read = cluster.answer(2, Call::get(&path)).await.expect(200);
        let given: Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(read.json(), given, "{text}");
    }
    cluster.ids().for_each(|id| cluster.kill9(id));
    cluster.ids().for_each(|id| cluster.start(id));
    cluster.ready().await;
    let read = cluster.answer(3, Call::get(path("v9"))).await.expect(200);
    assert_eq!(read.text(), "12345678901234567890");
}

#[tokio::test]
async fn nothing_gets_a_name_that_nobody_can_see() {
    let cluster = Cluster::of(3).await;
    let blank = "%E2%80%8B%20";
    for call in [
        Call::put(format!("/v1/docs/{blank}")).raw_json("1"),
        Call::put(format!("/v1/processes/{blank}")).json(&json!({"identifier": "x"})),
        Call::post(format!("/v1/roles/{blank}/acquire")).json(&json!({"instance_id": "x"})),
        Call::command("PutDoc", json!({"key": " ", "value": 1})),
        Call::command("CreateUser", json!({"name": "\u{200b}"})),
    ] {
        let refused = problem(&cluster.answer(2, call).await, 400, "bad_field");
        assert!(
            refused["detail"].as_str().is_some_and(|detail| detail.contains("has no visible character")),
            "{refused}"
        );
    }
    // Such names may exist from before: they can be looked up and removed.
    problem(&cluster.answer(2, Call::get(format!("/v1/docs/{blank}"))).await, 404, "not_found");
    problem(&cluster.answer(2, Call::delete(format!("/v1/docs/{blank}"))).await, 404, "not_found");
}
