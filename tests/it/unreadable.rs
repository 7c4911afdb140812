//! JSON that the parser of some language rejects: no client can write it, and old values of that
//! kind are served and shown.

use std::process::Command;

use eldest::client::{Client, FeedOptions, Level, RawValue};
use serde_json::{Value, json};

use crate::harness::{Call, Cluster, problem};

const NDJSON: (&str, &str) = ("content-type", "application/x-ndjson");

/// Values of each kind, one of them a number of 5,000 digits.
fn unreadable() -> [String; 4] {
    let reserved = r#"{"$serde_json::private::RawValue":1}"#;
    ["1e400", r#"{"a":["\ud800"]}"#, reserved, &"7".repeat(5000)].map(str::to_string)
}

/// Every call that carries a client's JSON, with this value in it, and the name of the
/// field that is wrong then.
fn doors(value: &str) -> Vec<(&'static str, Call)> {
    let doc = format!(r#"{{"storage_cmd":"PutDoc","payload":{{"key":"k","value":{value}}}}}"#);
    let user = format!(r#"{{"storage_cmd":"CreateUser","payload":{{"name":"u","about":{value}}}}}"#);
    let election = format!(r#"{{"name":"e","choices":["a"],"about":{value}}}"#);
    let election = json!({"storage_cmd": "CreateElection", "payload": election}).to_string();
    let holder = format!(r#"{{"instance_id":"a","metadata":{value}}}"#);
    let process = |member: &str| format!(r#"{{"identifier":"a","{member}":{value}}}"#);
    let command = |body: &str| Call::post("/v1/commands").raw_json(body);
    vec![
        ("value", Call::put("/v1/docs/k").raw_json(value)),
        ("payload.value", command(&doc)),
        ("payload.about", command(&user)),
        ("payload.about", command(&election)),
        ("[0].payload.value", command(&format!("[{doc}]"))),
        ("metadata", Call::post("/v1/roles/r/acquire").raw_json(&holder)),
        ("metadata", Call::post("/v1/roles/r/elect").raw_json(&holder)),
        ("metadata", Call::put("/v1/processes/p").raw_json(&process("metadata"))),
        ("capabilities", Call::put("/v1/processes/p").raw_json(&process("capabilities"))),
        ("message", Call::post("/v1/channels/c").raw_json(value)),
    ]
}

#[tokio::test]
async fn what_a_client_cannot_read_is_taken_at_no_door() {
    let cluster = Cluster::of(3).await;
    let leader = cluster.leader().await;
    let follower = cluster.others(leader)[0];
    for value in unreadable() {
        for (field, call) in doors(&value) {
            for node in [leader, follower] {
                let refused = problem(&cluster.answer(node, call.clone()).await, 400, "bad_field");
                assert_eq!(refused["field"], field, "{refused}");
                assert!(refused["detail"].as_str().is_some_and(|text| text.starts_with(field)), "{refused}");
            }
        }
        let put = |value: &str| {
            format!("{{\"storage_cmd\":\"PutDoc\",\"payload\":{{\"key\":\"s\",\"value\":{value}}}}}\n")
        };
        let lines = [put("1"), put(&value), put("2")].concat();
        for node in [leader, follower] {
            let call = Call::post("/v1/commands").header(NDJSON.0, NDJSON.1).body(&lines);
            let text = cluster.answer(node, call).await.expect(200).text();
            let told: Vec<Value> =
                text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
            assert_eq!(
                (&told[1]["code"], &told[1]["field"], &told[1]["line"]),
                (&json!("bad_field"), &json!("payload.value"), &json!(2))
            );
            assert!(told[0]["index"].is_u64() && told[2]["index"].is_u64(), "{text}");
        }
    }
    for (list, count) in [("docs", 1), ("users", 0), ("elections", 0), ("roles", 0), ("processes", 0)] {
        let listed = cluster.answer(follower, Call::get(format!("/v1/{list}"))).await.expect(200).json();
        assert_eq!(listed["items"].as_array().map(Vec::len), Some(count), "{list}: {listed}");
    }
    // Similar values that can be read: digits beyond 2^53, the ends of doubles, a whole pair; and
    // a name that occurs twice.
    let readable = r#"{"a":1,"a":[9007199254740993,1.7976931348623157e308,1e-400,"\ud83d\ude00","\\ud800"]}"#;
    cluster.answer(leader, Call::put("/v1/docs/k").raw_json(readable)).await.expect(201);
    let read = cluster.answer(follower, Call::get("/v1/docs/k")).await.expect(200);
    assert_eq!(read.text().trim_end(), readable);
}

/// Values of a log that is older than the rule: an operator may bring them in.
async fn with_old_values(cluster: &Cluster) -> Vec<(String, String)> {
    let docs: Vec<(String, String)> = unreadable()
        .into_iter()
        .enumerate()
        .map(|(number, value)| (format!("old/{number}"), value))
        .collect();
    let row = |(key, value): &(String, String)| format!(r#"{{"key":"{key}","value":{value}}}"#);
    let rows: Vec<String> = docs.iter().map(row).collect();
    let document = format!(r#"{{"users":[{{"name":"u","about":1e400}}],"docs":[{}]}}"#, rows.join(","));
    let leader = cluster.leader().await;
    cluster.answer(leader, Call::post("/override_all_data").raw_json(&document)).await.expect(200);
    docs
}

#[tokio::test]
async fn what_is_there_from_before_is_kept_and_goes_into_a_backup_and_back() {
    let cluster = Cluster::of(3).await;
    let docs = with_old_values(&cluster).await;
    cluster.equal_states(&[1, 2, 3]).await;
    for id in cluster.ids() {
        cluster.kill9(id);
    }
    for id in cluster.ids() {
        cluster.start(id);
    }
    cluster.ready().await;
    cluster.equal_states(&[1, 2, 3]).await;
    let leader = cluster.leader().await;
    let backup = cluster.answer(leader, Call::get("/v1/backup?level=linear")).await.expect(200);
    let call = Call::post("/v1/restore").header("content-type", "text/plain").body(&backup.body);
    cluster.answer(leader, call).await.expect(200);
    for (key, value) in &docs {
        let read = cluster.answer(leader, Call::get(format!("/v1/docs/{key}"))).await.expect(200);
        assert_eq!(read.text().trim_end(), value);
    }
}

#[tokio::test]
async fn the_command_line_shows_values_as_they_are() {
    let cluster = Cluster::of(3).await;
    let docs = with_old_values(&cluster).await;
    let url = cluster.node(cluster.leader().await).url();
    let run = |words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_eldest")).args(words).env("ELDEST_URL", &url).output();
        let output = output.expect("it runs");
        let (said, wrong) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{words:?}: {wrong}");
        said.trim().to_string()
    };
    let (table, lines) = (run(&["doc", "list"]), run(&["doc", "list", "-o", "jsonl"]));
    let (whole, yaml) = (run(&["doc", "list", "--json"]), run(&["doc", "list", "-o", "yaml"]));
    for (key, value) in &docs {
        let shown: String = value.chars().take(50).collect();
        assert!(table.contains(key) && table.contains(&shown), "{table}");
        let member = format!(r#""value":{value}"#);
        assert!(lines.contains(&member) && whole.contains(&member), "{lines}");
        assert!(yaml.contains(key), "{yaml}");
        assert_eq!(&run(&["doc", "get", key]), value);
        assert!(run(&["doc", "get", key, "--rev"]).contains(&member));
    }
    assert_eq!(lines.lines().count(), docs.len());
    assert!(run(&["call", "GET", "/v1/users"]).contains("1e400"));
}

#[tokio::test]
async fn a_client_reads_on_past_them() {
    let cluster = Cluster::of(3).await;
    let client = Client::new(cluster.urls()).expect("a client");
    let docs = with_old_values(&cluster).await;
    let page = client.docs("old/", None).await.expect("a page");
    let listed: Vec<(String, String)> =
        page.items.iter().map(|row| (row.key.clone(), row.value.get().to_string())).collect();
    assert_eq!(listed, docs);
    let (key, value) = &docs[0];
    let read = client.get_doc::<Box<RawValue>>(key, Level::Linear).await.expect("text").expect("there");
    assert_eq!(read.value.get(), value);
    let mut feed = client.feed(FeedOptions::default()).await.expect("a node tells");
    client.delete_doc(key, eldest::client::If::Always).await.expect("deleted");
    while feed.next().await.expect("an event").text("key") != Some(key) {}
}
