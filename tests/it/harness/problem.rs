//! The form of every error (RFC 9457, and the members that the contract adds).

use serde_json::Value;

use super::call::Answer;

/// The problem in an answer, which must be complete, with this status and code.
#[track_caller]
pub fn problem(answer: &Answer, status: u16, code: &str) -> Value {
    let body = peer_problem(answer, status, code);
    assert_eq!(body["request_id"].as_str(), answer.header("x-request-id"), "{}", answer.show());
    body
}

/// The same for an answer to a peer: without the headers that clients get.
#[track_caller]
pub fn peer_problem(answer: &Answer, status: u16, code: &str) -> Value {
    let shown = answer.show();
    assert_eq!(answer.status, status, "{shown}");
    assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{shown}");
    let body = answer.json();
    assert_eq!(body["code"], code, "{shown}");
    assert_eq!(body["status"], status, "{shown}");
    for member in ["type", "title", "detail", "request_id"] {
        assert!(body[member].as_str().is_some_and(|text| !text.is_empty()), "{member} is missing: {shown}");
    }
    assert!(body["retryable"].is_boolean(), "retryable is missing: {shown}");
    if status == 503 {
        assert!(answer.header("retry-after").is_some(), "no Retry-After: {shown}");
        assert_eq!(body["retryable"], true, "{shown}");
    }
    body
}
