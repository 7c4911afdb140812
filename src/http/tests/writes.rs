//! Commands and documents: which writes are allowed, and how they are answered.

use super::node::Node;

#[tokio::test]
async fn a_command_is_answered_with_its_place_and_result() {
    let node = Node::leader().await;
    let body = "{\"storage_cmd\":\"CreateUser\",\"payload\":{\"name\":\"tester\"}}";
    let answer = node.call("POST /v1/commands", &[], body).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.text, "{\"index\":1,\"epoch\":\"7.1\",\"result\":{\"name\":\"tester\"}}");
    for (name, value) in [
        ("content-type", "application/json"),
        ("eldest-node", "1"),
        ("eldest-leader", "1"),
        ("eldest-epoch", "7.1"),
        ("eldest-index", "1"),
        ("eldest-acks", "2/3"),
    ] {
        assert_eq!(answer.header(name), value, "{name}");
    }
    assert_eq!(node.seen(), ["write 1|{\"name\":\"tester\"}"]);
}

#[tokio::test]
async fn the_seeds_clients_send_the_payload_as_text() {
    let node = Node::leader().await;
    let body = "{\"storage_cmd\":\"CreateUser\",\"payload\":\"{\\\"name\\\": \\\"tester\\\"}\"}";
    let form = [("content-type", "application/x-www-form-urlencoded")];
    assert_eq!(node.call("POST /v1/commands", &form, body).await.status, 200);
    assert_eq!(node.seen(), ["write 1|{\"name\":\"tester\"}"]);
}

#[tokio::test]
async fn an_array_is_one_record() {
    let node = Node::leader().await;
    let body = "[{\"storage_cmd\":\"CreateUser\",\"payload\":{\"name\":\"a\"}},\
                {\"storage_cmd\":\"PutDoc\",\"payload\":{\"key\":\"k\",\"value\":[1, 2]}}]";
    let answer = node.call("POST /v1/commands", &[], body).await;
    assert_eq!(
        answer.text,
        "{\"index\":1,\"epoch\":\"7.1\",\"results\":[{\"name\":\"a\"},{\"key\":\"k\",\"rev\":\"1\",\"created\":true}]}"
    );
    let again = node.call("POST /v1/commands", &[], body).await;
    assert_eq!(again.problem(), (409, "exists".to_string()));
    assert_eq!(again.json()["operation"], 0);
}

#[tokio::test]
async fn what_is_no_command_names_the_field() {
    let node = Node::leader().await;
    for (body, code, field) in [
        ("{\"storage_cmd\":\"CreateUsr\",\"payload\":{}}", "unknown_command", "storage_cmd"),
        ("{\"storage_cmd\":\"CreateUser\",\"payload\":{}}", "bad_field", "payload.name"),
        ("{\"storage_cmd\":\"CreateUser\"}", "bad_field", "payload"),
        ("{\"payload\":{}}", "bad_field", "storage_cmd"),
        ("{\"storage_cmd\":7,\"payload\":{}}", "bad_field", "storage_cmd"),
        ("{\"storage_cmd\":\"CreateUser\",\"payload\":{},\"more\":1}", "bad_field", "more"),
        ("[{\"storage_cmd\":\"RemoveUser\",\"payload\":{\"name\":\"\"}}]", "bad_field", "[0].payload.name"),
        (
            "{\"storage_cmd\":\"CreateElection\",\"payload\":{\"name\":\"e\",\"choices\":[]}}",
            "bad_field",
            "payload.choices",
        ),
    ] {
        let answer = node.call("POST /v1/commands", &[], body).await;
        assert_eq!(answer.problem(), (400, code.to_string()), "{body}");
        assert_eq!(answer.json()["field"], field, "{body}");
    }
    assert!(node.seen().is_empty());
}

#[tokio::test]
async fn broken_json_says_where() {
    let node = Node::leader().await;
    let answer = node.call("POST /v1/commands", &[], "{\n  \"storage_cmd\": }").await;
    assert_eq!(answer.problem(), (400, "bad_json".to_string()));
    assert_eq!((answer.json()["line"].as_u64(), answer.json()["column"].as_u64()), (Some(2), Some(18)));
    let answer = node.call("PUT /v1/docs/a", &[], "nul").await;
    assert_eq!(answer.problem(), (400, "bad_json".to_string()));
    for line in ["PUT /v1/docs/a", "POST /v1/commands"] {
        let answer = node.call(line, &[], "").await;
        assert_eq!(answer.problem(), (400, "bad_json".to_string()), "{line}");
    }
}

