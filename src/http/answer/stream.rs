//! Streams send events one after the other, as server-sent events or as one line of JSON each.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use axum::http::{HeaderMap, Response};
use bytes::Bytes;
use futures_util::Stream;
use serde_json::{Map, Value, json};

use super::problem::Problem;
use crate::config::HttpLimits;

/// The maximum time without bytes: proxies and load balancers treat a silent connection as dead.
const SILENCE_MOST: Duration = Duration::from_secs(5);

/// The header that an `EventSource` sends when it reconnects.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Asks proxies not to buffer the response.
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The silence must also be shorter than this server's own idle time-out.
pub fn silence(limits: &HttpLimits) -> Duration {
    SILENCE_MOST.min(limits.idle_timeout / 2)
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    #[default]
    Sse,
    Ndjson,
}

impl Format {
    pub fn parse(text: &str) -> Result<Format, Problem> {
        match text {
            "sse" => Ok(Format::Sse),
            "ndjson" => Ok(Format::Ndjson),
            _ => Err(Problem::field("format", "format must be sse or ndjson")),
        }
    }

    /// Writes one event; its name and its id, if any, are in the JSON too.
    pub fn event(self, kind: &str, id: Option<&str>, members: Value) -> Bytes {
        let mut all = Map::new();
        all.extend(id.map(|id| ("id".to_string(), id.into())));
        all.insert("kind".to_string(), kind.into());
        if let Value::Object(members) = members {
            all.extend(members);
        }
        let json = Value::Object(all);
        match (self, id) {
            (Format::Ndjson, _) => format!("{json}\n").into(),
            (Format::Sse, Some(id)) => format!("id: {id}\nevent: {kind}\ndata: {json}\n\n").into(),
            (Format::Sse, None) => format!("event: {kind}\ndata: {json}\n\n").into(),
        }
    }

    /// Writes the reason why the stream ends. The client may reconnect.
    /// An error inside a stream cannot have a status, because the status was sent with the head. So it is an
    /// event, and the last one.
    pub fn end(self, code: &str, detail: &str) -> Bytes {
        self.event("error", None, json!({"code": code, "detail": detail, "retryable": true}))
    }

    /// Writes an empty message that keeps the connection alive.
    /// A client's parser skips both: a comment in one form, an empty line in the other.
    pub fn sign_of_life(self) -> Bytes {
        Bytes::from_static(match self {
            Format::Sse => b":\n\n",
            Format::Ndjson => b"\n",
        })
    }
}

/// Returns the id of the last event that the caller has received, if it states one.
pub fn last_event_id(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let Some(value) = headers.get(LAST_EVENT_ID) else {
        return Ok(None);
    };
    match value.to_str() {
        Ok(text) => Ok(Some(text)),
        Err(_) => Err(Problem::field("Last-Event-ID", "must be visible ASCII")),
    }
}

pub fn response(
    format: Format,
    events: impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static,
) -> Response<Body> {
    let mut response = Response::new(Body::from_stream(events));
    let kind = match format {
        Format::Sse => HeaderValue::from_static("text/event-stream"),
        Format::Ndjson => HeaderValue::from_static("application/x-ndjson"),
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, kind);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_event_in_both_forms() {
        let text = |bytes: Bytes| String::from_utf8(bytes.to_vec()).expect("text");
        let json = "{\"id\":\"7.1@12\",\"kind\":\"bookmark\"}";
        assert_eq!(
            text(Format::Sse.event("bookmark", Some("7.1@12"), Value::Null)),
            format!("id: 7.1@12\nevent: bookmark\ndata: {json}\n\n")
        );
        assert_eq!(text(Format::Ndjson.event("bookmark", Some("7.1@12"), Value::Null)), format!("{json}\n"));
        let end = text(Format::Sse.end("too_slow", "x"));
        assert!(end.starts_with("event: error\ndata: {") && end.ends_with("}\n\n"), "{end}");
        assert!(end.contains("\"code\":\"too_slow\"") && end.contains("\"retryable\":true"), "{end}");
    }
}
