//! Errors as `application/problem+json` (RFC 9457). A handler returns a [`Problem`]. It is turned into bytes in only one place, where the
//! request's id and the leader are known.
//!
//! ```text
//!   handler: Problem ─► an empty response that carries it ─► guard: looks at its code ─► front: leader, id ─► bytes
//! ```

use std::borrow::Cow;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use axum::http::{Response, StatusCode};
use axum::response::IntoResponse;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use crate::types::NodeId;

pub const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");

/// An election takes about as long; an earlier retry would meet the same state again.
const RETRY_AFTER_S: HeaderValue = HeaderValue::from_static("1");

/// The codes by which clients distinguish errors. They are stable: a code is never renamed and never changes its meaning.
/// The name of a code is part of the API: the clients in all languages decide by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    BadJson,
    BadField,
    UnknownCommand,
    EnvelopeRequired,
    Unauthorized,
    Forbidden,
    NotTheLeaderCalling,
    NotFound,
    MethodNotAllowed,
    RequestTimeout,
    Exists,
    RuleViolated,
    RoleHeld,
    LeaseNotHeld,
    LeaderDoesNotTakeWritesync,
    WrongCluster,
    ModeMismatch,
    StaleEpoch,
    LeaseLost,
    FeedCompacted,
    PreconditionFailed,
    RoleNotHeld,
    BodyTooLarge,
    UnsupportedMediaType,
    NotLeader,
    IdempotencyKeyReused,
    TooManyRequests,
    RequestHeaderFieldsTooLarge,
    NoLeader,
    NoQuorum,
    CatchingUp,
    MembersChanging,
    RestoreGivenUp,
    ServiceDown,
    DiskFull,
    Quarantined,
    OutcomeUnknown,
    StateFull,
}

impl Code {
    /// In the order of their declaration.
    pub const ALL: [Code; 38] = [
        Code::BadJson,
        Code::BadField,
        Code::UnknownCommand,
        Code::EnvelopeRequired,
        Code::Unauthorized,
        Code::Forbidden,
        Code::NotTheLeaderCalling,
        Code::NotFound,
        Code::MethodNotAllowed,
        Code::RequestTimeout,
        Code::Exists,
        Code::RuleViolated,
        Code::RoleHeld,
        Code::LeaseNotHeld,
        Code::LeaderDoesNotTakeWritesync,
        Code::WrongCluster,
        Code::ModeMismatch,
        Code::StaleEpoch,
        Code::LeaseLost,
        Code::FeedCompacted,
        Code::PreconditionFailed,
        Code::RoleNotHeld,
        Code::BodyTooLarge,
        Code::UnsupportedMediaType,
        Code::NotLeader,
        Code::IdempotencyKeyReused,
        Code::TooManyRequests,
        Code::RequestHeaderFieldsTooLarge,
        Code::NoLeader,
        Code::NoQuorum,
        Code::CatchingUp,
        Code::MembersChanging,
        Code::RestoreGivenUp,
        Code::ServiceDown,
        Code::DiskFull,
        Code::Quarantined,
        Code::OutcomeUnknown,
        Code::StateFull,
    ];

