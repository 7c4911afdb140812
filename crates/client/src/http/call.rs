//! A call to a cluster.

use std::time::Duration;

use reqwest::Method;
use serde::Serialize;

use crate::error::Error;
use crate::random;

/// Whether a call that may have been applied can be sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// The call changes nothing.
    Reads,
    /// The cluster recognises the call by this idempotency key.
    Keyed(String),
    /// Applying the call twice has the same effect as once.
    Harmless,
    /// The call must not be applied twice.
    Never,
}

/// A call, and whether it can be sent again.
#[derive(Clone, Debug)]
pub struct Call {
    pub method: Method,
    /// The path with its query.
    pub path: String,
    pub body: Option<Vec<u8>>,
    pub headers: Vec<(&'static str, String)>,
    pub repeat: Repeat,
    /// The time that the cluster is asked to wait before it answers.
    pub wait: Duration,
    /// The limit of one attempt, without `wait`. `None` means the client's own limit.
    pub attempt: Option<Duration>,
}

impl Call {
    fn new(method: Method, path: String, repeat: Repeat) -> Call {
        let (body, headers) = (None, Vec::new());
        Call { method, path, body, headers, repeat, wait: Duration::ZERO, attempt: None }
    }

    /// A read.
    pub fn get(path: String) -> Call {
        Call::new(Method::GET, path, Repeat::Reads)
    }

    /// A write with a new idempotency key, the same for all attempts.
    pub fn write(method: Method, path: String) -> Call {
        Call::new(method, path, Repeat::Keyed(random::id()))
    }

    /// A write that has the same effect if it is applied twice.
    pub fn harmless(method: Method, path: String) -> Call {
        Call::new(method, path, Repeat::Harmless)
    }

    /// A write that must not be applied twice.
    pub fn once(method: Method, path: String) -> Call {
        Call::new(method, path, Repeat::Never)
    }

    /// Sets the body. Fails with [`Error::NotJson`] if the value cannot be written as JSON.
    pub fn json(mut self, body: &impl Serialize) -> Result<Call, Error> {
        let why = |error: serde_json::Error| Error::NotJson {
            what: format!("{} {}", self.method, self.path),
            why: error.to_string(),
        };
        self.body = Some(serde_json::to_vec(body).map_err(why)?);
        Ok(self)
    }

    /// Commands, one on each line. The cluster recognises each of them by its own key.
    pub fn lines(path: &str, body: String) -> Call {
        let call = Call::harmless(Method::POST, path.to_string());
        Call { body: Some(body.into()), ..call }.header("content-type", "application/x-ndjson".to_string())
    }

    /// Adds a header.
    pub fn header(mut self, name: &'static str, value: String) -> Call {
        self.headers.push((name, value));
        self
    }

    /// Sets how long the cluster is asked to wait before it answers. This does not change the path or the body.
    pub fn wait(mut self, wait: Duration) -> Call {
        self.wait = wait;
        self
    }

    /// Sets the limit of one attempt, for an answer that is useless if it comes late.
    pub fn attempt(mut self, attempt: Duration) -> Call {
        self.attempt = Some(attempt);
        self
    }

    /// Whether an attempt of unknown outcome leaves the effect of the call in doubt.
    pub fn writes(&self) -> bool {
        self.repeat != Repeat::Reads
    }
}
