//! Sends spans to a collector: OTLP over HTTP, as JSON.

use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::span::{Span, Spans};

/// The maximum number of spans in one call: some hundred kilobytes.
const BATCH_MOST: usize = 512;

/// The time for which spans are gathered before they are sent together.
/// Each call to the collector has a cost, and a batch saves most of it. A full batch is sent at once.
const GATHERED_FOR: Duration = Duration::from_secs(1);

/// The time limit of a call to the collector. A slower collector loses the spans of the call.
/// Spans of new calls wait in the queue meanwhile, and are lost when it is full. Nothing is sent again: the
/// collector may have the spans already.
const CALL_MOST: Duration = Duration::from_secs(5);

/// A repeated error is logged again after this time.
const SILENT_FOR: Duration = Duration::from_secs(60);

/// The span of a server, in OTLP's numbers.
const SERVER: u8 = 2;

/// The status of a failed call, in OTLP's numbers: the node itself was at fault.
const FAILED: u8 = 2;

#[derive(Debug)]
pub struct Exporter {
    client: reqwest::Client,
    url: String,
    /// The description of this node for the collector.
    resource: Value,
    spans: Spans,
    said: Option<Instant>,
}

impl Exporter {
    /// `url` is the collector's, without a path.
    pub fn new(client: reqwest::Client, url: &str, cluster: &str, node: &str, spans: Spans) -> Exporter {
        let resource = json!({"attributes": [
            text("service.name", "eldest"),
            text("service.namespace", cluster),
            text("service.instance.id", node),
            text("service.version", env!("CARGO_PKG_VERSION")),
        ]});
        let url = format!("{}/v1/traces", url.trim_end_matches('/'));
        Exporter { client, url, resource, spans, said: None }
    }

    /// Runs until all senders of spans are gone.
    pub async fn run(mut self, mut from: mpsc::Receiver<Span>) {
        let mut batch = Vec::new();
        while from.recv_many(&mut batch, BATCH_MOST).await > 0 {
            if batch.len() < BATCH_MOST {
                sleep(GATHERED_FOR).await;
                while batch.len() < BATCH_MOST
                    && let Ok(span) = from.try_recv()
                {
                    batch.push(span);
                }
            }
            if let Err(why) = self.send(&batch).await {
                self.spans.lose(batch.len() as u64);
                self.complain(&why);
            }
            batch.clear();
        }
    }

    async fn send(&self, batch: &[Span]) -> Result<(), String> {
        let body = body(&self.resource, batch).to_string();
        let call = self.client.post(&self.url).header("content-type", "application/json").body(body);
        let answer = call.timeout(CALL_MOST).send().await.map_err(|error| error.to_string())?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            status => Err(format!("the collector answered {status}")),
        }
    }

    fn complain(&mut self, why: &str) {
        if self.said.is_none_or(|said| said.elapsed() >= SILENT_FOR) {
            self.said = Some(Instant::now());
            tracing::warn!(
                url = self.url,
                lost = self.spans.lost(),
                why,
                "cannot send spans to the collector"
            );
        }
    }
}

fn body(resource: &Value, batch: &[Span]) -> Value {
    let spans: Vec<Value> = batch.iter().map(encoded).collect();
    json!({"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "eldest"}, "spans": spans}]}]})
}

fn encoded(span: &Span) -> Value {
    let began = span.began.duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut encoded = json!({
        "traceId": format!("{:032x}", span.context.trace),
        "spanId": format!("{:016x}", span.context.span),
        "name": format!("{} {}", span.method, span.route),
        "kind": SERVER,
        // Numbers of 64 bits are strings in this format.
        "startTimeUnixNano": began.as_nanos().to_string(),
        "endTimeUnixNano": (began + span.took).as_nanos().to_string(),
        "attributes": [
            text("http.request.method", &span.method),
            text("url.path", &span.path),
            {"key": "http.response.status_code", "value": {"intValue": span.status.to_string()}},
            text("eldest.request_id", &span.request_id),
        ],
    });
    if let Some(parent) = span.context.parent {
        encoded["parentSpanId"] = json!(format!("{parent:016x}"));
    }
    if span.status >= 500 {
        encoded["status"] = json!({"code": FAILED});
    }
    encoded
}

fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

#[cfg(test)]
mod tests {
    use super::super::context::TraceContext;
    use super::*;

    #[test]
    fn spans_are_written_as_the_standard_has_them() {
        let context = TraceContext { trace: 0xabc, span: 7, parent: Some(6), sampled: true };
        let span = Span {
            context,
            method: "PUT".to_string(),
            route: "docs",
            path: "/v1/docs/k".to_string(),
            status: 503,
            request_id: "r-1".to_string(),
            began: UNIX_EPOCH + Duration::from_nanos(1_796_000_000_000_000_001),
            took: Duration::from_nanos(500),
        };
        let root = Span { context: TraceContext { parent: None, ..context }, status: 200, ..span.clone() };
        let body = body(&json!({}), &[span, root]);
        let spans = &body["resourceSpans"][0]["scopeSpans"][0]["spans"];
        assert_eq!(
            spans[0],
            json!({
                "traceId": "00000000000000000000000000000abc",
                "spanId": "0000000000000007",
                "parentSpanId": "0000000000000006",
                "name": "PUT docs",
                "kind": 2,
                "startTimeUnixNano": "1796000000000000001",
                "endTimeUnixNano": "1796000000000000501",
                "attributes": [
                    {"key": "http.request.method", "value": {"stringValue": "PUT"}},
                    {"key": "url.path", "value": {"stringValue": "/v1/docs/k"}},
                    {"key": "http.response.status_code", "value": {"intValue": "503"}},
                    {"key": "eldest.request_id", "value": {"stringValue": "r-1"}},
                ],
                "status": {"code": 2},
            })
        );
        assert_eq!((spans[1].get("parentSpanId"), spans[1].get("status")), (None, None));
    }
}
