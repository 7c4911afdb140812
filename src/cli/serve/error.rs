//! Why a node does not start, or has ended.

use std::fmt;
use std::io;

use crate::cli::sources::FILTER_VARIABLE;
use crate::driver::{End, StartError};

#[derive(Debug)]
pub enum ServeError {
    Filter {
        text: String,
        why: String,
    },
    Signals(io::Error),
    Bind {
        address: String,
        error: io::Error,
    },
    Start(StartError),
    Client(reqwest::Error),
    /// A part ended that nobody had asked to.
    Ended(Ending),
}

#[derive(Debug)]
pub enum Ending {
    Loop(End),
    /// It went without a word: its thread has died.
    LoopLost,
    Http(io::Error),
    HttpLost,
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServeError::Filter { text, why } => write!(f, "{}={text}: {why}", FILTER_VARIABLE),
            ServeError::Signals(error) => write!(f, "signals cannot be waited for: {error}"),
            ServeError::Bind { address, error } => write!(f, "{address} cannot be listened on: {error}"),
            ServeError::Start(error) => write!(f, "{error}"),
            ServeError::Client(error) => write!(f, "no HTTP client: {error}"),
            ServeError::Ended(ending) => write!(f, "the node ended by itself: {ending}"),
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::Loop(end) => end.fmt(f),
            Ending::LoopLost => write!(f, "its loop died"),
            Ending::Http(error) => write!(f, "its listener failed: {error}"),
            Ending::HttpLost => write!(f, "its listener died"),
        }
    }
}
