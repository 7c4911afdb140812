//! The audit log records, in lines of JSON, which caller gave which order, and whose credential was refused.
//!
//! An order has two lines: one before the node carries it out, and one with its outcome. If the connection ends in between, the second
//! line says so.
//!
//! A separate thread writes the lines; no call waits for it. Lines that do not fit into its queue are counted, and the next line states
//! how many are missing. No line contains a secret: it names the caller, not the credential.
//!
//! ```text
//!   front: the entry ─► guard: the caller, and `asked` for an order ─► handler ─► front: `answered`, or `caller_gone`
//!                                                                         │
//!                                             a bounded queue ─► a thread ─► the file
//! ```
//!
//! The line `asked` is handed to the writer before the handler runs. If the node is killed afterwards, there
//! is no second line.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};

use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode};
use serde_json::{Map, Value, json};

use crate::http::access::Who;
use crate::http::admission::Origin;
use crate::store::date_text;
use crate::types::{NodeId, WallTime};

/// The maximum number of lines that wait for the disk: orders are rare, and refusals are limited.
/// Beyond it lines are dropped: a disk that hangs must not stop the calls of operators.
const LINES_MOST: usize = 1024;

/// A message to the writer.
#[derive(Debug)]
pub enum AuditMessage {
    Line(String),
    /// The file was moved away: the next line belongs in a new one.
    Reopen,
}

/// The queue of lines; there is none unless the settings enable the audit log.
#[derive(Debug, Default)]
pub struct Audit {
    lines: Option<SyncSender<AuditMessage>>,
    /// The number of lines that were dropped since the last one that fitted.
    dropped: AtomicU64,
}

pub fn audit() -> (Audit, SyncSender<AuditMessage>, Receiver<AuditMessage>) {
    let (lines, written) = sync_channel(LINES_MOST);
    (Audit { lines: Some(lines.clone()), dropped: AtomicU64::new(0) }, lines, written)
}

/// A call that may get lines. The guard of its route sets the caller, and the front reports how the call ended.
#[derive(Debug)]
pub struct AuditEntry {
    node: NodeId,
    request_id: String,
    method: Method,
    path: String,
    /// Set for a call that gets lines.
    /// It stays empty for a call that is neither an order nor refused: most calls get no line.
    judged: OnceLock<(Who, Option<Origin>)>,
}

/// The progress of a call.
#[derive(Clone, Copy, Debug)]
pub enum Stage<'a> {
    /// An order, before it is carried out.
    Asked,
    Answered {
        status: StatusCode,
        code: Option<&'static str>,
        /// The index of the record that the call made.
        index: Option<&'a HeaderValue>,
    },
    /// The connection ended before the answer. The order may have happened, or may still happen.
    CallerGone,
}

impl Audit {
    /// Returns None if the node keeps no audit log.
    pub fn entry(&self, node: NodeId, request_id: &HeaderValue, request: &Parts) -> Option<Arc<AuditEntry>> {
        self.lines.is_some().then(|| {
            Arc::new(AuditEntry {
                node,
                request_id: request_id.to_str().unwrap_or_default().to_string(),
                method: request.method.clone(),
                path: request.uri.path().to_string(),
                judged: OnceLock::new(),
            })
        })
    }

    /// Writes a line. A call that no guard has judged gets none.
    pub fn tell(&self, at: WallTime, entry: &AuditEntry, stage: Stage) {
        let (Some(lines), Some(judged)) = (&self.lines, entry.judged.get()) else { return };
        // The line states how many are missing before it. If it is dropped as well, the number is given back,
        // with one more for this line.
        let dropped = self.dropped.swap(0, Ordering::Relaxed);
        if lines.try_send(AuditMessage::Line(entry.line(at, judged, stage, dropped))).is_err() {
            self.dropped.fetch_add(dropped + 1, Ordering::Relaxed);
        }
    }
}

