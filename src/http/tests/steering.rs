//! The seed's routes without an envelope, and the further routes of operators.

use super::node::{Control, Node, Options, TOKEN};
use crate::driver::handle::Denied;
use crate::types::NodeId;

#[tokio::test]
async fn the_seeds_routes_answer_operators() {
    let node = Node::leader().await;
    for (line, body, status, text) in [
        ("POST /heartbeat", "", 200, ""),
        ("POST /hearbeat", "{}", 200, ""),
        ("POST /declare_capability", "{\"node_idx\": 2}", 200, "{\"approved\":true,\"reason\":\"because\"}"),
        ("POST /declare_capability", "{\"node_idx\": 3}", 200, "{\"approved\":false,\"reason\":\"because\"}"),
        ("POST /is_leader", "", 200, "true"),
        ("POST /is_leader", "{}", 200, "true"),
        ("POST /catch_up", "{\"snapshot_id\": 1}", 200, "{\"logs\":[\"1|{\\\"name\\\":\\\"tester\\\"}\"]}"),
    ] {
        let answer = node.call(line, &[], body).await;
        assert_eq!((answer.status.as_u16(), answer.text.as_str()), (status, text), "{line} {body}");
    }
    node.control(Control::Show(Some(NodeId(2)))).await;
    assert_eq!(node.call("POST /is_leader", &[], "").await.text, "false");
}

#[tokio::test]
async fn what_only_nodes_may_do_is_refused() {
    let node = Node::leader().await;
    let code = async |line: &str, body: &str| node.call(line, &[], body).await.problem();
    let refused = |status, code: &str| (status, code.to_string());
    assert_eq!(code("POST /writesync", "").await, refused(409, "leader_does_not_take_writesync"));
    assert_eq!(code("POST /recv_elect", "{\"approved\":true}").await, refused(400, "envelope_required"));
    assert_eq!(code("POST /merge_conflict", "{}").await, refused(409, "mode_mismatch"));
    node.control(Control::Show(Some(NodeId(2)))).await;
    assert_eq!(code("POST /writesync", "").await, refused(403, "not_the_leader_calling"));
    node.deny([Denied::NotLeader { leader: NodeId(2) }]).await;
    assert_eq!(code("POST /catch_up", "{\"snapshot_id\": 1}").await, refused(421, "not_leader"));
}

#[tokio::test]
async fn a_catch_up_from_the_beginning_carries_the_whole_data() {
    let node = Node::leader().await;
    node.call("PUT /v1/docs/a", &[], "[1]").await;
    let answer = node.call("POST /catch_up", &[], "{\"snapshot_id\": 0}").await.json();
    assert_eq!(answer["snapshot_id"], 4);
    assert_eq!(answer["snapshot"]["docs"][0]["value"], serde_json::json!([1]));
    assert_eq!((&answer["skip"], &answer["logs"]), (&serde_json::json!(2), &serde_json::json!([])));
}

#[tokio::test]
async fn wrong_bodies_name_the_field() {
    let node = Node::leader().await;
    for (line, body, field) in [
        ("POST /declare_capability", "{}", "node_idx"),
        ("POST /declare_capability", "{\"node_idx\":\"2\"}", "node_idx"),
        ("POST /declare_capability", "{\"node_idx\":9}", "node_idx"),
        ("POST /elect", "", "node_idx"),
        ("POST /catch_up", "{}", "snapshot_id"),
        ("POST /catch_up", "{\"snapshot_id\":-1}", "snapshot_id"),
        ("POST /heartbeat", "{\"x\":1}", "x"),
        ("POST /service_down", "{\"ttl_ms\":0}", "ttl_ms"),
        ("POST /service_down", "{\"ttl_ms\":3600001}", "ttl_ms"),
        ("POST /service_down", "{\"ttl_ms\":\"1\"}", "ttl_ms"),
        ("POST /service_down", "{\"reason\":\"a\\nb\"}", "reason"),
        ("POST /service_up", "{\"x\":1}", "x"),
        ("POST /form", "{\"without\":[7]}", "without"),
        ("POST /form", "{\"without\":3}", "without"),
    ] {
        let answer = node.call(line, &[], body).await;
        assert_eq!(answer.problem(), (400, "bad_field".to_string()), "{line} {body}");
        assert_eq!(answer.json()["field"], field, "{line} {body}");
    }
    assert!(node.seen().is_empty());
}

#[tokio::test]
async fn controls_reach_the_node() {
    let node = Node::leader().await;
    for (line, body, text) in [
        ("POST /service_down", "", "{\"reason\":\"\",\"service\":\"down\",\"ttl_ms\":60000}"),
        (
            "POST /service_down",
            "{\"ttl_ms\":5,\"reason\":\"move\"}",
            "{\"reason\":\"move\",\"service\":\"down\",\"ttl_ms\":5}",
        ),
        ("POST /service_up", "", "{\"service\":\"up\"}"),
        ("POST /elect", "{\"node_idx\":2}", "{\"leader\":2}"),
        ("POST /handoff", "{}", "{\"leader\":1}"),
        ("POST /form", "{\"without\":[3]}", "{\"formed\":true,\"without\":[3]}"),
    ] {
        let answer = node.call(line, &[], body).await;
        assert_eq!((answer.status.as_u16(), answer.text.as_str()), (200, text), "{line} {body}");
    }
    assert_eq!(
        node.seen(),
        [
            "down Operator 60000ms \"\"",
            "down Operator 5ms \"move\"",
            "up Operator",
            "hand over to Some(NodeId(2)) by anonymous",
            "hand over to None by anonymous",
            "form without {NodeId(3)}",
        ]
    );
}

#[tokio::test]
async fn controls_need_the_token() {
    let node = Node::with(Options { token: Some(TOKEN), ..Options::default() }).await;
    let right = format!("Bearer {TOKEN}");
    for line in [
        "POST /service_down",
        "POST /service_up",
        "POST /elect",
        "POST /handoff",
        "POST /form",
        "POST /merge_conflict",
    ] {
        let body = if line == "POST /elect" { "{\"node_idx\":2}" } else { "" };
        let none = node.call(line, &[], body).await;
        assert_eq!(none.problem(), (401, "unauthorized".to_string()), "{line}");
        assert_eq!(none.header("www-authenticate"), "Bearer realm=\"eldest\"", "{line}");
        let wrong = node.call(line, &[("authorization", "Bearer x")], body).await;
        assert_eq!(wrong.problem(), (401, "unauthorized".to_string()), "{line}");
        assert!(node.seen().is_empty(), "{line}");
    }
    assert_eq!(node.call("POST /service_up", &[("authorization", &right)], "").await.status, 200);
    assert_eq!(node.seen(), ["up Operator"]);
}
