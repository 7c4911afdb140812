//! The errors of this library.

use std::fmt;

use serde_json::Value;

use super::call_error::CallError;
use super::holder::{Leader, RoleHeld};
use super::problem::{Attempts, Problem, Tried};

/// Why a call failed.
#[derive(Clone, Debug)]
pub enum Error {
    /// This is not the URL of a node.
    BadNode {
        url: String,
        why: &'static str,
    },
    /// An option or argument has a value that no cluster accepts.
    BadOption {
        name: &'static str,
        why: &'static str,
    },
    /// The HTTP client cannot be set up on this machine.
    NoClient {
        why: String,
    },
    /// The outcome is unknown: an attempt went unanswered, and the time ran out before another attempt settled it.
    Indeterminate {
        tried: Vec<Tried>,
    },
    /// The call was certainly not applied: no node could do it in time.
    Unavailable {
        tried: Vec<Tried>,
    },
    /// The lease is over. The error names the present holder of the role, if there is one and it is known.
    LeaseLost {
        role: String,
        leader: Option<Box<Leader>>,
        token: Option<u64>,
    },
    /// Another instance holds the role.
    RoleHeld(Box<RoleHeld>),
    NotFound(Box<Problem>),
    /// The document does not meet the condition of the write.
    PreconditionFailed {
        current_rev: Option<String>,
    },
    /// The write named a role and a token, and the role is not (or no longer) held under that token. Nothing was
    /// written.
    RoleNotHeld {
        role: String,
    },
    /// The events after the given position are not kept any more. Read the state that you mirror again.
    FeedCompacted {
        oldest: Option<String>,
    },
    /// Any other refusal.
    Problem(Box<Problem>),
    /// The answer does not come from an Eldest node.
    Strange {
        url: String,
        why: String,
    },
    /// Other writers changed the document between each read and write of this one, until the tries were used up.
    Contended {
        key: String,
        tries: u32,
    },
    /// A value cannot be written as JSON, or read from it.
    NotJson {
        what: String,
        why: String,
    },
    /// This needs a running election.
    NotRunning,
}

impl Error {
    /// Whether the lease is certainly over, and the role has another holder or none.
    pub fn is_lease_lost(&self) -> bool {
        matches!(self, Error::LeaseLost { .. })
    }

    /// Whether the same call may succeed later.
    pub fn is_outage(&self) -> bool {
        matches!(self, Error::Indeterminate { .. } | Error::Unavailable { .. } | Error::Strange { .. })
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Error {
        let text = |name: &str| problem.members.get(name).and_then(Value::as_str).map(str::to_string);
        match problem.code.as_str() {
            "role_held" => match RoleHeld::read(&problem.members) {
                Some(held) => Error::RoleHeld(Box::new(held)),
                None => Error::Problem(Box::new(problem)),
            },
            "lease_lost" => Error::LeaseLost {
                role: text("role").unwrap_or_default(),
                leader: problem.members.get("leader").and_then(Leader::read).map(Box::new),
                token: problem.members.get("token").and_then(Value::as_u64),
            },
            "not_found" => Error::NotFound(Box::new(problem)),
            "precondition_failed" => Error::PreconditionFailed { current_rev: text("current_rev") },
            "role_not_held" => Error::RoleNotHeld { role: text("role").unwrap_or_default() },
            "feed_compacted" => Error::FeedCompacted { oldest: text("oldest") },
            _ => Error::Problem(Box::new(problem)),
        }
    }
}

impl From<CallError> for Error {
    fn from(error: CallError) -> Error {
        match error {
            CallError::NoClient { why } => Error::NoClient { why },
            CallError::NotAnAddress { url, why } => Error::BadNode { url, why },
            CallError::NotReached { tried } => Error::Unavailable { tried },
            CallError::NoAnswer { url, why, .. } => Error::Indeterminate { tried: vec![Tried { url, why }] },
            CallError::Strange { url, why } => Error::Strange { url, why },
            CallError::Refused(problem) => Error::from(*problem),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::BadNode { url, why } => write!(f, "{url:?} is not a node's URL: {why}"),
            Error::BadOption { name, why } => write!(f, "{name}: {why}"),
            Error::NoClient { why } => write!(f, "cannot create the HTTP client: {why}"),
            Error::Indeterminate { tried } => {
                write!(f, "the outcome is unknown: {}", Attempts(tried))
            }
            Error::Unavailable { tried } => {
                write!(f, "no node could carry it out, and nothing was changed: {}", Attempts(tried))
            }
            Error::LeaseLost { role, leader: Some(leader), .. } => {
                write!(f, "the lease of role {role:?} is lost: {} holds it", leader.instance_id)
            }
            Error::LeaseLost { role, .. } => write!(f, "the lease of role {role:?} is lost"),
            Error::RoleHeld(held) => write!(f, "{held}"),
            Error::NotFound(problem) | Error::Problem(problem) => write!(f, "{problem}"),
            Error::PreconditionFailed { current_rev: Some(rev) } => {
                write!(f, "the document has revision {rev}")
            }
            Error::PreconditionFailed { current_rev: None } => write!(f, "there is no such document"),
            Error::RoleNotHeld { role } => write!(f, "role {role:?} is not held under that token"),
            Error::FeedCompacted { .. } => write!(f, "the feed no longer goes back that far"),
            Error::Strange { url, why } => write!(f, "{url} does not answer like an Eldest node: {why}"),
            Error::Contended { key, tries } => {
                write!(f, "document {key:?} was changed by others between reading and writing, {tries} times")
            }
            Error::NotJson { what, why } => write!(f, "{what}: {why}"),
            Error::NotRunning => write!(f, "it has been stopped"),
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn error(problem: Value) -> Error {
        serde_json::from_value::<Problem>(problem).expect("a problem").into()
    }

    #[test]
    fn a_refusal_becomes_what_a_program_tells_apart() {
        let held = json!({"code": "role_held", "outcome": "conflict", "role": "r", "token": 7, "expires_in_ms": 5,
            "leader": {"instance_id": "b", "address": null, "metadata": null}});
        assert!(
            matches!(error(held), Error::RoleHeld(held) if held.leader.instance_id == "b" && held.token == 7)
        );
        let lost = json!({"code": "lease_lost", "role": "r", "leader": null, "token": null});
        assert!(matches!(error(lost), Error::LeaseLost { leader: None, token: None, .. }));
        let stale = json!({"code": "precondition_failed", "current_rev": "12"});
        assert!(matches!(error(stale), Error::PreconditionFailed { current_rev: Some(rev) } if rev == "12"));
        let former = json!({"code": "role_not_held", "role": "r"});
        assert!(matches!(error(former), Error::RoleNotHeld { role } if role == "r"));
        let gone = json!({"code": "feed_compacted", "oldest": "9"});
        assert!(matches!(error(gone), Error::FeedCompacted { oldest: Some(oldest) } if oldest == "9"));
        let other = error(json!({"code": "disk_full", "status": 503, "detail": "full"}));
        assert_eq!(other.to_string(), "refused: full (disk_full, 503)");
    }

    /// A refusal whose member is missing or has another type is still a refusal.
    #[test]
    fn a_refusal_that_lacks_something_stays_one() {
        let held = error(json!({"code": "role_held", "leader": 7}));
        assert!(matches!(held, Error::Problem(_)), "{held}");
        let lost = error(json!({"code": "lease_lost", "leader": [1], "token": "x"}));
        assert!(matches!(lost, Error::LeaseLost { leader: None, token: None, .. }), "{lost}");
    }
}