impl AuditEntry {
    pub fn judge(&self, who: Who, origin: Option<Origin>) {
        // A call passes one guard, so the value is set only once.
        let _ = self.judged.set((who, origin));
    }

    fn line(
        &self,
        at: WallTime,
        (who, origin): &(Who, Option<Origin>),
        stage: Stage,
        dropped: u64,
    ) -> String {
        let mut line = Map::new();
        let mut add = |name: &str, value: Value| drop(line.insert(name.to_string(), value));
        add("at", date_text(at).into());
        add("node", self.node.0.into());
        add("request_id", self.request_id.as_str().into());
        add("who", name_of(who));
        add("from", origin.map(|origin| origin.address().to_string()).into());
        add("method", self.method.as_str().into());
        add("path", self.path.as_str().into());
        match stage {
            Stage::Asked => add("stage", "asked".into()),
            Stage::CallerGone => add("stage", "caller_gone".into()),
            Stage::Answered { status, code, index } => {
                add("stage", "answered".into());
                let mut outcome = Map::from_iter([("status".to_string(), status.as_u16().into())]);
                outcome.extend(code.map(|code| ("code".to_string(), code.into())));
                add("outcome", outcome.into());
                let index = index.and_then(|index| index.to_str().ok()?.parse::<u64>().ok());
                index.into_iter().for_each(|index| add("index", index.into()));
            }
        }
        if dropped > 0 {
            add("dropped", dropped.into());
        }
        Value::Object(line).to_string()
    }
}

fn name_of(who: &Who) -> Value {
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

    const AT: WallTime = WallTime(1_700_000_000_123_456);

    fn elected() -> Stage<'static> {
        Stage::Answered { status: StatusCode::OK, code: None, index: None }
    }

    fn entry(audit: &Audit, who: Who) -> Arc<AuditEntry> {
        let request = axum::http::Request::post("/elect").body(()).expect("a request").into_parts().0;
        let id = HeaderValue::from_static("r1");
        let entry = audit.entry(NodeId(2), &id, &request).expect("somebody wants it");
        entry.judge(who, None);
        entry
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
        let entry = entry(&audit, who);
        audit.tell(AT, &entry, Stage::Asked);
        audit.tell(AT, &entry, elected());
        audit.tell(AT, &entry, Stage::CallerGone);
        let asked = written(&lines);
        assert!(asked["stage"] == "asked" && asked.get("outcome").is_none(), "{asked}");
        let line = written(&lines);
        assert_eq!(line["who"], json!({"token": "00000000000000ab", "name": "ci"}));
        assert_eq!((&line["method"], &line["path"]), (&json!("POST"), &json!("/elect")));
        assert_eq!((&line["outcome"]["status"], &line["node"]), (&json!(200), &json!(2)));
        assert!(line["at"].as_str().is_some_and(|at| at.starts_with("2023-11-14T")), "{line}");
        assert!(line.get("dropped").is_none() && line.get("index").is_none());
        assert_eq!((&line["stage"], &line["request_id"]), (&json!("answered"), &asked["request_id"]));
        let gone = written(&lines);
        assert!(gone["stage"] == "caller_gone" && gone.get("outcome").is_none(), "{gone}");
    }

    #[test]
    fn a_call_that_no_guard_has_named_is_not_told_of() {
        let (audit, _, lines) = audit();
        let request = axum::http::Request::get("/v1/docs/a").body(()).expect("a request").into_parts().0;
        let entry = audit.entry(NodeId(2), &HeaderValue::from_static("r1"), &request);
        audit.tell(AT, &entry.expect("somebody wants it"), elected());
        assert!(lines.try_recv().is_err());
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let (audit, _, lines) = audit();
        let entry = entry(&audit, Who::Admin);
        (0..LINES_MOST + 3).for_each(|_| audit.tell(AT, &entry, elected()));
        (0..LINES_MOST).for_each(|_| drop(written(&lines)));
        audit.tell(AT, &entry, elected());
        assert_eq!(written(&lines)["dropped"], 3);
    }
}
