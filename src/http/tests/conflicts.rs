//! Values that merges overrode, and the operator's merge that produces them here.

use super::Answer;
use super::node::{Control, Node, Options, TOKEN};
use crate::driver::handle::Denied;
use crate::protocol::Mode;
use crate::types::NodeId;

async fn available() -> Node {
    Node::with(Options { mode: Mode::Available, ..Options::default() }).await
}

/// Writes two documents and a user, then merges data in which one document differs and another is new.
async fn merged() -> (Node, Answer) {
    let node = available().await;
    for (key, value) in [("app/a b", "1"), ("app/same", "true")] {
        assert_eq!(node.call(&put(key), &[], value).await.status, 201);
    }
    let body = "{\"docs\":[{\"key\":\"app/a b\",\"value\":2},{\"key\":\"app/same\",\"value\":true},\
                {\"key\":\"new\",\"value\":[3]}],\"users\":[{\"name\":\"ann\"}]}";
    let answer = node.call("POST /merge_conflict", &[], body).await;
    (node, answer)
}

fn put(key: &str) -> String {
    format!("PUT /v1/docs/{}", key.replace(' ', "%20"))
}

/// Returns the ids in a page.
async fn ids(node: &Node, query: &str) -> Vec<String> {
    let page = node.call(&format!("GET /v1/conflicts{query}"), &[], "").await;
    assert_eq!(page.status, 200, "{page:?}");
    let items = page.json()["items"].as_array().cloned().unwrap_or_default();
    items.iter().map(|item| item["id"].as_str().unwrap_or_default().to_string()).collect()
}

fn in_path(id: &str) -> String {
    id.replace(' ', "%20").replace('/', "%2F").replace('@', "%40")
}

#[tokio::test]
async fn in_safe_mode_there_are_none() {
    let node = Node::leader().await;
    let page = node.call("GET /v1/conflicts", &[], "").await;
    assert_eq!((page.status.as_u16(), page.text.as_str()), (200, "{\"items\":[],\"next\":null}"));
    assert_eq!(page.header("eldest-epoch"), "7.1");
    for line in [
        "GET /v1/conflicts/doc:a:7.1@1",
        "POST /v1/conflicts/doc:a:7.1@1/apply",
        "POST /v1/conflicts/doc:a:7.1@1/drop",
        "POST /v1/conflicts/doc:a:7.1@1",
        "POST /v1/conflicts/doc:a:7.1@1/forget",
    ] {
        assert_eq!(node.call(line, &[], "").await.problem(), (404, "not_found".to_string()), "{line}");
    }
    let merge = node.call("POST /merge_conflict", &[], "{}").await;
    assert_eq!(merge.problem(), (409, "mode_mismatch".to_string()));
    assert_eq!(merge.json()["mode"], "safe");
}

#[tokio::test]
async fn a_merge_adds_what_is_new_and_keeps_what_differs() {
    let (node, answer) = merged().await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.json()["epoch"], "7.1");
    assert_eq!((&answer.json()["added"], &answer.json()["conflicts"]), (&2.into(), &1.into()));
    assert!(answer.json()["index"].as_u64().is_some_and(|index| index > 2), "{answer:?}");
    assert_eq!(node.call("GET /v1/docs/app/a%20b", &[], "").await.text, "1");
    assert_eq!(node.call("GET /v1/docs/new", &[], "").await.text, "[3]");
    assert_eq!(node.call("GET /v1/users/ann", &[], "").await.status, 200);
    assert_eq!(ids(&node, "").await.len(), 1);
}

#[tokio::test]
async fn conflicts_are_listed_and_shown() {
    let (node, _) = merged().await;
    let all = ids(&node, "").await;
    assert!(all[0].starts_with("doc:app/a b:7.1@"), "{all:?}");
    for (query, found) in [
        ("?kind=doc", true),
        ("?kind=doc&prefix=app%2F", true),
        ("?kind=doc&prefix=new", false),
        ("?kind=user", false),
        ("?kind=vote&prefix=app", false),
        ("?level=local&limit=1", true),
    ] {
        assert_eq!(!ids(&node, query).await.is_empty(), found, "{query}");
    }
    assert_eq!(ids(&node, &format!("?after={}", in_path(&all[0]))).await, [""; 0]);
    let one = node.call(&format!("GET /v1/conflicts/{}", in_path(&all[0])), &[], "").await.json();
    assert_eq!(
        (&one["id"], &one["kind"], &one["key"]),
        (&all[0].as_str().into(), &"doc".into(), &"app/a b".into())
    );
    assert_eq!((&one["lost"]["value"], &one["kept"]["value"]), (&2.into(), &1.into()));
    assert_eq!((&one["kept"]["epoch"], &one["kept"]["index"]), (&"7.1".into(), &1.into()));
}

