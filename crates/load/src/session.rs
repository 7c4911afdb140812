//! One client of the cluster: it sends a request to a node, and returns the outcome.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;

use super::http::{Answer, Connection, Failure, Request};
use super::target::Target;

/// The pause of a client after a refusal. A longer pause would hide how soon a cluster serves again.
pub const RETRY_PAUSE: Duration = Duration::from_millis(5);

/// A code that is longer, or is not a simple word, is counted by its status instead.
const CODE_BYTES_MAX: usize = 64;

pub type Code = Cow<'static, str>;

/// The fate of a request that did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Certainly not applied, now or later. Another node may accept it, or the same one soon.
    NotApplied,
    Unknown,
    /// The request itself is wrong; no node would accept it.
    Rejected,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    pub fate: Fate,
    pub code: Code,
    /// Present if there was an answer.
    pub status: Option<u16>,
}

/// A client that keeps a connection to each node it has tried, and stays with a node until a request fails there.
#[derive(Debug)]
pub struct Session {
    targets: Arc<[Target]>,
    connections: Vec<Connection>,
    at: usize,
}

impl Session {
    /// `targets` must not be empty. The first node is `first`, modulo the number of targets.
    pub fn new(targets: Arc<[Target]>, first: usize, patience: Duration) -> Session {
        let connections = targets.iter().map(|_| Connection::new(patience)).collect();
        let at = first % targets.len();
        Session { targets, connections, at }
    }

    /// Sends a request. Succeeds with any 2xx. After a failure the next call goes to the next node, unless the request
    /// itself was wrong.
    pub async fn call(&mut self, request: &Request) -> Result<(), Trouble> {
        let connection = &mut self.connections[self.at];
        let trouble = match connection.exchange(&self.targets[self.at], request).await {
            Ok(200..=299) => return Ok(()),
            Ok(_) => Trouble::of_answer(connection.answer()),
            Err(failure) => Trouble::of_failure(failure),
        };
        if trouble.fate != Fate::Rejected {
            self.at = (self.at + 1) % self.targets.len();
        }
        Err(trouble)
    }

    /// The answer to the last call, if that succeeded.
    pub fn answer(&self) -> Answer<'_> {
        self.connections[self.at].answer()
    }

    /// The URL of the next call.
    pub fn url(&self) -> &str {
        &self.targets[self.at].url
    }
}

impl Trouble {
    pub fn of_answer(answer: Answer<'_>) -> Trouble {
        Trouble::told(answer.status, answer.body)
    }

    pub fn told(status: u16, problem: &[u8]) -> Trouble {
        let fate = match status {
            421 | 429 | 503 => Fate::NotApplied,
            500..=599 => Fate::Unknown,
            _ => Fate::Rejected,
        };
        let code = problem_code(problem).unwrap_or_else(|| format!("http_{status}").into());
        Trouble { fate, code, status: Some(status) }
    }

    /// The trouble of a problem in a stream of answers.
    pub fn of_line(line: &[u8]) -> Trouble {
        #[derive(Deserialize)]
        struct Problem {
            status: u16,
        }
        let status = serde_json::from_slice(line).map_or(0, |Problem { status }| status);
        Trouble::told(status, line)
    }

    pub fn of_failure(failure: Failure) -> Trouble {
        let fate = if failure.was_sent() { Fate::Unknown } else { Fate::NotApplied };
        Trouble { fate, code: failure.code().into(), status: None }
    }
}

/// The member `code` of a problem document.
fn problem_code(body: &[u8]) -> Option<Code> {
    #[derive(Deserialize)]
    struct Problem {
        code: String,
    }
    let Problem { code } = serde_json::from_slice(body).ok()?;
    let word = code.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    (word && (1..=CODE_BYTES_MAX).contains(&code.len())).then(|| code.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_are_codes() {
        assert_eq!(problem_code(br#"{"code": "no_leader", "status": 503}"#), Some("no_leader".into()));
        let long = format!(r#"{{"code": "{}"}}"#, "x".repeat(CODE_BYTES_MAX + 1));
        for body in ["", "no leader", "{}", r#"{"code": 7}"#, r#"{"code": ""}"#, r#"{"code": "a b"}"#, &long]
        {
            assert_eq!(problem_code(body.as_bytes()), None, "{body}");
        }
    }

    #[test]
    fn what_was_not_sent_was_not_applied() {
        let refused = Failure::Connect(std::io::ErrorKind::ConnectionRefused);
        assert_eq!(Trouble::of_failure(refused).fate, Fate::NotApplied);
        assert_eq!(Trouble::of_failure(refused).code, "connect_refused");
        assert_eq!(Trouble::of_failure(Failure::Timeout).fate, Fate::Unknown);
    }
}
