//! The audit log: who gave which order, and whose credential was refused, one line of JSON each.
//!
//! A thread of its own writes the lines; no call waits for it. What does not fit into its queue is counted, and the next line says how
//! many are missing. No line has a secret in it: it says who called, not what was shown.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use axum::http::{HeaderValue, Method, StatusCode};
use serde_json::{Map, Value, json};

use super::auth::Who;
use super::seats::Origin;
use crate::store::date_text;
use crate::types::{NodeId, WallTime};

/// Lines that wait for the disk: orders are rare, and refusals are counted.
const LINES_MOST: usize = 1024;

/// What the writer is told.
#[derive(Debug)]
pub enum AuditMessage {
    Line(String),
    /// The file has been moved away: the next line belongs into a new one.
    Reopen,
}

/// Where lines go; nowhere, unless the settings say so.
#[derive(Debug, Default)]
pub struct Audit {
    lines: Option<SyncSender<AuditMessage>>,
    dropped: AtomicU64,
}

pub fn audit() -> (Audit, SyncSender<AuditMessage>, Receiver<AuditMessage>) {
    let (lines, written) = sync_channel(LINES_MOST);
    (Audit { lines: Some(lines.clone()), dropped: AtomicU64::new(0) }, lines, written)
}

/// What the guard of a route says of a call, for the audit log.
#[derive(Clone, Debug)]
pub struct Judged {
    pub who: Who,
    pub origin: Option<Origin>,
}

/// A call that is told of.
#[derive(Debug)]
pub struct Called<'a> {
    pub at: WallTime,
    pub node: NodeId,
    pub request_id: &'a str,
    pub judged: Judged,
    pub method: &'a Method,
    pub path: &'a str,
    pub status: StatusCode,
    pub code: Option<&'static str>,
    /// Of the record that it made.
    pub index: Option<&'a HeaderValue>,
}

impl Audit {
    pub fn is_on(&self) -> bool {
        self.lines.is_some()
    }

    pub fn tell(&self, called: &Called) {
        let Some(lines) = &self.lines else { return };
        let dropped = self.dropped.swap(0, Ordering::Relaxed);
        if lines.try_send(AuditMessage::Line(called.line(dropped))).is_err() {
            self.dropped.fetch_add(dropped + 1, Ordering::Relaxed);
        }
    }
}

impl Called<'_> {
    fn line(&self, dropped: u64) -> String {
        let mut outcome = Map::from_iter([("status".to_string(), self.status.as_u16().into())]);
        outcome.extend(self.code.map(|code| ("code".to_string(), code.into())));
        let mut line = Map::new();
        let mut add = |name: &str, value: Value| drop(line.insert(name.to_string(), value));
        add("at", date_text(self.at).into());
        add("node", self.node.0.into());
        add("request_id", self.request_id.into());
        add("who", who(&self.judged.who));
        add("from", self.judged.origin.map(|origin| origin.address().to_string()).into());
        add("method", self.method.as_str().into());
        add("path", self.path.into());
        add("outcome", outcome.into());
        let index = self.index.and_then(|index| index.to_str().ok()?.parse::<u64>().ok());
        index.into_iter().for_each(|index| add("index", index.into()));
        if dropped > 0 {
            add("dropped", dropped.into());
        }
        Value::Object(line).to_string()
    }
}

fn who(who: &Who) -> Value {
    match who {
        Who::Anonymous => "anonymous".into(),
        Who::Admin => "admin".into(),
        Who::Unknown => "unknown".into(),
        Who::Token { id, name } => json!({"token": id.to_string(), "name": **name}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::TokenId;

    fn called(who: Who) -> Called<'static> {
        Called {
            at: WallTime(1_700_000_000_123_456),
            node: NodeId(2),
            request_id: "r1",
            judged: Judged { who, origin: None },
            method: &Method::POST,
            path: "/elect",
            status: StatusCode::OK,
            code: None,
            index: None,
        }
    }

    fn written(lines: &Receiver<AuditMessage>) -> Value {
        match lines.try_recv() {
            Ok(AuditMessage::Line(line)) => serde_json::from_str(&line).expect("a line is JSON"),
            other => panic!("no line: {other:?}"),
        }
    }

    #[test]
    fn a_line_says_who_did_what() {
        let (audit, _, lines) = audit();
        let who = Who::Token { id: TokenId(0xab), name: "ci".into() };
        audit.tell(&called(who));
        let line = written(&lines);
        assert_eq!(line["who"], json!({"token": "00000000000000ab", "name": "ci"}));
        assert_eq!((&line["method"], &line["path"]), (&json!("POST"), &json!("/elect")));
        assert_eq!((&line["outcome"]["status"], &line["node"]), (&json!(200), &json!(2)));
        assert!(line["at"].as_str().is_some_and(|at| at.starts_with("2023-11-14T")), "{line}");
        assert!(line.get("dropped").is_none() && line.get("index").is_none());
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let (audit, _, lines) = audit();
        (0..LINES_MOST + 3).for_each(|_| audit.tell(&called(Who::Admin)));
        (0..LINES_MOST).for_each(|_| drop(written(&lines)));
        audit.tell(&called(Who::Admin));
        assert_eq!(written(&lines)["dropped"], 3);
        assert!(!Audit::default().is_on());
    }
}
