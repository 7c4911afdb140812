//! Users: commands 1 and 2 of the seed's log.

use serde_json::json;

use crate::harness::{Answer, Call, Cluster, problem, query, wait_for};

async fn create(cluster: &Cluster, payload: serde_json::Value) -> Answer {
    cluster.answer(2, Call::command("CreateUser", payload)).await
}

#[tokio::test]
async fn a_user_is_created_read_listed_and_removed() {
    let cluster = Cluster::of(3).await;
    let user = json!({"name": "tester", "group": "staff", "public_key": "ssh", "shoe": {"size": 43}});
    let created = create(&cluster, user.clone()).await.expect(200).json();
    assert!(created["index"].as_u64() > Some(0), "{created}");
    assert!(created["epoch"].as_str().is_some_and(|epoch| epoch.contains('.')), "{created}");

    let read = cluster.answer(3, Call::get("/v1/users/tester")).await.expect(200).json();
    for (member, value) in user.as_object().expect("an object") {
        assert_eq!(&read[member], value, "further fields are kept: {read}");
    }
    create(&cluster, json!({"name": "another"})).await.expect(200);
    let all = cluster.answer(1, Call::get("/v1/users")).await.expect(200).text();
    assert!(all.contains("\"tester\"") && all.contains("\"another\""), "{all}");

    cluster.answer(1, Call::command("RemoveUser", json!({"name": "tester"}))).await.expect(200);
    problem(&cluster.answer(3, Call::get("/v1/users/tester")).await, 404, "not_found");
    let all = cluster.answer(1, Call::get("/v1/users")).await.expect(200).text();
    assert!(!all.contains("\"tester\"") && all.contains("\"another\""), "{all}");
}

#[tokio::test]
async fn the_rules_of_users() {
    let cluster = Cluster::of(3).await;
    create(&cluster, json!({"name": "a"})).await.expect(200);
    problem(&create(&cluster, json!({"name": "a"})).await, 409, "exists");
    let unknown = cluster.answer(1, Call::command("RemoveUser", json!({"name": "nobody"}))).await;
    problem(&unknown, 404, "not_found");
    for bad in
        [json!({}), json!({"name": 7}), json!({"name": ""}), json!({"name": null}), json!({"group": "g"})]
    {
        let refused = problem(&create(&cluster, bad.clone()).await, 400, "bad_field");
        assert!(refused["detail"].as_str().expect("a detail").contains("name"), "{bad}: {refused}");
    }
    problem(&create(&cluster, json!({"name": "g", "group": 5})).await, 400, "bad_field");
    // A name is free again once its user is gone.
    cluster.answer(1, Call::command("RemoveUser", json!({"name": "a"}))).await.expect(200);
    create(&cluster, json!({"name": "a"})).await.expect(200);
}

#[tokio::test]
async fn payloads_may_be_text_that_holds_the_json() {
    let cluster = Cluster::of(3).await;
    let text = "{\"name\": \"as-text\",\n \"group\": \"staff\"}";
    create(&cluster, json!(text)).await.expect(200);
    let read = cluster.answer(1, Call::get("/v1/users/as-text")).await.expect(200).json();
    assert_eq!(read["group"], "staff");
    problem(&create(&cluster, json!("{\"name\": ")).await, 400, "bad_field");
    // The record is one line in the log, even if the client's text has line breaks.
    for id in cluster.ids() {
        // A write is committed by any majority of disks, so this node's own may get it later.
        let lines = wait_for("the record is on the disk", async || {
            let lines = cluster.log_lines(id).into_values().map(|line| line.typed);
            let about: Vec<String> = lines.filter(|typed| typed.contains("as-text")).collect();
            (!about.is_empty()).then_some(about)
        })
        .await;
        assert!(lines.len() == 1 && lines[0].starts_with("1|") && lines[0].ends_with('}'), "{lines:?}");
    }
}

#[tokio::test]
async fn names_of_every_kind_are_kept() {
    let cluster = Cluster::of(3).await;
    for name in ["a b", "ä/ö?ü#%", "名前", "quote\"backslash\\", "2|{\"name\"}"] {
        create(&cluster, json!({"name": name})).await.expect(200);
        let path = format!("/v1/users/{}", query(name).replace('/', "%2F"));
        let read = cluster.answer(3, Call::get(&path)).await.expect(200).json();
        assert_eq!(read["name"], name);
    }
    cluster.kill9(cluster.leader().await);
    let all = cluster.eventually(Call::get("/v1/users")).await.expect(200).text();
    assert!(all.contains("名前"), "{all}");
}
