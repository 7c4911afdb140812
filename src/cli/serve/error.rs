//! The errors of a node's start, and its unexpected ends.

use std::fmt;
use std::io;

use eldest_tls::TlsError;

use crate::cli::sources::FILTER_VARIABLE;
use crate::driver::{End, StartError};

#[derive(Debug)]
pub enum ServeError {
    Filter {
        text: String,
        why: String,
    },
    Signals(io::Error),
    /// The process may open only this number of files.
    FewFiles {
        files: u64,
        least: u64,
    },
    Bind {
        address: String,
        error: io::Error,
    },
    Start(StartError),
    /// The certificates were right when the configuration was checked, and are not right any more.
    Certificates(Vec<TlsError>),
    Client(reqwest::Error),
    /// The file of the audit log cannot be opened, or there is no thread for it.
    Audit(io::Error),
    /// A part of the node ended that was not asked to.
    Ended(Ending),
}

#[derive(Debug)]
pub enum Ending {
    Loop(End),
    /// The loop ended without an error: its thread has died.
    LoopLost,
    Http(io::Error),
    HttpLost,
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServeError::Filter { text, why } => write!(f, "{}={text}: {why}", FILTER_VARIABLE),
            ServeError::Signals(error) => write!(f, "cannot install signal handlers: {error}"),
            ServeError::FewFiles { files, least } => {
                write!(f, "the limit of open files is {files}, and a node needs {least}: raise `ulimit -n`")
            }
            ServeError::Bind { address, error } => write!(f, "cannot listen on {address}: {error}"),
            ServeError::Start(error) => write!(f, "{error}"),
            ServeError::Certificates(errors) => {
                let errors: Vec<String> = errors.iter().map(TlsError::to_string).collect();
                write!(f, "{}", errors.join("; "))
            }
            ServeError::Client(error) => write!(f, "cannot create the HTTP client: {error}"),
            ServeError::Audit(error) => write!(f, "cannot open the audit log (audit.file): {error}"),
            ServeError::Ended(ending) => write!(f, "the node ended: {ending}"),
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::Loop(end) => end.fmt(f),
            Ending::LoopLost => write!(f, "its main loop died"),
            Ending::Http(error) => write!(f, "its listener failed: {error}"),
            Ending::HttpLost => write!(f, "its listener died"),
        }
    }
}
