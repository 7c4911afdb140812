//! All errors, and the problem that reports each.

use std::time::Duration;

use futures_util::FutureExt;

use super::node::{Control, Node, Options, limits};
use super::request;
use crate::config::HttpLimits;
use crate::driver::handle::Denied;
use crate::store::Reason;
use crate::types::NodeId;

#[tokio::test]
async fn every_refusal_has_its_code() {
    let node = Node::leader().await;
    for (denied, status, code) in refusals() {
        node.deny([denied.clone()]).await;
        let answer = node.call("PUT /v1/docs/a", &[], "1").await;
        assert_eq!(answer.problem(), (status, code.to_string()), "{denied:?}");
        assert_eq!(answer.json()["retryable"], matches!(status, 429 | 503 | 504), "{denied:?}");
        assert_eq!(answer.json()["leader_node"]["id"], 1, "{denied:?}");
        assert_eq!(answer.header("eldest-acks"), "");
    }
    node.deny([Denied::ServiceDown { reason: "upgrade".into() }]).await;
    let answer = node.call("PUT /v1/docs/a", &[], "1").await;
    assert!(answer.json()["detail"].as_str().is_some_and(|detail| detail.ends_with("upgrade")));
}

#[tokio::test]
async fn what_is_not_there_is_a_problem_too() {
    let node = Node::leader().await;
    for line in
        ["GET /nothing", "POST /v1", "GET /v1/rolls", "POST /override_all_data", "GET /v1/docs/a/../../x"]
    {
        let (status, _) = node.call(line, &[], "").await.problem();
        assert!(matches!(status, 404 | 400), "{line}");
    }
    assert_eq!(node.call("GET /nothing", &[], "").await.problem(), (404, "not_found".to_string()));
}

#[tokio::test]
async fn a_wrong_method_is_told_the_right_ones() {
    let node = Node::leader().await;
    for (line, allow) in [
        ("GET /v1/commands", "POST"),
        ("PATCH /v1/docs/a", "GET,HEAD,PUT,DELETE,POST"),
        ("POST /v1/users", "GET,HEAD"),
        ("GET /is_leader", "POST"),
        ("PUT /livez", "GET,HEAD"),
    ] {
        let answer = node.call(line, &[], "").await;
        assert_eq!(answer.problem(), (405, "method_not_allowed".to_string()), "{line}");
        assert_eq!(answer.header("allow"), allow, "{line}");
    }
    let options = node.call("OPTIONS /v1/docs/a", &[], "").await;
    assert_eq!((options.status.as_u16(), options.header("allow")), (200, "GET,HEAD,PUT,DELETE,POST"));
    assert_eq!(node.call("HEAD /livez", &[], "").await.status, 200);
}

#[tokio::test]
async fn bodies_have_a_size_and_a_kind() {
    let node =
        Node::with(Options { limits: HttpLimits { body_bytes: 1 << 20, ..limits() }, ..Options::default() })
            .await;
    let large = format!("\"{}\"", "x".repeat(1 << 20));
    let answer = node.call("PUT /v1/docs/a", &[], &large).await;
    assert_eq!(answer.problem(), (413, "body_too_large".to_string()));
    let fits = format!("\"{}\"", "x".repeat((1 << 20) - 2));
    assert_eq!(node.call("PUT /v1/docs/a", &[], &fits).await.status, 201);
    for line in ["PUT /v1/docs/a", "POST /v1/commands", "POST /service_down", "POST /is_leader"] {
        let answer = node.call(line, &[("content-type", "text/plain")], "{}").await;
        assert_eq!(answer.problem(), (415, "unsupported_media_type".to_string()), "{line}");
    }
}

#[tokio::test]
async fn a_value_has_a_size_of_its_own() {
    let node =
        Node::with(Options { limits: HttpLimits { body_bytes: 4 << 20, ..limits() }, ..Options::default() })
            .await;
    let large = format!("\"{}\"", "x".repeat(1 << 20));
    let answer = node.call("PUT /v1/docs/a", &[], &large).await;
    assert_eq!(answer.problem(), (413, "body_too_large".to_string()));
    assert_eq!(answer.json()["field"], "value");
}

