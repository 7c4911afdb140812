//! The routes against a node whose loop is a small task with the real store: HTTP sees only the handle of a node.

mod access;
mod browsers;
mod bulk;
mod conflicts;
mod explain;
mod forwarding;
mod heard;
mod hostile;
mod meeting;
mod node;
mod options;
mod peers;
mod proofs;
mod reads;
mod refusals;
mod serving;
pub mod setups;
mod shares;
mod steering;
mod streams;
mod synced;
mod unread;
mod writes;

use axum::body::Body;
use axum::http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::BodyExt;
use serde_json::Value;

/// A response whose body has been read.
#[derive(Debug)]
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    text: String,
}

impl Answer {
    async fn of(response: Response<Body>) -> Answer {
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.expect("the body is at hand").to_bytes();
        let text = String::from_utf8(bytes.to_vec()).expect("answers are text");
        Answer { status: parts.status, headers: parts.headers, text }
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {:?}", self.text))
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Returns the status and the code of a complete problem.
    fn problem(&self) -> (u16, String) {
        assert_eq!(self.header("content-type"), "application/problem+json", "{self:?}");
        let body = self.json();
        for member in ["type", "title", "status", "detail", "code", "retryable", "request_id"] {
            assert!(!body[member].is_null(), "{member} is missing: {self:?}");
        }
        assert_eq!(body["status"], self.status.as_u16(), "{self:?}");
        assert_eq!(body["request_id"], self.header("x-request-id"), "{self:?}");
        assert_eq!(matches!(self.status.as_u16(), 429 | 503), self.headers.contains_key("retry-after"));
        (self.status.as_u16(), body["code"].as_str().unwrap_or_default().to_string())
    }
}

/// Builds a request from `PUT /path`, with headers, and the body.
fn request(line: &str, headers: &[(&str, &str)], body: &str) -> Request<Body> {
    let (method, path) = line.split_once(' ').expect("a method and a path");
    let mut builder = Request::builder().method(method).uri(path).header("host", "x");
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    builder.body(Body::from(body.to_string())).expect("it is well formed")
}
