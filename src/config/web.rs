//! The rules for browsers: the host names by which this node may be called, and the other origins whose pages may use
//! it. A list is a text with blanks or commas between its entries, so that a variable of the environment can hold
//! one.

use super::layers::Merged;
use super::mistakes::Findings;
use super::wrong::quoted;
use super::{SettingPlace, WrongValue};

const HOST_HINT: &str = "write names such as eldest.example.org, without scheme or port, separated by spaces";
const ORIGIN_HINT: &str =
    "write origins such as https://console.example.org:8443, as browsers send them, separated by spaces";

/// The names are in lower case, as they are compared.
pub fn hosts(settings: &Merged, findings: &mut Findings) -> Vec<String> {
    let place = settings.place("allowed_hosts");
    list(&settings.raw.allowed_hosts, is_host, HOST_HINT, &place, findings)
}

pub fn origins(settings: &Merged, findings: &mut Findings) -> Vec<String> {
    let place = settings.place("allowed_origins");
    list(&settings.raw.allowed_origins, is_origin, ORIGIN_HINT, &place, findings)
}

fn list(
    text: &str,
    is_sound: impl Fn(&str) -> bool,
    hint: &'static str,
    place: &SettingPlace,
    findings: &mut Findings,
) -> Vec<String> {
    let entries = text.split([' ', ',']).filter(|entry| !entry.is_empty());
    let entries: Vec<String> = entries.map(str::to_ascii_lowercase).collect();
    for wrong in entries.iter().filter(|entry| !is_sound(entry)) {
        findings.spoil(place.clone(), WrongValue::NotAnAddress { found: quoted(wrong), hint });
    }
    entries
}

fn is_host(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

/// An origin is a scheme, a host and, if it is not the scheme's default, a port. It has no path, not even the first
/// slash.
fn is_origin(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else {
        return false;
    };
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse::<u16>().is_ok()),
        _ => (rest, true),
    };
    let literal = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let known = literal.map_or(is_host(host), |host| host.parse::<std::net::Ipv6Addr>().is_ok());
    port && known
        && !scheme.is_empty()
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_written_as_browsers_say_them() {
        for good in [
            "http://localhost:3000",
            "https://a.example",
            "http://[::1]:8080",
            "http://[::1]",
            "http://10.0.0.1",
        ] {
            assert!(is_origin(good), "{good}");
        }
        for wrong in
            ["a.example", "https://a.example/", "https://", "*", "null", "https://a:b", "://a", "http://a b"]
        {
            assert!(!is_origin(wrong), "{wrong}");
        }
        assert!(is_host("eldest.example.org") && is_host("web_1"));
        assert!(!is_host("a:9000") && !is_host("http://a") && !is_host("*"));
    }
}
