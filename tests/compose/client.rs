//! A client that does what curl would do: one call, one answer, over a port that the engine publishes.

use std::time::Duration;

use serde_json::Value;

/// Longer than any election here.
const CALL_MAX: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Value,
}

#[derive(Clone, Debug)]
pub struct Client(reqwest::Client);

pub fn port(node: u32) -> u16 {
    9000 + node as u16
}

impl Client {
    pub fn new() -> Client {
        // A pooled connection would say nothing about the network as it is now.
        let client = reqwest::Client::builder()
            .no_proxy()
            .timeout(CALL_MAX)
            .pool_max_idle_per_host(0)
            .tls_backend_preconfigured(eldest_tls::trusting_no_certificate())
            .build();
        Client(client.expect("a client"))
    }

    /// Returns None if there was no answer; the outcome is then unknown.
    pub async fn get(&self, node: u32, path: &str) -> Option<Answer> {
        answer(self.0.get(url(node, path))).await
    }

    pub async fn put(&self, node: u32, path: &str, body: &Value, key: &str) -> Option<Answer> {
        let request = self.0.put(url(node, path)).header("idempotency-key", key);
        answer(request.header("content-type", "application/json").body(body.to_string())).await
    }
}

fn url(node: u32, path: &str) -> String {
    format!("http://127.0.0.1:{}{path}", port(node))
}

async fn answer(request: reqwest::RequestBuilder) -> Option<Answer> {
    let response = request.send().await.ok()?;
    let status = response.status().as_u16();
    let bytes = response.bytes().await.ok()?;
    let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    Some(Answer { status, body })
}
