//! An array of commands is one atomic batch: all apply or none, one record, one index.

use serde_json::{Value, json};

use crate::harness::{Answer, Call, Cluster, problem, wait_for};

async fn batch(cluster: &Cluster, commands: Value) -> Answer {
    cluster.answer(2, Call::post("/v1/commands").json(&commands)).await
}

fn put(key: &str, value: u64) -> Value {
    json!({"storage_cmd": "PutDoc", "payload": {"key": key, "value": value}})
}

fn put_if(key: &str, value: u64, rev: &Value) -> Value {
    json!({"storage_cmd": "PutDoc", "payload": {"key": key, "value": value, "if_rev": rev}})
}

fn user(name: &str) -> Value {
    json!({"storage_cmd": "CreateUser", "payload": {"name": name}})
}

#[tokio::test]
async fn all_apply_as_one_record() {
    let cluster = Cluster::of(3).await;
    let answer = batch(&cluster, json!([user("a"), put("k", 1), put("l", 2)])).await.expect(200).json();
    let results = answer["results"].as_array().expect("results");
    assert_eq!(results.len(), 3, "{answer}");
    assert_eq!(results[0]["name"], "a", "{answer}");
    let index = answer["index"].as_u64().expect("an index");
    cluster.answer(1, Call::get("/v1/users/a")).await.expect(200);
    assert_eq!(cluster.read_doc(3, "k", "linear").await, Some(1));
    assert_eq!(cluster.read_doc(3, "l", "linear").await, Some(2));
    cluster.equal_states(&[1, 2, 3]).await;
    // A node applies a record that two other disks have, before its own disk has it.
    let line = wait_for("the record is on its disk", async || cluster.log_lines(3).remove(&index)).await;
    assert!(line.typed.starts_with("100|"), "{line:?}");
    assert!(line.typed.contains("\"a\"") && line.typed.contains("\"l\""), "{line:?}");
}

#[tokio::test]
async fn one_that_fails_takes_all_along() {
    let cluster = Cluster::of(3).await;
    batch(&cluster, json!([user("a")])).await.expect(200);
    problem(&batch(&cluster, json!([put("k", 1), user("a"), user("b")])).await, 409, "exists");
    let unknown = json!({"storage_cmd": "RemoveUser", "payload": {"name": "nobody"}});
    problem(&batch(&cluster, json!([put("k", 1), unknown])).await, 404, "not_found");
    problem(
        &batch(&cluster, json!([put("k", 1), put_if("l", 1, &json!("1"))])).await,
        412,
        "precondition_failed",
    );
    problem(
        &batch(&cluster, json!([put("k", 1), {"storage_cmd": "Fly", "payload": {}}])).await,
        400,
        "unknown_command",
    );
    problem(
        &batch(&cluster, json!([put("k", 1), {"storage_cmd": "CreateUser", "payload": {}}])).await,
        400,
        "bad_field",
    );
    problem(&batch(&cluster, json!([put("k", 1), 7])).await, 400, "bad_field");
    assert_eq!(cluster.read_doc(1, "k", "linear").await, None);
    problem(&cluster.answer(1, Call::get("/v1/users/b")).await, 404, "not_found");
}

#[tokio::test]
async fn later_commands_see_earlier_ones() {
    let cluster = Cluster::of(3).await;
    let election = json!({"storage_cmd": "CreateElection", "payload": {"name": "e", "choices": ["x"]}});
    let vote = json!({"storage_cmd": "VoteElection",
        "payload": {"election_name": "e", "voter_name": "a", "choice": "x"}});
    batch(&cluster, json!([user("a"), election, vote])).await.expect(200);
    let read = cluster.answer(1, Call::get("/v1/elections/e")).await.expect(200).json();
    assert_eq!(read["tally"]["x"], 1, "{read}");
    problem(&batch(&cluster, json!([user("b"), user("b")])).await, 409, "exists");
    problem(&cluster.answer(1, Call::get("/v1/users/b")).await, 404, "not_found");
}

/// A transfer between two accounts, with the revisions that it was computed from.
#[tokio::test]
async fn a_batch_with_conditions_is_a_transaction() {
    let cluster = Cluster::of(3).await;
    batch(&cluster, json!([put("from", 10), put("to", 0)])).await.expect(200);
    let page = cluster.answer(3, Call::get("/v1/docs")).await.expect(200).json();
    let rev = |key: &str| {
        let items = page["items"].as_array().expect("items");
        items.iter().find(|item| item["key"] == key).expect("the key")["rev"].clone()
    };
    let transfer = json!([put_if("from", 7, &rev("from")), put_if("to", 3, &rev("to"))]);
    batch(&cluster, transfer.clone()).await.expect(200);
    problem(&batch(&cluster, transfer).await, 412, "precondition_failed");
    assert_eq!(cluster.read_doc(1, "from", "linear").await, Some(7));
    assert_eq!(cluster.read_doc(1, "to", "linear").await, Some(3));
    let stale = json!([{"storage_cmd": "DeleteDoc", "payload": {"key": "from", "if_rev": rev("from")}}]);
    problem(&batch(&cluster, stale).await, 412, "precondition_failed");
}

#[tokio::test]
async fn a_batch_of_nothing_is_refused() {
    let cluster = Cluster::of(1).await;
    let answer = cluster.answer(1, Call::post("/v1/commands").json(&json!([]))).await;
    problem(&answer, 400, "bad_field");
}

#[tokio::test]
async fn batches_stay_whole_when_all_lose_power() {
    let cluster = Cluster::of(3).await;
    for number in 0..20 {
        let pair = json!([put("left", number), put("right", number)]);
        cluster.eventually(Call::post("/v1/commands").json(&pair)).await.expect(200);
    }
    cluster.ids().for_each(|id| cluster.kill9(id));
    cluster.ids().for_each(|id| cluster.start(id));
    cluster.ready().await;
    assert_eq!(cluster.read_doc(2, "left", "linear").await, Some(19));
    assert_eq!(cluster.read_doc(2, "right", "linear").await, Some(19));
}
