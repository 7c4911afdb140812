//! Paths and the percent signs in them.
//!
//! A name may hold any text, `/` included. Segments of `.` and `..` are the exception: URL libraries take them out on
//! the way, so a name that holds one would be another name to every second client.

use std::borrow::Cow;
use std::fmt::Write;

use super::problem::Problem;

/// What follows `prefix` in the path, decoded.
pub fn name_after<'a>(path: &'a str, prefix: &str, what: &str) -> Result<Cow<'a, str>, Problem> {
    let raw = path.strip_prefix(prefix).unwrap_or_default();
    let name =
        decode(raw).ok_or_else(|| Problem::field(what, format!("the {what} in the path is not UTF-8")))?;
    match name.as_ref() {
        "" => Err(Problem::field(what, format!("the {what} in the path is empty"))),
        _ => Ok(name),
    }
}

/// None for what is not UTF-8, or has a percent sign without two hex digits.
pub fn decode(raw: &str) -> Option<Cow<'_, str>> {
    if !raw.contains('%') {
        return Some(Cow::Borrowed(raw));
    }
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw.bytes();
    while let Some(byte) = rest.next() {
        let decoded = match byte {
            b'%' => hex(rest.next()?)? << 4 | hex(rest.next()?)?,
            byte => byte,
        };
        bytes.push(decoded);
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

/// A name as it may stand in a path, as one segment.
pub fn encode(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' => out.push(char::from(byte)),
            byte => write!(out, "%{byte:02X}").expect("a string takes everything"),
        }
    }
    out
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

/// Whether a segment would be taken out by a URL library: `.` and `..`, encoded or not.
pub fn has_dot_segments(path: &str) -> bool {
    if !path.contains("/.") && !path.contains("/%2") {
        return false;
    }
    let is_dots = |segment: &str| {
        let rest = segment.replace("%2e", ".").replace("%2E", ".");
        matches!(rest.as_str(), "." | "..")
    };
    path.split('/').any(is_dots)
}

/// The same target with everything encoded that a URL library would change: it must reach the next node as it came here.
pub fn tame(target: &str) -> Cow<'_, str> {
    if target.bytes().all(is_tame) {
        return Cow::Borrowed(target);
    }
    let mut out = String::with_capacity(target.len() + 16);
    for byte in target.bytes() {
        match is_tame(byte) {
            true => out.push(char::from(byte)),
            false => {
                const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
                out.push('%');
                out.push(char::from(DIGITS[usize::from(byte >> 4)]));
                out.push(char::from(DIGITS[usize::from(byte & 15)]));
            }
        }
    }
    Cow::Owned(out)
}

fn is_tame(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&()*+,;=:@/?%".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_decoded_or_refused() {
        let name = |path| name_after(path, "/v1/docs/", "key").map(Cow::into_owned).ok();
        assert_eq!(name("/v1/docs/a/b").as_deref(), Some("a/b"));
        assert_eq!(name("/v1/docs/a%2Fb%20c%C3%A9").as_deref(), Some("a/b cé"));
        for wrong in ["/v1/docs/", "/v1/docs/%", "/v1/docs/%f", "/v1/docs/%zz", "/v1/docs/%ff", "", "*"] {
            assert_eq!(name(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn dot_segments_are_seen() {
        for path in ["/a/../b", "/a/.", "/%2e%2E/b", "/a/.%2e", "/a/%2e/"] {
            assert!(has_dot_segments(path), "{path}");
        }
        for path in ["/a/.b", "/a/...", "/a.b/c", "/a/%2ex", "/a/b..", "/", ""] {
            assert!(!has_dot_segments(path), "{path}");
        }
    }

    #[test]
    fn a_tame_target_says_the_same() {
        let wild = "/v1/docs/a\\b{|}^`\"'é?after=x y";
        let tamed = tame(wild);
        assert_eq!(decode(&tamed).as_deref(), decode(wild).as_deref());
        assert!(tamed.bytes().all(is_tame));
        assert!(matches!(tame("/v1/docs/a-b_c~d?limit=3&after=%20"), Cow::Borrowed(_)));
    }
}
