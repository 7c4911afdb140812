//! The answers of a cluster.

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

/// The answer of a node.
#[derive(Clone, Debug)]
pub struct Answer {
    pub url: String,
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    /// When the answered attempt was sent. A lease that the answer grants is counted from this moment, so it cannot
    /// be overestimated.
    pub sent: Moment,
    /// Whether an earlier attempt may have been applied.
    pub(crate) after_doubt: bool,
    /// The source of the token that was sent, if the caller has named it.
    pub(crate) token_from: Option<String>,
}

impl Answer {
    pub(super) fn of(url: &str, (status, headers, body): Whole, sent: Moment) -> Answer {
        Answer { url: url.to_string(), status, headers, body, sent, after_doubt: false, token_from: None }
    }

    pub(crate) fn accepted(self) -> Result<Answer, Error> {
        self.taken().map_err(Error::from)
    }

    /// The answer if it is a success. Any other status is [`CallError::Refused`] or [`CallError::Strange`].
    pub fn taken(self) -> Result<Answer, CallError> {
        if self.status.is_success() { Ok(self) } else { Err(self.refusal()) }
    }

    pub(super) fn refusal(self) -> CallError {
        match self.problem() {
            Some(problem) => CallError::Refused(Box::new(problem)),
            None => CallError::Strange { url: self.url, why: format!("status {}", self.status) },
        }
    }

    /// The problem in the body of a refusal. `None` if the body has none.
    pub fn problem(&self) -> Option<Problem> {
        let problem: Problem = self.read().ok()?;
        let status = self.status.as_u16();
        let token_from = self.token_from.clone().filter(|_| matches!(status, 401 | 403));
        (!problem.code.is_empty()).then_some(Problem { status, token_from, ..problem })
    }

    /// Reads the body as JSON. A part that cannot be read becomes a string of its text ([`lenient`]). Fails with
    /// [`CallError::Strange`].
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

    /// The header with this name. Returns `None` if it is missing or is not visible ASCII text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// A page of a list.
#[derive(Clone, Debug, Deserialize)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Pass this as `after` to get the next page. `None` on the last page.
    #[serde(default)]
    pub next: Option<String>,
}
