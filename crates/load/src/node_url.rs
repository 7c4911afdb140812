//! URLs of nodes, as people and clusters write them.

use std::fmt;
use std::str::FromStr;

/// The root of a node's HTTP API, as the user writes it: `http://host:port`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeUrl {
    /// The name or address, with the port unless it is HTTP's default, for the header `Host`.
    pub host: String,
    /// Without brackets.
    pub name: String,
    pub port: u16,
    /// Whether the node is called with TLS.
    pub tls: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrlError {
    NoUrl,
    NotHttp,
    /// The URL has more than host and port.
    NotARoot,
}

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UrlError::NoUrl => "not a URL; write one like http://127.0.0.1:9000",
            UrlError::NotHttp => "use http:// or https://",
            UrlError::NotARoot => "give only host and port, like http://127.0.0.1:9000",
        })
    }
}

impl std::error::Error for UrlError {}

impl FromStr for NodeUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<NodeUrl, UrlError> {
        let url = url::Url::parse(text.trim()).map_err(|_| UrlError::NoUrl)?;
        let tls = match url.scheme() {
            "http" => false,
            "https" => true,
            _ => return Err(UrlError::NotHttp),
        };
        let surplus = url.path() != "/" || url.query().is_some() || url.fragment().is_some();
        if surplus || !url.username().is_empty() || url.password().is_some() {
            return Err(UrlError::NotARoot);
        }
        let host = url.host_str().ok_or(UrlError::NoUrl)?;
        let name = host.trim_start_matches('[').trim_end_matches(']').to_string();
        let port = url.port_or_known_default().ok_or(UrlError::NoUrl)?;
        let host = url.port().map_or_else(|| host.to_string(), |port| format!("{host}:{port}"));
        Ok(NodeUrl { host, name, port, tls })
    }
}

impl fmt::Display for NodeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", if self.tls { "https" } else { "http" }, self.host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(String, String, u16), UrlError> {
        let url: NodeUrl = text.parse()?;
        Ok((url.to_string(), url.name, url.port))
    }

    #[test]
    fn urls_name_a_host_and_a_port() {
        let url = |text: &str, name: &str, port| Ok((text.to_string(), name.to_string(), port));
        assert_eq!(read("http://127.0.0.2:9000/"), url("http://127.0.0.2:9000", "127.0.0.2", 9000));
        assert_eq!(read("http://n1.example"), url("http://n1.example", "n1.example", 80));
        assert_eq!(read("https://n1.example"), url("https://n1.example", "n1.example", 443));
        assert_eq!(read(" http://[::1]:9000"), url("http://[::1]:9000", "::1", 9000));
    }

    #[test]
    fn anything_else_is_refused() {
        assert_eq!(read("127.0.0.1:9000"), Err(UrlError::NoUrl));
        assert_eq!(read("http://"), Err(UrlError::NoUrl));
        assert_eq!(read("http://h:99999"), Err(UrlError::NoUrl));
        assert_eq!(read("ftp://h:9000"), Err(UrlError::NotHttp));
        for text in ["http://h:9000/v1", "http://h?x", "http://me@h", "http://h/#x"] {
            assert_eq!(read(text), Err(UrlError::NotARoot), "{text}");
        }
    }
}