    /// Returns name, status and title.
    fn row(self) -> (&'static str, u16, &'static str) {
        match self {
            Code::BadJson => ("bad_json", 400, "The body is not valid JSON"),
            Code::BadField => ("bad_field", 400, "A field is missing or wrong"),
            Code::UnknownCommand => ("unknown_command", 400, "Unknown command"),
            Code::EnvelopeRequired => ("envelope_required", 400, "Only nodes of the cluster may call this"),
            Code::Unauthorized => ("unauthorized", 401, "A valid credential is required"),
            Code::Forbidden => ("forbidden", 403, "The credential does not allow this"),
            Code::NotTheLeaderCalling => {
                ("not_the_leader_calling", 403, "A follower accepts this only from its leader")
            }
            Code::NotFound => ("not_found", 404, "Not found"),
            Code::MethodNotAllowed => ("method_not_allowed", 405, "This route does not support that method"),
            Code::RequestTimeout => ("request_timeout", 408, "The request did not arrive completely in time"),
            Code::Exists => ("exists", 409, "It already exists"),
            Code::RuleViolated => ("rule_violated", 409, "A rule forbids this"),
            Code::RoleHeld => ("role_held", 409, "Another instance holds the role"),
            Code::LeaseNotHeld => ("lease_not_held", 409, "The lease that it depends on is not held"),
            Code::LeaderDoesNotTakeWritesync => {
                ("leader_does_not_take_writesync", 409, "A leader sends this call and does not accept it")
            }
            Code::WrongCluster => ("wrong_cluster", 409, "The call is meant for another cluster"),
            Code::ModeMismatch => ("mode_mismatch", 409, "The cluster's mode does not allow this"),
            Code::StaleEpoch => ("stale_epoch", 409, "The caller's epoch is over"),
            Code::LeaseLost => ("lease_lost", 410, "The lease has ended"),
            Code::FeedCompacted => ("feed_compacted", 410, "The events that follow are no longer kept"),
            Code::PreconditionFailed => ("precondition_failed", 412, "A precondition failed"),
            Code::RoleNotHeld => ("role_not_held", 412, "The role is not held under that token"),
            Code::BodyTooLarge => ("body_too_large", 413, "The body is too large"),
            Code::UnsupportedMediaType => ("unsupported_media_type", 415, "The body must be JSON"),
            Code::NotLeader => ("not_leader", 421, "Another node leads"),
            Code::IdempotencyKeyReused => {
                ("idempotency_key_reused", 422, "The idempotency key belongs to another call")
            }
            Code::TooManyRequests => ("too_many_requests", 429, "Too many requests"),
            Code::RequestHeaderFieldsTooLarge => {
                ("request_header_fields_too_large", 431, "The request header fields are too large")
            }
            Code::NoLeader => ("no_leader", 503, "No leader can be reached now"),
            Code::NoQuorum => ("no_quorum", 503, "No majority can be reached now"),
            Code::CatchingUp => ("catching_up", 503, "The node has not caught up yet"),
            Code::MembersChanging => {
                ("members_changing", 503, "Another change of the members is in progress")
            }
            Code::RestoreGivenUp => ("restore_given_up", 503, "The document was rejected"),
            Code::ServiceDown => ("service_down", 503, "Client writes are refused by an operator"),
            Code::DiskFull => ("disk_full", 503, "The disk is full"),
            Code::Quarantined => ("quarantined", 503, "The node is excluded from the cluster"),
            Code::OutcomeUnknown => ("outcome_unknown", 504, "The outcome is unknown"),
            Code::StateFull => ("state_full", 507, "The state has reached its size limit"),
        }
    }

    pub fn name(self) -> &'static str {
        self.row().0
    }

    pub fn status(self) -> StatusCode {
        StatusCode::from_u16(self.row().1).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// Returns whether the same call may succeed later, unchanged.
    /// It follows from the status: 408, 421, 429 and 503 say that nothing was applied. After a 504 a write is
    /// safe to repeat only with its idempotency key.
    pub fn retryable(self) -> bool {
        matches!(self.row().1, 408 | 421 | 429 | 503 | 504)
    }
}