#[tokio::test]
async fn a_head_has_a_size() {
    let node = Node::leader().await;
    let long = "x".repeat(9000);
    let answer = node.call("GET /livez", &[("x-long", &long)], "").await;
    assert_eq!(answer.problem(), (431, "request_header_fields_too_large".to_string()));
}

#[tokio::test]
async fn request_ids_are_echoed_or_made() {
    let node = Node::leader().await;
    let answer = node.call("GET /livez", &[("x-request-id", "mine-1")], "").await;
    assert_eq!(answer.header("x-request-id"), "mine-1");
    let long = "x".repeat(129);
    let mut made = Vec::new();
    for unusable in ["", "with blank", long.as_str()] {
        let answer = node.call("GET /livez", &[("x-request-id", unusable)], "").await;
        assert!(!answer.header("x-request-id").is_empty() && answer.header("x-request-id") != unusable);
        made.push(answer.header("x-request-id").to_string());
    }
    made.sort();
    made.dedup();
    assert_eq!(made.len(), 3);
}

#[tokio::test]
async fn beyond_the_bound_calls_are_refused_at_once_and_probes_are_not() {
    let node =
        Node::with(Options { limits: HttpLimits { requests: 1, ..limits() }, ..Options::default() }).await;
    node.control(Control::FallSilent).await;
    let waiting = node.front.answer(None, request("PUT /v1/docs/a", &[], "1"));
    let mut waiting = std::pin::pin!(waiting);
    assert!(waiting.as_mut().now_or_never().is_none());
    let refused = node.call("PUT /v1/docs/b", &[], "2").await;
    assert_eq!(refused.problem(), (429, "too_many_requests".to_string()));
    assert_eq!(node.call("GET /livez", &[], "").await.status, 200);
}

#[tokio::test]
async fn late_verdicts_are_unknown_and_late_reads_are_not() {
    let short = HttpLimits { request_timeout: Duration::from_millis(400), ..limits() };
    let node = Node::with(Options { limits: short, ..Options::default() }).await;
    node.control(Control::FallSilent).await;
    let write = node.call("PUT /v1/docs/a", &[], "1").await;
    assert_eq!(write.problem(), (504, "outcome_unknown".to_string()));
    let read = node.call("GET /v1/docs/a", &[], "").await;
    assert_eq!(read.problem(), (503, "no_quorum".to_string()));
    assert_eq!(node.call("GET /readyz", &[], "").await.problem(), (503, "no_quorum".to_string()));
    assert_eq!(node.call("POST /elect", &[], "{\"node_idx\":2}").await.problem().0, 504);
    assert_eq!(node.call("POST /catch_up", &[], "{\"snapshot_id\":1}").await.problem().0, 503);
}

#[tokio::test]
async fn a_local_read_and_a_probe_of_a_hung_loop_end_too() {
    let short = HttpLimits { request_timeout: Duration::from_millis(400), ..limits() };
    let node = Node::with(Options { limits: short, ..Options::default() }).await;
    node.control(Control::FallSilent).await;
    for line in [
        "GET /v1/docs/a?level=local",
        "GET /v1/status",
        "GET /leader",
        "POST /is_leader",
        "POST /declare_capability",
    ] {
        let answer =
            node.call(line, &[], if line.ends_with("ability") { "{\"node_idx\":2}" } else { "" }).await;
        assert_eq!(answer.problem(), (503, "no_quorum".to_string()), "{line}");
    }
}

#[tokio::test]
async fn nobody_leads() {
    for (denied, code) in [(Denied::NoLeader, "no_leader"), (Denied::NoQuorum, "no_quorum")] {
        let node = Node::leader().await;
        node.control(Control::Show(None)).await;
        node.deny(std::iter::repeat_n(denied, 10_000)).await;
        let answer = node.call("PUT /v1/docs/a", &[], "1").await;
        assert_eq!(answer.problem(), (503, code.to_string()));
        assert!(answer.json()["leader_node"].is_null());
        assert!(!answer.headers.contains_key("eldest-leader"));
    }
}

