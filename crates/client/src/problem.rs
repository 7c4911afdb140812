//! A refusal of the cluster, and the record of failed attempts.

use std::fmt;

use serde::Deserialize;
use serde_json::{Map, Value};

/// The code of the refusal of a call that is meant for another cluster.
pub const WRONG_CLUSTER: &str = "wrong_cluster";

/// One failed attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    pub url: String,
    pub why: String,
}

/// A refusal, in the format of RFC 9457.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Problem {
    pub status: u16,
    pub code: String,
    pub title: String,
    pub detail: String,
    pub retryable: bool,
    pub leader_node: Option<LeaderNode>,
    pub request_id: Option<String>,
    /// The source of the token that the cluster refused, as the program names it: an argument, a variable or a file.
    #[serde(skip)]
    pub token_from: Option<String>,
    /// The further members that this code has.
    #[serde(flatten)]
    pub members: Map<String, Value>,
}

/// The node that leads, as a refusal names it.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct LeaderNode {
    pub id: Option<u64>,
    pub url: String,
}

impl fmt::Display for Tried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.url, self.why)
    }
}

/// Displays attempts, one after the other.
pub struct Attempts<'a>(pub &'a [Tried]);

impl fmt::Display for Attempts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, tried) in self.0.iter().enumerate() {
            let part = if place == 0 { "" } else { "; " };
            write!(f, "{part}{tried}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = if self.detail.is_empty() { &self.title } else { &self.detail };
        write!(f, "refused: {text} ({}, {})", self.code, self.status)?;
        match &self.token_from {
            Some(source) => write!(f, "; the token is from {source}"),
            None => Ok(()),
        }
    }
}