#[tokio::test]
async fn a_document_is_created_changed_and_deleted() {
    let node = Node::leader().await;
    let created = node.call("PUT /v1/docs/a/b%20c", &[], " {\"x\": [1,\n2]} ").await;
    assert_eq!((created.status.as_u16(), created.header("etag")), (201, "\"1\""));
    assert_eq!(created.json()["key"], "a/b c");
    assert_eq!(created.json()["rev"], "1");
    let got = node.call("GET /v1/docs/a/b c".replace("b c", "b%20c").as_str(), &[], "").await;
    assert_eq!((got.text.as_str(), got.header("etag")), ("{\"x\":[1,2]}", "\"1\""));
    let changed = node.call("PUT /v1/docs/a%2Fb%20c", &[("if-match", "\"1\"")], "2").await;
    assert_eq!((changed.status.as_u16(), changed.header("etag")), (200, "\"2\""));
    let deleted = node.call("DELETE /v1/docs/a/b%20c", &[("if-match", "\"2\"")], "").await;
    assert_eq!((deleted.status.as_u16(), deleted.text.as_str()), (200, "{\"key\":\"a/b c\"}"));
    assert_eq!(deleted.header("eldest-acks"), "2/3");
    assert_eq!(node.call("GET /v1/docs/a/b%20c", &[], "").await.problem(), (404, "not_found".to_string()));
    assert_eq!(node.call("DELETE /v1/docs/a/b%20c", &[], "").await.problem(), (404, "not_found".to_string()));
}

#[tokio::test]
async fn conditions_decide_who_may_write() {
    // The condition, and the status without a document, with the named revision, and with another revision.
    for (name, value, absent, same, other) in [
        ("x-nothing", "-", 201, 200, 200),
        ("if-match", "\"REV\"", 412, 200, 412),
        ("if-match", "*", 412, 200, 200),
        ("if-none-match", "*", 201, 412, 412),
        ("if-match", "REV", 400, 400, 400),
        ("if-match", "W/\"REV\"", 400, 400, 400),
        ("if-match", "\"REV\", \"x\"", 400, 400, 400),
        ("if-none-match", "\"REV\"", 400, 400, 400),
    ] {
        let node = Node::leader().await;
        let put = async |rev: &str| {
            let value = value.replace("REV", rev);
            node.call("PUT /v1/docs/a", &[(name, &value)], "1").await.status.as_u16()
        };
        assert_eq!(put("1").await, absent, "{name}: {value}, absent");
        let rev = node.call("PUT /v1/docs/a", &[], "0").await.json()["rev"].to_string();
        assert_eq!(put(rev.trim_matches('"')).await, same, "{name}: {value}, same");
        assert_eq!(put("999").await, other, "{name}: {value}, other");
    }
}

#[tokio::test]
async fn a_failed_condition_says_what_is_there() {
    let node = Node::leader().await;
    node.call("PUT /v1/docs/a", &[], "1").await;
    let answer = node.call("PUT /v1/docs/a", &[("if-match", "\"7\"")], "2").await;
    assert_eq!(answer.problem(), (412, "precondition_failed".to_string()));
    assert_eq!(answer.json()["current_rev"], "1");
}

#[tokio::test]
async fn a_retry_with_its_key_is_told_the_first_answer() {
    let node = Node::leader().await;
    let key = [("idempotency-key", "job 1")];
    let first = node.call("PUT /v1/docs/a", &key, "1").await;
    node.call("PUT /v1/docs/a", &[], "2").await;
    let again = node.call("PUT /v1/docs/a", &key, "1").await;
    assert_eq!((first.status, &first.text), (again.status, &again.text));
    assert_eq!((again.header("eldest-index"), again.header("etag")), ("1", "\"1\""));
    assert_eq!((first.header("eldest-acks"), first.header("idempotency-replayed")), ("2/3", ""));
    assert_eq!((again.header("eldest-acks"), again.header("idempotency-replayed")), ("", "true"));
    assert_eq!(node.call("GET /v1/docs/a", &[], "").await.text, "2");
    let reused = node.call("PUT /v1/docs/a", &key, "3").await;
    assert_eq!(reused.problem(), (422, "idempotency_key_reused".to_string()));
    let long = "k".repeat(256);
    for wrong in ["", long.as_str()] {
        let answer = node.call("PUT /v1/docs/a", &[("idempotency-key", wrong)], "1").await;
        assert_eq!(answer.problem(), (400, "bad_field".to_string()));
        assert_eq!(answer.json()["field"], "Idempotency-Key");
    }
}

#[tokio::test]
async fn keys_are_checked() {
    let node = Node::leader().await;
    let long = format!("PUT /v1/docs/{}", "k".repeat(1025));
    for (line, field) in [
        ("PUT /v1/docs/", "key"),
        ("PUT /v1/docs/%ff", "key"),
        ("PUT /v1/docs/%2", "key"),
        ("PUT /v1/docs/a%00b", "key"),
        ("PUT /v1/docs/a/../b", "path"),
        ("PUT /v1/docs/%2e%2E/b", "path"),
        ("DELETE /v1/docs/", "key"),
        ("PUT /v1/docs/a?levle=local", "levle"),
        ("PUT /v1/docs/a?level=local", "level"),
        (long.as_str(), "key"),
    ] {
        let answer = node.call(line, &[], "1").await;
        assert_eq!(answer.problem(), (400, "bad_field".to_string()), "{line}");
        assert_eq!(answer.json()["field"], field, "{line}");
    }
}
