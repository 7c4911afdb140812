//! What a single call may end with, besides an answer.

use std::fmt;

use super::problem::{Attempts, Problem, Tried};

/// Why a call has brought no answer, or none that a node gives to what it takes.
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
    /// Nothing was sent: none of these could be connected to.
    NotReached {
        tried: Vec<Tried>,
    },
    /// The request left, and no whole answer came: it may or may not have happened.
    NoAnswer {
        url: String,
        why: String,
    },
    /// An answer, but not one of Eldest's.
    Strange {
        url: String,
        why: String,
    },
    Refused(Box<Problem>),
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::NoClient { why } => write!(f, "no HTTP client: {why}"),
            CallError::NotAnAddress { url, why } => write!(f, "{url:?} is no address of a node: {why}"),
            CallError::NotReached { tried } => write!(f, "no node can be reached: {}", Attempts(tried)),
            CallError::NoAnswer { url, why } => {
                write!(f, "{url} took the request and did not answer: {why}; it may or may not have happened")
            }
            CallError::Strange { url, why } => {
                write!(f, "{url} does not answer like a node of Eldest: {why}")
            }
            CallError::Refused(problem) => write!(f, "{problem}"),
        }
    }
}

impl std::error::Error for CallError {}