/// A response that says why the call has no result. Boxed, because it is rare and is part of every `Result`.
#[derive(Clone, Debug)]
pub struct Problem(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    code: Code,
    status: StatusCode,
    detail: Cow<'static, str>,
    leader: Option<NodeId>,
    members: Vec<(&'static str, Value)>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// Further parts of a problem's body, which are known only where the response leaves.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    pub request_id: &'a str,
    /// The leader and its URL.
    pub leader: Option<(NodeId, &'a str)>,
}

/// The maximum length of a problem's text, in bytes: the text may repeat the caller's input, and is kept for later questions.
/// A caller could otherwise make the node keep and log texts of the size of a body.
const SAID_MOST: usize = 4096;

impl Problem {
    pub fn new(code: Code, detail: impl Into<Cow<'static, str>>) -> Problem {
        let detail = bounded(detail.into());
        let (leader, members, headers) = (None, Vec::new(), Vec::new());
        Problem(Box::new(Inner { code, status: code.status(), detail, leader, members, headers }))
    }

    /// The problem that this field is wrong.
    pub fn field(field: &str, detail: impl Into<Cow<'static, str>>) -> Problem {
        Problem::new(Code::BadField, detail).with("field", bounded(field.to_string().into()))
    }

    /// Replaces the detail where more is known than the code says.
    pub fn detail(mut self, detail: impl Into<Cow<'static, str>>) -> Problem {
        self.0.detail = bounded(detail.into());
        self
    }

    /// Adds a member of the body beyond the standard ones.
    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Problem {
        self.0.members.push((name, value.into()));
        self
    }

    pub fn has_members(&self) -> bool {
        !self.0.members.is_empty()
    }

    /// Adds the line number in a stream. It replaces a number that counts within the line.
    /// A problem of JSON counts lines within its text, and in a stream each text is one line.
    pub fn at_line(mut self, number: u64) -> Problem {
        self.0.members.retain(|(name, _)| *name != "line");
        self.with("line", number)
    }

    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Problem {
        self.0.headers.push((name, value));
        self
    }

    /// Sets the status, for the few routes whose status differs from that of the code.
    pub fn status(mut self, status: StatusCode) -> Problem {
        self.0.status = status;
        self
    }

    /// Sets the leader that the answering node learned from this very call.
    /// It takes precedence over the leader that the node sees when the response is written: the node may not
    /// have noticed the change.
    pub fn leader(mut self, leader: NodeId) -> Problem {
        self.0.leader = Some(leader);
        self
    }

    pub fn said(&self) -> &str {
        &self.0.detail
    }

    pub fn code(&self) -> Code {
        self.0.code
    }

    pub fn named_leader(&self) -> Option<NodeId> {
        self.0.leader
    }

    /// Returns the body as data.
    pub fn document<'a>(&'a self, around: Surroundings<'a>) -> impl Serialize + 'a {
        Document { problem: &self.0, around }
    }

    pub fn render(&self, around: Surroundings) -> Response<Body> {
        let body = serde_json::to_vec(&self.document(around)).unwrap_or_default();
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = self.0.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, PROBLEM_JSON);
        if matches!(self.0.status.as_u16(), 429 | 503) {
            headers.insert(RETRY_AFTER, RETRY_AFTER_S);
        }
        for (name, value) in &self.0.headers {
            headers.insert(name, value.clone());
        }
        response
    }
}

fn bounded(text: Cow<'static, str>) -> Cow<'static, str> {
    if text.len() <= SAID_MOST {
        return text;
    }
    let end = (0..=SAID_MOST).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    format!("{}…", &text[..end]).into()
}

/// The problem is kept in the response's extensions until it is rendered.
impl IntoResponse for Problem {
    fn into_response(self) -> Response<Body> {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = self.0.status;
        response.extensions_mut().insert(self);
        response
    }
}

struct Document<'a> {
    problem: &'a Inner,
    around: Surroundings<'a>,
}

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Document { problem, around } = self;
        let (name, _, title) = problem.code.row();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", &format_args!("urn:eldest:problem:{name}"))?;
        map.serialize_entry("title", title)?;
        map.serialize_entry("status", &problem.status.as_u16())?;
        map.serialize_entry("detail", &problem.detail)?;
        map.serialize_entry("code", name)?;
        map.serialize_entry("retryable", &problem.code.retryable())?;
        if let Some((id, url)) = around.leader {
            map.serialize_entry("leader_node", &LeaderNode { id: id.0, url })?;
        }
        map.serialize_entry("request_id", around.request_id)?;
        for (name, value) in &problem.members {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

#[derive(serde::Serialize)]
struct LeaderNode<'a> {
    id: u32,
    url: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_codes_are_all_of_them_and_no_two_have_one_name() {
        assert_eq!(Code::ALL.len(), Code::StateFull as usize + 1, "the last one is declared last");
        let names: std::collections::BTreeSet<&str> = Code::ALL.iter().map(|code| code.name()).collect();
        assert_eq!(names.len(), Code::ALL.len());
    }

    #[test]
    fn a_problem_says_all_that_is_promised() {
        let around = Surroundings { request_id: "r1", leader: Some((NodeId(2), "http://127.0.0.2:9000")) };
        let problem = Problem::new(Code::NotLeader, "node 2 leads").with("more", 7);
        let text = serde_json::to_string(&problem.document(around)).expect("it is plain data");
        assert_eq!(
            text,
            "{\"type\":\"urn:eldest:problem:not_leader\",\"title\":\"Another node leads\",\"status\":421,\
             \"detail\":\"node 2 leads\",\"code\":\"not_leader\",\"retryable\":true,\
             \"leader_node\":{\"id\":2,\"url\":\"http://127.0.0.2:9000\"},\"request_id\":\"r1\",\"more\":7}"
        );
    }

    #[test]
    fn what_a_caller_has_sent_makes_no_problem_long() {
        let long = "ä".repeat(1 << 20);
        let problems = [
            Problem::new(Code::BadJson, long.clone()),
            Problem::new(Code::BadJson, "short").detail(long.clone()),
            Problem::field(&long, long.clone()),
        ];
        for problem in problems {
            let around = Surroundings { request_id: "r", leader: None };
            let text = serde_json::to_string(&problem.document(around)).expect("it is plain data");
            assert!(text.len() < 3 * SAID_MOST && problem.said().ends_with("ä…"), "{}", text.len());
        }
        let most = "x".repeat(SAID_MOST);
        assert_eq!(Problem::new(Code::BadJson, most.clone()).said(), most);
    }

    #[test]
    fn what_surely_did_not_happen_may_be_tried_again() {
        let around = Surroundings { request_id: "r", leader: None };
        for code in [Code::NoLeader, Code::TooManyRequests] {
            let response = Problem::new(code, "x").render(around);
            assert_eq!(response.status(), code.status());
            assert!(code.retryable() && response.headers().contains_key(RETRY_AFTER), "{code:?}");
        }
        assert!(!Problem::new(Code::Exists, "x").render(around).headers().contains_key(RETRY_AFTER));
    }
}
