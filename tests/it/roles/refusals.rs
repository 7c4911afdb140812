//! Calls that are not valid for a role, and the field that is wrong in each.

use serde_json::json;

use super::{Asks, grant};
use crate::harness::{Call, Cluster, Plan, problem};

#[tokio::test]
async fn each_bad_field_is_named() {
    let cluster = Cluster::of(1).await;
    let (long, deep) = ("x".repeat(257), format!("\"{}\"", "x".repeat(17 << 10)));
    let acquire = "/v1/roles/r/acquire";
    let cases = [
        (acquire, "{}".to_string(), "instance_id"),
        (acquire, "{\"instance_id\":7}".into(), "instance_id"),
        (acquire, "{\"instance_id\":\"\"}".into(), "instance_id"),
        (acquire, format!("{{\"instance_id\":\"{long}\"}}"), "instance_id"),
        (acquire, "{\"instance_id\":\"a\",\"ttl_ms\":999}".into(), "ttl_ms"),
        (acquire, "{\"instance_id\":\"a\",\"ttl_ms\":3600001}".into(), "ttl_ms"),
        (acquire, "{\"instance_id\":\"a\",\"ttl_ms\":1500.5}".into(), "ttl_ms"),
        (acquire, "{\"instance_id\":\"a\",\"wait_ms\":60001}".into(), "wait_ms"),
        (acquire, "{\"instance_id\":\"a\",\"wait_ms\":\"1\"}".into(), "wait_ms"),
        (acquire, "{\"instance_id\":\"a\",\"priority\":1000001}".into(), "priority"),
        (acquire, "{\"instance_id\":\"a\",\"priority\":true}".into(), "priority"),
        (acquire, format!("{{\"instance_id\":\"a\",\"address\":\"{long}\"}}"), "address"),
        (acquire, "{\"instance_id\":\"a\",\"wait\":1}".into(), "wait"),
        ("/v1/roles/r/renew", "{\"token\":1}".into(), "instance_id"),
        ("/v1/roles/r/renew", "{\"instance_id\":\"a\"}".into(), "token"),
        ("/v1/roles/r/renew", "{\"instance_id\":\"a\",\"token\":\"1\"}".into(), "token"),
        ("/v1/roles/r/renew", "{\"instance_id\":\"a\",\"token\":1,\"ttl_ms\":1}".into(), "ttl_ms"),
        ("/v1/roles/r/release", "{\"instance_id\":\"a\",\"token\":-1}".into(), "token"),
        ("/v1/roles/r/release", "{\"instance_id\":\"a\",\"token\":1,\"why\":1}".into(), "why"),
        ("/v1/roles/r/elect", "{\"instance_id\":\"a\",\"wait_ms\":1}".into(), "wait_ms"),
        ("/v1/roles/r/hold", String::new(), "instance_id"),
        ("/v1/roles/r/hold?instance_id=a&ttl_ms=soon", String::new(), "ttl_ms"),
        ("/v1/roles/r/hold?instance_id=a&ttl_ms=1", String::new(), "ttl_ms"),
        ("/v1/roles/r/hold?instance_id=a&format=xml", String::new(), "format"),
        ("/v1/roles/r/hold?instance_id=a&metadata=1", String::new(), "metadata"),
        ("/v1/roles/r/acquire?wait_ms=1", "{\"instance_id\":\"a\"}".into(), "wait_ms"),
        ("/v1/roles//acquire", "{\"instance_id\":\"a\"}".into(), "role"),
        ("/v1/roles/%ff/acquire", "{\"instance_id\":\"a\"}".into(), "role"),
    ];
    for (path, body, field) in cases {
        let answer = cluster.answer(1, Call::post(path).raw_json(&body)).await;
        assert_eq!(problem(&answer, 400, "bad_field")["field"], field, "{path} {body}");
    }
    let name = format!("/v1/roles/{long}/acquire");
    let answer = cluster.answer(1, Call::post(name).raw_json("{\"instance_id\":\"a\"}")).await;
    assert_eq!(problem(&answer, 400, "bad_field")["field"], "role");
    let metadata = format!("{{\"instance_id\":\"a\",\"metadata\":{deep}}}");
    let answer = cluster.answer(1, Call::post(acquire).raw_json(&metadata)).await;
    assert_eq!(problem(&answer, 413, "body_too_large")["field"], "metadata");
    for (query, field) in
        [("", "token"), ("?token=x", "token"), ("?token=-1", "token"), ("?tokens=1", "tokens")]
    {
        let answer = cluster.answer(1, Call::get(format!("/v1/roles/r/check{query}"))).await;
        assert_eq!(problem(&answer, 400, "bad_field")["field"], field, "{query}");
    }
    for (query, field) in [("limit=0", "limit"), ("capability=x", "capability"), ("level=x", "level")] {
        let answer = cluster.answer(1, Call::get(format!("/v1/roles?{query}"))).await;
        assert_eq!(problem(&answer, 400, "bad_field")["field"], field, "{query}");
    }
    problem(&cluster.answer(1, Call::post(acquire).raw_json("{")).await, 400, "bad_json");
    problem(&cluster.answer(1, Call::post("/v1/roles/r/seize").raw_json("{}")).await, 404, "not_found");
    problem(&cluster.answer(1, Call::delete("/v1/roles/r")).await, 405, "method_not_allowed");
}

#[tokio::test]
async fn naming_a_holder_is_an_operators() {
    let cluster = Plan::new(3).config("admin_token = \"admin-token-of-the-tests-0123456789\"").start().await;
    let asks = Asks { cluster: &cluster, node: 2 };
    problem(&asks.elect("r", "a").await, 401, "unauthorized");
    let call = Call::post("/v1/roles/r/elect").json(&json!({"instance_id": "a"}));
    for (credential, status, code) in [("Bearer wrong", 401, "unauthorized")] {
        let answer = cluster.answer(2, call.clone().header("authorization", credential)).await;
        problem(&answer, status, code);
    }
    let credential = "Bearer admin-token-of-the-tests-0123456789";
    grant(cluster.answer(2, call.header("authorization", credential)).await);
    // A client needs no credential.
    grant(asks.acquire("s", "a", json!({})).await);
}
