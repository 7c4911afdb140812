//! The errors of a single call.

use std::fmt;

use super::problem::{Attempts, Problem, Tried};

/// Why a call brought no answer, or an answer that is not a success.
#[derive(Clone, Debug)]
pub enum CallError {
    /// The HTTP client cannot be set up on this machine.
    NoClient {
        why: String,
    },
    NotAnAddress {
        url: String,
        why: &'static str,
    },
    /// No connection to any of these nodes could be made, so nothing was sent.
    NotReached {
        tried: Vec<Tried>,
    },
    /// The request was sent, and no whole answer came.
    NoAnswer {
        url: String,
        why: String,
        /// The node may have carried the call out, so the outcome is unknown. A read has none.
        is_open: bool,
    },
    /// The answer does not come from an Eldest node.
    Strange {
        url: String,
        why: String,
    },
    Refused(Box<Problem>),
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::NoClient { why } => write!(f, "cannot create the HTTP client: {why}"),
            CallError::NotAnAddress { url, why } => write!(f, "{url:?} is not a node's address: {why}"),
            CallError::NotReached { tried } => write!(f, "no node could be reached: {}", Attempts(tried)),
            CallError::NoAnswer { url, why, is_open } => {
                let open = if *is_open { "; the outcome is unknown" } else { "" };
                write!(f, "{url} accepted the request and did not answer: {why}{open}")
            }
            CallError::Strange { url, why } => {
                write!(f, "{url} does not answer like an Eldest node: {why}")
            }
            CallError::Refused(problem) => write!(f, "{problem}"),
        }
    }
}

impl std::error::Error for CallError {}
