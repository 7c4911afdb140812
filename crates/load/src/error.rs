//! The errors that leave a benchmark without a result.

use std::fmt;
use std::io;
use std::time::Duration;

use super::node_url::UrlError;

#[derive(Debug)]
pub enum BenchError {
    Resolve {
        url: String,
        source: io::Error,
    },
    /// A file that TLS needs has an error.
    Certificates(eldest_tls::TlsError),
    /// No node named a leader. The list has each node's answer.
    NoLeader {
        said: Vec<(String, String)>,
    },
    /// The leader's URL, as the cluster gives it, cannot be used here.
    LeaderUrl {
        url: String,
        source: UrlError,
    },
    /// A server refused a request as wrong, so it would refuse the next ones too.
    Rejected {
        url: String,
        code: String,
    },
    /// No request was accepted for this long.
    Stuck {
        patience: Duration,
        code: String,
    },
    /// The run is over, and not one operation succeeded. The code is the one that was counted most often.
    NothingSucceeded {
        code: Option<String>,
    },
    /// The result could not be written.
    Output(io::Error),
    Runtime(io::Error),
    /// The program ended before the benchmark did.
    Ended,
}

impl fmt::Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BenchError::Resolve { url, source } => write!(f, "cannot find the host of {url}: {source}"),
            BenchError::Certificates(error) => write!(f, "{error}"),
            BenchError::NoLeader { said } => {
                write!(f, "no leader found")?;
                said.iter().try_for_each(|(url, what)| write!(f, "\n  {url}: {what}"))
            }
            BenchError::LeaderUrl { url, source } => {
                write!(
                    f,
                    "the cluster says that its leader is at {url:?}: {source}; --spread does not need the leader"
                )
            }
            BenchError::Rejected { url, code } => write!(f, "{url} rejected a request: {code}"),
            BenchError::Stuck { patience, code } => {
                write!(f, "no operation succeeded for {} s; the last answer was {code}", patience.as_secs())
            }
            BenchError::NothingSucceeded { code: Some(code) } => {
                write!(f, "no operation succeeded; most failed with {code}")
            }
            BenchError::NothingSucceeded { code: None } => write!(f, "no operation was answered"),
            BenchError::Output(source) => write!(f, "cannot write the result: {source}"),
            BenchError::Runtime(source) => write!(f, "cannot start: {source}"),
            BenchError::Ended => write!(f, "interrupted before the benchmark was done"),
        }
    }
}

impl std::error::Error for BenchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            BenchError::Resolve { source, .. } => Some(source),
            BenchError::LeaderUrl { source, .. } => Some(source),
            BenchError::Output(source) | BenchError::Runtime(source) => Some(source),
            _ => None,
        }
    }
}
