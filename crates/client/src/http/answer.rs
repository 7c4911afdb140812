//! What a cluster has answered.

use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::call_error::CallError;
use crate::clock::Moment;
use crate::error::Error;
use crate::json::lenient;
use crate::problem::Problem;

/// Status, headers and body of an answer that was read to its end.
pub type Whole = (StatusCode, HeaderMap, Vec<u8>);

/// What a node has answered.
#[derive(Clone, Debug)]
pub struct Answer {
    pub url: String,
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    /// When the attempt that was answered began to be sent: what the answer grants, it grants no earlier.
    pub sent: Moment,
    /// An earlier attempt may have happened.
    pub(crate) after_doubt: bool,
}

impl Answer {
    pub(super) fn of(url: &str, (status, headers, body): Whole, sent: Moment) -> Answer {
        Answer { url: url.to_string(), status, headers, body, sent, after_doubt: false }
    }

    pub(crate) fn accepted(self) -> Result<Answer, Error> {
        self.taken().map_err(Error::from)
    }

    /// Anything but success is a refusal.
    pub fn taken(self) -> Result<Answer, CallError> {
        if self.status.is_success() { Ok(self) } else { Err(self.refusal()) }
    }

    pub(super) fn refusal(self) -> CallError {
        match self.problem() {
            Some(problem) => CallError::Refused(Box::new(problem)),
            None => CallError::Strange { url: self.url, why: format!("status {}", self.status) },
        }
    }

    /// What a node says when it refuses.
    pub fn problem(&self) -> Option<Problem> {
        let problem: Problem = self.read().ok()?;
        (!problem.code.is_empty()).then(|| Problem { status: self.status.as_u16(), ..problem })
    }

    /// The body, as JSON. What cannot be read of it is a string of its text ([`lenient`]).
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, CallError> {
        let strange =
            |error: serde_json::Error| CallError::Strange { url: self.url.clone(), why: error.to_string() };
        serde_json::from_slice(&self.body).or_else(|error| {
            let whole = std::str::from_utf8(&self.body).ok().and_then(lenient);
            whole.and_then(|whole| serde_json::from_value(whole).ok()).ok_or_else(|| strange(error))
        })
    }

    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        Ok(self.read()?)
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// A page of a list.
#[derive(Clone, Debug, Deserialize)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// What to name as `after` for the next page.
    #[serde(default)]
    pub next: Option<String>,
}
