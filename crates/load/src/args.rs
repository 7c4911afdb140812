//! The options that every benchmark has, and their parsers.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use eldest_tls::ClientFiles;

use super::node_url::NodeUrl;

/// The addresses of the three nodes of `eldest dev`.
const DEFAULT_URLS: [&str; 3] = ["http://127.0.0.1:9000", "http://127.0.0.2:9000", "http://127.0.0.3:9000"];

/// A benchmark of more than a week is a typing error. The bound is far below what a clock can hold.
const DURATION_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// From the two quotes of an empty text to the largest document.
pub const VALUE_BYTES: RangeInclusive<i64> = 2..=1024 * 1024;

/// The nodes to call, and the format of the result.
#[derive(Clone, Debug, clap::Args)]
pub struct Common {
    /// A node of the cluster; repeat the option, or separate several by commas
    #[arg(long = "url", value_name = "URL", value_delimiter = ',', default_values = DEFAULT_URLS)]
    pub urls: Vec<NodeUrl>,

    /// A header for every request, like 'Authorization: Bearer …'; may be repeated
    #[arg(long = "header", value_name = "NAME: VALUE")]
    pub headers: Vec<Header>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub tls: TlsArgs,
}

/// Options for nodes that use TLS.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct TlsArgs {
    /// The CA of nodes called by https://, as a PEM file
    #[arg(id = "tls_ca", long = "ca", env = "ELDEST_CA", value_name = "FILE")]
    ca: Option<PathBuf>,

    /// A client certificate, if the nodes require one
    #[arg(id = "tls_cert", long = "cert", env = "ELDEST_CERT", value_name = "FILE")]
    cert: Option<PathBuf>,

    /// The private key of the certificate, unless it is in the same file
    #[arg(id = "tls_key", long = "key", env = "ELDEST_KEY", value_name = "FILE", requires = "tls_cert")]
    key: Option<PathBuf>,
}

impl TlsArgs {
    pub fn files(&self) -> ClientFiles {
        ClientFiles { ca: self.ca.clone(), cert: self.cert.clone(), key: self.key.clone() }
    }
}

impl Common {
    /// The headers as the lines of a request.
    pub fn header_lines(&self) -> Vec<u8> {
        self.headers.iter().flat_map(|Header(line)| [line.as_bytes(), b"\r\n"].concat()).collect()
    }
}

/// The choice of nodes.
#[derive(Clone, Debug, clap::Args)]
pub struct Choice {
    /// Call only the leader, and follow it when it changes (the default)
    #[arg(long, conflicts_with = "spread")]
    pub leader: bool,

    /// Spread the connections over all the URLs; followers forward to the leader
    #[arg(long)]
    pub spread: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header(String);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderError;

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("write a header like 'Name: value', on one line")
    }
}

impl std::error::Error for HeaderError {}

impl FromStr for Header {
    type Err = HeaderError;

    fn from_str(text: &str) -> Result<Header, HeaderError> {
        let (name, value) = text.split_once(':').ok_or(HeaderError)?;
        let in_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || !name.chars().all(in_name) || value.chars().any(char::is_control) {
            return Err(HeaderError);
        }
        Ok(Header(format!("{name}: {}", value.trim())))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DurationError {
    NoDuration,
    TooLong,
}

impl fmt::Display for DurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DurationError::NoDuration => f.write_str("write a duration like 500ms, 10s, 5m or 1h"),
            DurationError::TooLong => write!(f, "at most {} h", DURATION_MAX.as_secs() / 3600),
        }
    }
}

impl std::error::Error for DurationError {}

pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60 * 1000,
        "h" => 3600 * 1000,
        _ => return Err(DurationError::NoDuration),
    };
    if number.is_empty() {
        return Err(DurationError::NoDuration);
    }
    let millis = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit_ms));
    let duration = millis.map(Duration::from_millis);
    duration.filter(|duration| *duration <= DURATION_MAX).ok_or(DurationError::TooLong)
}

/// Parses a duration that must not be zero.
pub fn parse_span(text: &str) -> Result<Duration, DurationError> {
    parse_duration(text)
        .and_then(|span| if span.is_zero() { Err(DurationError::NoDuration) } else { Ok(span) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(parse_duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(parse_duration("0s"), Ok(Duration::ZERO));
        assert_eq!(parse_duration("168h"), Ok(DURATION_MAX));
        for text in ["", "10", "s", "-1s", "1.5s", "1 s", "1d", "١s"] {
            assert_eq!(parse_duration(text), Err(DurationError::NoDuration), "{text}");
        }
        for text in ["169h", "99999999999999999999s", "18446744073709551615h"] {
            assert_eq!(parse_duration(text), Err(DurationError::TooLong), "{text}");
        }
        assert_eq!(parse_span("0ms"), Err(DurationError::NoDuration));
    }

    #[test]
    fn headers_are_one_line() {
        assert_eq!("X-A:b ".parse(), Ok(Header("X-A: b".to_string())));
        for text in ["", "x", ": x", "a b: c", "a: b\r\nc: d", "a: \0"] {
            assert_eq!(text.parse::<Header>(), Err(HeaderError), "{text:?}");
        }
    }
}