#[tokio::test]
async fn a_conflict_is_explained() {
    let (node, _) = merged().await;
    let id = ids(&node, "").await.remove(0);
    let shown = node.call(&format!("GET /v1/conflicts/{}", in_path(&id)), &[], "").await.json();
    let answer = node.call(&format!("GET /v1/explain/conflicts/{}", in_path(&id)), &[], "").await;
    assert_eq!((answer.status.as_u16(), answer.header("eldest-epoch")), (200, "7.1"), "{answer:?}");
    let mut told = answer.json();
    let says = told.as_object_mut().and_then(|told| told.remove("says")).expect("sentences");
    assert_eq!(told, shown);
    let said = |number: usize| says[number].as_str().unwrap_or_default();
    assert_eq!(
        said(0),
        "Both sides of a split changed the document app/a b, and one value was kept when they merged."
    );
    assert_eq!(said(1), "Kept: 1, written on the side of node 1, in epoch 7.1");
    assert!(said(2).starts_with("Lost: 2, written on the side of node "), "{says}");
    assert_eq!(said(3), format!("To restore the lost one: eldest conflicts apply '{id}'"));
    assert_eq!(said(4), format!("To drop it:              eldest conflicts drop '{id}'"));
    let unknown = node.call("GET /v1/explain/conflicts/doc:a:7.1@1", &[], "").await;
    assert_eq!(unknown.problem(), (404, "not_found".to_string()));
}

#[tokio::test]
async fn a_value_is_put_back_or_let_go() {
    for (order, value) in [("apply", "2"), ("drop", "1")] {
        let (node, _) = merged().await;
        let id = ids(&node, "").await.remove(0);
        let line = format!("POST /v1/conflicts/{}/{order}", in_path(&id));
        let wrong = node.call(&line, &[], "{\"x\":1}").await;
        assert_eq!(wrong.problem(), (400, "bad_field".to_string()), "{order}");
        let key = [("idempotency-key", "once")];
        let done = node.call(&line, &key, "").await;
        assert_eq!((done.status.as_u16(), done.header("eldest-acks")), (200, "2/3"), "{done:?}");
        assert_eq!(node.call("GET /v1/docs/app/a%20b", &[], "").await.text, value, "{order}");
        assert_eq!(ids(&node, "").await, [""; 0], "{order}");
        assert_eq!(node.call(&line, &key, "").await.header("idempotency-replayed"), "true", "{order}");
        assert_eq!(node.call(&line, &[], "").await.problem(), (404, "not_found".to_string()), "{order}");
    }
}

#[tokio::test]
async fn a_merge_is_the_leaders_and_the_operators() {
    let node = Node::with(Options { mode: Mode::Available, token: Some(TOKEN), ..Options::default() }).await;
    assert_eq!(
        node.call("POST /merge_conflict", &[], "{}").await.problem(),
        (401, "unauthorized".to_string())
    );
    let right = format!("Bearer {TOKEN}");
    let allowed = [("authorization", right.as_str())];
    for (body, status, code) in [
        ("{\"docs\":", 400, "bad_json"),
        ("{\"docs\":[{\"key\":\"\",\"value\":1}]}", 400, "bad_field"),
        ("{\"cars\":[]}", 400, "bad_field"),
    ] {
        let answer = node.call("POST /merge_conflict", &allowed, body).await;
        assert_eq!(answer.problem(), (status, code.to_string()), "{body}");
    }
    assert!(node.seen().is_empty());
    node.deny([Denied::ServiceDown { reason: "x".into() }]).await;
    let held = node.call("POST /merge_conflict", &allowed, "{\"docs\":[{\"key\":\"a\",\"value\":1}]}").await;
    assert_eq!(held.problem(), (503, "service_down".to_string()));
    node.control(Control::Show(Some(NodeId(2)))).await;
    let elsewhere = node.call("POST /merge_conflict", &allowed, "{}").await;
    assert_eq!(elsewhere.problem(), (421, "not_leader".to_string()));
    assert_eq!(elsewhere.json()["leader_node"]["id"], 2);
}

#[tokio::test]
async fn a_revision_names_its_side() {
    let node = available().await;
    let created = node.call("PUT /v1/docs/a", &[], "1").await;
    assert_eq!((created.header("etag"), &created.json()["rev"]), ("\"7.1@1\"", &"7.1@1".into()));
    assert_eq!((created.header("eldest-epoch"), created.header("eldest-index")), ("7.1", "1"));
    let other = node.call("PUT /v1/docs/a", &[("if-match", "\"7.2@1\"")], "2").await;
    assert_eq!(other.problem(), (412, "precondition_failed".to_string()));
    assert_eq!(other.json()["current_rev"], "7.1@1");
    let same = node.call("PUT /v1/docs/a", &[("if-match", "\"7.1@1\"")], "2").await;
    assert_eq!((same.status.as_u16(), same.header("etag")), (200, "\"7.1@2\""));
    let known = node.call("GET /v1/docs/a", &[("if-none-match", "\"7.1@2\"")], "").await;
    assert_eq!((known.status.as_u16(), known.header("etag")), (304, "\"7.1@2\""));
}

/// In available mode no read waits for a majority, so the problem of a late read does not mention one.
#[tokio::test]
async fn a_late_read_speaks_of_no_majority() {
    let mut limits = super::node::limits();
    limits.request_timeout = std::time::Duration::from_millis(400);
    let node = Node::with(Options { mode: Mode::Available, limits, ..Options::default() }).await;
    node.control(Control::FallSilent).await;
    for line in ["GET /v1/docs/a", "GET /v1/status"] {
        assert_eq!(node.call(line, &[], "").await.problem(), (503, "no_leader".to_string()), "{line}");
    }
}
