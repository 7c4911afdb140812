//! Why there is no answer.

use std::fmt;
use std::io;

/// The rule that an answer broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    StatusLine,
    Header,
    HeadTooLong,
    /// The length of the body is not a number, or is given twice.
    Length,
    /// A transfer coding other than `chunked`.
    Coding,
    Chunk,
    BodyTooLong,
    /// The stream ended within the answer.
    CutShort,
    /// There are bytes that no request asked for.
    Unasked,
    /// There are too many interim answers, or one that changes the protocol.
    Interim,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    Connect(io::ErrorKind),
    ConnectTimeout,
    /// The TLS handshake failed.
    Handshake,
    Lost(io::ErrorKind),
    Timeout,
    Malformed(Malformed),
}

impl Failure {
    /// The name under which the failure is counted, in the style of the servers' own codes.
    pub fn code(self) -> &'static str {
        match self {
            Failure::Connect(io::ErrorKind::ConnectionRefused) => "connect_refused",
            Failure::Connect(_) => "connect_failed",
            Failure::ConnectTimeout => "connect_timeout",
            Failure::Handshake => "tls_failed",
            Failure::Lost(_) => "connection_lost",
            Failure::Timeout => "timeout",
            Failure::Malformed(_) => "malformed_answer",
        }
    }

    /// Whether the request may have reached the server.
    pub fn was_sent(self) -> bool {
        !matches!(self, Failure::Connect(_) | Failure::ConnectTimeout | Failure::Handshake)
    }
}

impl From<Malformed> for Failure {
    fn from(malformed: Malformed) -> Failure {
        Failure::Malformed(malformed)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Connect(kind) => write!(f, "cannot connect: {kind}"),
            Failure::ConnectTimeout => write!(f, "connecting timed out"),
            Failure::Handshake => {
                write!(f, "the TLS handshake failed: give the CA with --ca, or use http://")
            }
            Failure::Lost(kind) => write!(f, "connection lost: {kind}"),
            Failure::Timeout => write!(f, "no answer in time"),
            Failure::Malformed(how) => write!(f, "malformed answer: {how:?}"),
        }
    }
}
