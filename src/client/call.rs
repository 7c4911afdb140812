//! What to ask a cluster for, and the answer.

use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{Method, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::clock::Moment;
use super::error::{Error, Problem};
use super::random;

/// What it means to make a call again that may have happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// It changes nothing.
    Reads,
    /// The cluster knows it again by this key.
    Keyed(String),
    /// Twice is the same as once.
    Harmless,
    /// Twice is twice.
    Never,
}

#[derive(Clone, Debug)]
pub struct Call {
    pub method: Method,
    /// With its query.
    pub path: String,
    pub body: Option<Vec<u8>>,
    pub headers: Vec<(&'static str, String)>,
    pub repeat: Repeat,
    /// How long the cluster is asked to wait before it answers.
    pub wait: Duration,
    /// How long one attempt may take besides; the client's own bound if none.
    pub attempt: Option<Duration>,
}

impl Call {
    fn new(method: Method, path: String, repeat: Repeat) -> Call {
        let (body, headers) = (None, Vec::new());
        Call { method, path, body, headers, repeat, wait: Duration::ZERO, attempt: None }
    }

    pub fn get(path: String) -> Call {
        Call::new(Method::GET, path, Repeat::Reads)
    }

    /// A write under a key of its own, the same for all attempts.
    pub fn write(method: Method, path: String) -> Call {
        Call::new(method, path, Repeat::Keyed(random::id()))
    }

    pub fn harmless(method: Method, path: String) -> Call {
        Call::new(method, path, Repeat::Harmless)
    }

    pub fn once(method: Method, path: String) -> Call {
        Call::new(method, path, Repeat::Never)
    }

    pub fn json(mut self, body: &impl Serialize) -> Result<Call, Error> {
        let why = |error: serde_json::Error| Error::NotJson {
            what: format!("{} {}", self.method, self.path),
            why: error.to_string(),
        };
        self.body = Some(serde_json::to_vec(body).map_err(why)?);
        Ok(self)
    }

    pub fn header(mut self, name: &'static str, value: String) -> Call {
        self.headers.push((name, value));
        self
    }

    pub fn wait(mut self, wait: Duration) -> Call {
        self.wait = wait;
        self
    }

    /// For an answer that is worth nothing if it comes late.
    pub fn attempt(mut self, attempt: Duration) -> Call {
        self.attempt = Some(attempt);
        self
    }

    /// Whether an attempt of unknown outcome leaves something in doubt.
    pub fn writes(&self) -> bool {
        self.repeat != Repeat::Reads
    }
}

/// An answer that a repetition would not change.
#[derive(Clone, Debug)]
pub struct Answer {
    pub url: String,
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    /// When the attempt that was answered began to be sent: what the answer grants, it grants no earlier.
    pub sent: Moment,
    /// An earlier attempt may have happened.
    pub after_doubt: bool,
}

impl Answer {
    pub fn accepted(self) -> Result<Answer, Error> {
        match self.status.is_success() {
            true => Ok(self),
            false => Err(self.refusal()),
        }
    }

    fn refusal(self) -> Error {
        match self.problem() {
            Some(problem) => Error::from(problem),
            None => Error::Strange { url: self.url, why: format!("status {}", self.status) },
        }
    }

    pub fn problem(&self) -> Option<Problem> {
        let problem: Problem = serde_json::from_slice(&self.body).ok()?;
        (!problem.code.is_empty()).then(|| Problem { status: self.status.as_u16(), ..problem })
    }

    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let strange =
            |error: serde_json::Error| Error::Strange { url: self.url.clone(), why: error.to_string() };
        serde_json::from_slice(&self.body).map_err(strange)
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// A page of a list.
#[derive(Clone, Debug, serde::Deserialize)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// What to name as `after` for the next page.
    #[serde(default)]
    pub next: Option<String>,
}

/// What may be absent or null.
pub fn given(value: &Value) -> Option<Value> {
    (!value.is_null()).then(|| value.clone())
}