#[tokio::test]
async fn advice_ends_with_the_time_without_a_leader() {
    let node = Node::leader().await;
    let detail = async || {
        node.deny(std::iter::repeat_n(Denied::NoLeader, 10_000)).await;
        let answer = node.call("PUT /v1/docs/a", &[], "1").await;
        answer.json()["detail"].as_str().expect("a detail").to_string()
    };
    let usual = "there is no leader now; an election may be in progress";
    node.control(Control::Show(None)).await;
    assert_eq!(detail().await, usual);
    node.control(Control::Advise("start node-2")).await;
    assert_eq!(detail().await, "start node-2");
    // There was a leader meanwhile. Why there is none now is not known yet.
    node.control(Control::Show(Some(NodeId(1)))).await;
    node.control(Control::Show(None)).await;
    assert_eq!(detail().await, usual);
}

/// The attempt surely was not applied, but the outcome of the call is unknown (P15).
#[tokio::test]
async fn a_refused_retry_of_what_may_have_happened_is_unknown() {
    let key = [("idempotency-key", "k1")];
    for denied in [Denied::DiskFull, Denied::CatchingUp, Denied::TooMany { bound: "records under way" }] {
        let node = Node::leader().await;
        node.control(Control::Doubt).await;
        node.deny([denied.clone(), denied.clone()]).await;
        let answer = node.call("PUT /v1/docs/a", &key, "1").await;
        assert_eq!(answer.problem(), (504, "outcome_unknown".to_string()), "{denied:?}");
        // Without a key every call is a separate one.
        let answer = node.call("PUT /v1/docs/a", &[], "1").await;
        assert_ne!(answer.problem().0, 504, "{denied:?}");
    }
    let node = Node::leader().await;
    node.deny([Denied::DiskFull]).await;
    assert_eq!(node.call("PUT /v1/docs/a", &key, "1").await.problem(), (503, "disk_full".to_string()));
    node.control(Control::Doubt).await;
    node.control(Control::Show(Some(NodeId(3)))).await;
    let answer = node.call("PUT /v1/docs/a?forward=no", &key, "1").await;
    assert_eq!(answer.problem(), (421, "not_leader".to_string()), "it is told where to go");
}

#[tokio::test]
async fn who_does_not_want_to_be_forwarded_is_told_where_to_go() {
    let node = Node::leader().await;
    node.control(Control::Show(Some(NodeId(3)))).await;
    for (line, headers) in [
        ("PUT /v1/docs/a?forward=no", [("x-nothing", "-")]),
        ("GET /v1/docs/a?forward=no", [("x-nothing", "-")]),
        ("PUT /v1/docs/a", [("eldest-forwarded", "2")]),
        ("POST /handoff?forward=no", [("x-nothing", "-")]),
    ] {
        let answer = node.call(line, &headers, if line.starts_with("PUT") { "1" } else { "" }).await;
        assert_eq!(answer.problem(), (421, "not_leader".to_string()), "{line}");
        assert_eq!(answer.json()["leader_node"]["id"], 3, "{line}");
        let url = answer.json()["leader_node"]["url"].as_str().map(str::to_string);
        assert_eq!(url, node.context.url(NodeId(3)), "{line}");
    }
    assert!(node.seen().is_empty());
}

/// Returns one of each kind of final refusal, with the problem that it becomes.
fn refusals() -> Vec<(Denied, u16, &'static str)> {
    let rejected = |reason: Reason| Denied::Rejected(reason.into());
    vec![
        (Denied::CatchingUp, 503, "catching_up"),
        (Denied::ServiceDown { reason: "upgrade".into() }, 503, "service_down"),
        (Denied::DiskFull, 503, "disk_full"),
        (Denied::TooMany { bound: "records under way" }, 429, "too_many_requests"),
        (Denied::FormatNotShared, 503, "catching_up"),
        (Denied::AlreadyFormed, 409, "rule_violated"),
        (Denied::NotAnHeir, 409, "rule_violated"),
        (Denied::Stopping, 503, "no_leader"),
        (Denied::Unknown, 504, "outcome_unknown"),
        (Denied::GivenUp { why: "it took too long" }, 503, "restore_given_up"),
        (rejected(Reason::NotStaged), 503, "restore_given_up"),
        (rejected(Reason::KeyReused), 422, "idempotency_key_reused"),
    ]
}
