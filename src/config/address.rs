//! The address of a node: an IP address or a host name, and a port.

use std::fmt;
use std::net::IpAddr;

use reqwest::Url;

/// The management port of the seed.
pub const DEFAULT_PORT: u16 = 9000;

/// The bounds of the domain name system.
const NAME_BYTES_MOST: usize = 253;
const LABEL_BYTES_MOST: usize = 63;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    Ip(IpAddr),
    /// In lower case. Each side that opens a connection resolves the name again.
    Name(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    pub host: Host,
    pub port: u16,
}

impl Host {
    /// On failure, a hint at what would be right.
    pub(super) fn parse(text: &str) -> Result<Host, &'static str> {
        if let Ok(ip) = text.parse() {
            return Ok(Host::Ip(ip));
        }
        if is_callable_name(text) { Ok(Host::Name(text.to_lowercase())) } else { Err(hint(text)) }
    }

    /// An address that others can call. An address that stands for many, such as `0.0.0.0`, is only right in `bind`.
    pub(super) fn parse_callable(text: &str) -> Result<Host, &'static str> {
        match Host::parse(text)? {
            Host::Ip(ip) if ip.is_unspecified() || ip.is_multicast() => {
                Err("other nodes cannot connect to it: write the address at which they reach this node")
            }
            host => Ok(host),
        }
    }

    /// Whether the address can be reached from this machine only. Of names only `localhost` and names below it count.
    pub fn is_loopback(&self) -> bool {
        match self {
            Host::Ip(ip) => ip.to_canonical().is_loopback(),
            Host::Name(name) => name == "localhost" || name.ends_with(".localhost"),
        }
    }
}

impl Address {
    /// Parses `host` or `host:port`. An IPv6 address with a port is in brackets.
    pub(super) fn parse_listen(text: &str, default_port: u16) -> Result<Address, &'static str> {
        const HINT: &str = "write an address with or without a port, such as 0.0.0.0:9000";
        if let Ok(host) = Host::parse(text) {
            return Ok(Address { host, port: default_port });
        }
        let (host, port) = text.rsplit_once(':').ok_or(HINT)?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let host = Host::parse(bare).map_err(|_| HINT)?;
        match port.parse() {
            Ok(port) if port > 0 => Ok(Address { host, port }),
            _ => Err(HINT),
        }
    }

    /// Parses the address at which others call a node: `host:port`, or `host` with the seed's port.
    pub fn parse_called(text: &str) -> Result<Address, &'static str> {
        let address = Address::parse_listen(text, DEFAULT_PORT)
            .map_err(|_| "write host:port, such as 10.0.0.4:9000, an IPv6 address in brackets")?;
        match address.host {
            Host::Ip(ip) if ip.is_unspecified() || ip.is_multicast() => {
                Err("other nodes cannot connect to it: write the address at which they reach this node")
            }
            _ => Ok(address),
        }
    }

    pub fn url(&self) -> String {
        format!("http://{self}")
    }
}

/// Whether the name is valid, and a URL takes it as the same name. In a URL `0x7f.1` is an address, and the part
/// after `xn--` must be valid.
fn is_callable_name(text: &str) -> bool {
    let url = Url::parse(&format!("http://{text}/"));
    is_name(text) && url.is_ok_and(|url| url.host_str().is_some_and(|host| host.eq_ignore_ascii_case(text)))
}

/// Whether the text is a host name. Its last label must not be a number, or `10.0.0` would be a name.
fn is_name(text: &str) -> bool {
    let labels = text.strip_suffix('.').unwrap_or(text).split('.');
    let numeric =
        labels.clone().next_back().is_some_and(|label| label.bytes().all(|byte| byte.is_ascii_digit()));
    text.len() <= NAME_BYTES_MOST && !numeric && labels.into_iter().all(is_label)
}

/// Underscores are allowed, because names of containers have them.
fn is_label(label: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=LABEL_BYTES_MOST).contains(&label.len())
        && label.bytes().all(allowed)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

fn hint(text: &str) -> &'static str {
    let digits_and_dots = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if text.contains('/') {
        "write it without scheme and path"
    } else if text.starts_with('[') {
        "write an IPv6 address without brackets, and the port separately, as \"port\""
    } else if digits_and_dots {
        "an IPv4 address has four numbers from 0 to 255, such as 192.168.1.10"
    } else if text.matches(':').count() == 1 {
        "write the port separately, as \"port\""
    } else {
        "write an IP address, such as 192.168.1.10, or a host name"
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Ip(ip) => ip.fmt(f),
            Host::Name(name) => f.write_str(name),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Ip(IpAddr::V6(ip)) => write!(f, "[{ip}]:{}", self.port),
            host => write!(f, "{host}:{}", self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts() {
        let long = format!("{}.org", "a".repeat(LABEL_BYTES_MOST));
        for good in [
            "192.168.1.10",
            "::1",
            "fe80::1",
            "node-1",
            "Node_1",
            "a.b.example.org.",
            "10.0.0.1.nip.io",
            &long,
        ] {
            assert!(Host::parse_callable(good).is_ok(), "{good}");
        }
        let (too_long, endless) = (format!("a{long}"), "a.".repeat(200));
        for bad in [
            "",
            ".",
            "10.0.0",
            "10.0.0.256",
            "1.2.3.4.5",
            "a..b",
            "-a",
            "a-",
            "a b",
            "é",
            "0.0.0.0",
            "::",
            "224.0.0.1",
            "[::1]",
            "1.2.3.4:9000",
            "http://a",
            "fe80::1%eth0",
            "0x7f.1",
            "0xfffffffffff",
            "a.0x100000000",
            "xn--0",
            &too_long,
            &endless,
        ] {
            assert!(Host::parse_callable(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_others_cannot_reach() {
        let is_loopback = |text| Host::parse(text).unwrap().is_loopback();
        assert!(
            ["127.0.0.1", "127.3.2.1", "::1", "::ffff:127.0.0.1", "LocalHost", "a.localhost"]
                .map(is_loopback)
                == [true; 6]
        );
        assert!(["0.0.0.0", "10.0.0.1", "::", "n1", "localhost.org"].map(is_loopback) == [false; 5]);
    }

    #[test]
    fn listening() {
        let parse = |text| Address::parse_listen(text, 7).map(|address| address.url());
        for (text, url) in [
            ("0.0.0.0", "http://0.0.0.0:7"),
            ("0.0.0.0:80", "http://0.0.0.0:80"),
            ("::1", "http://[::1]:7"),
            ("[::]:80", "http://[::]:80"),
            ("N1:80", "http://n1:80"),
        ] {
            assert_eq!(parse(text), Ok(url.to_string()));
        }
        for bad in ["", ":80", "n1:", "n1:0", "n1:65536", "[::1]", "[n1", "n 1:80", "http://n1:80"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
