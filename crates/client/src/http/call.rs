//! What to ask a cluster for.

use std::time::Duration;

use reqwest::Method;
use serde::Serialize;

use crate::error::Error;
use crate::random;

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

    /// Commands, one a line, each of which the cluster knows again by itself.
    pub fn lines(path: &str, body: String) -> Call {
        let call = Call::harmless(Method::POST, path.to_string());
        Call { body: Some(body.into()), ..call }.header("content-type", "application/x-ndjson".to_string())
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
