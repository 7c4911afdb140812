//! The URL of a request: names in its path, percent encoding, and the query.
//!
//! A name may hold any text, including `/`. Segments of `.` and `..` are the exception: URL libraries remove them, so a name with such a
//! segment would be another name for many clients. An unknown query parameter is refused: ignoring a misspelt parameter would read the
//! wrong data.

use std::borrow::Cow;
use std::fmt::Write;

use crate::driver::handle::Level;
use crate::http::answer::Problem;
use crate::store::is_blank;

/// Items in a page if the caller does not state a limit.
const LIMIT_DEFAULT: usize = 100;

/// A larger page would delay the other callers.
const LIMIT_MOST: usize = 1000;

/// The query parameters of all routes.
#[derive(Debug, Default)]
pub struct Query<'a> {
    pub level: Option<Level>,
    /// `forward=no`: the caller wants a redirect instead of an answer.
    pub no_forward: bool,
    pub limit: Option<usize>,
    pub after: Option<Cow<'a, str>>,
    pub prefix: Option<Cow<'a, str>>,
    pub kind: Option<Cow<'a, str>>,
    pub kinds: Option<Cow<'a, str>>,
    pub since: Option<Cow<'a, str>>,
    pub format: Option<Cow<'a, str>>,
    /// Parameters of a single route.
    more: Vec<(String, Cow<'a, str>)>,
}

impl<'a> Query<'a> {
    /// `known` are the names that this route takes.
    /// Names are compared as they are sent, undecoded: no client encodes them, and an encoded one is refused
    /// as unknown.
    pub fn parse(text: Option<&'a str>, known: &[&str]) -> Result<Query<'a>, Problem> {
        let mut query = Query::default();
        let mut seen = Vec::new();
        for pair in text.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let Some(name) = known.iter().find(|known| **known == name) else {
                let detail = match known {
                    [] => "this route takes no query parameters".to_string(),
                    known => format!("unknown query parameter; this route supports {}", known.join(", ")),
                };
                return Err(Problem::field(name, detail));
            };
            if seen.contains(name) {
                return Err(Problem::field(name, "the query parameter is given twice"));
            }
            seen.push(name);
            query.set(name, decode_plus(name, value)?)?;
        }
        Ok(query)
    }

    fn set(&mut self, name: &str, value: Cow<'a, str>) -> Result<(), Problem> {
        match name {
            "level" => self.level = Some(level(&value)?),
            "forward" => self.no_forward = !forward(&value)?,
            "limit" => self.limit = Some(limit(&value)?),
            "after" => self.after = Some(value),
            "prefix" => self.prefix = Some(value),
            "kind" => self.kind = Some(value),
            "kinds" => self.kinds = Some(value),
            "since" => self.since = Some(value),
            "format" => self.format = Some(value),
            name => self.more.push((name.to_string(), value)),
        }
        Ok(())
    }

    pub fn more(&self, name: &str) -> Option<&str> {
        self.more.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_ref())
    }

    pub fn level(&self) -> Level {
        self.level.unwrap_or(Level::Linear)
    }

    pub fn limit(&self) -> usize {
        self.limit.unwrap_or(LIMIT_DEFAULT)
    }
}

/// In a query `+` is a blank, as forms and most libraries write it; in a path it is a plus sign.
fn decode_plus<'a>(name: &str, value: &'a str) -> Result<Cow<'a, str>, Problem> {
    let wrong = || Problem::field(name, "the value is not percent-encoded UTF-8");
    match value.contains('+') {
        false => decode(value).ok_or_else(wrong),
        true => {
            decode(&value.replace('+', " ")).map(|value| Cow::Owned(value.into_owned())).ok_or_else(wrong)
        }
    }
}

fn level(value: &str) -> Result<Level, Problem> {
    match value {
        "linear" => Ok(Level::Linear),
        "leader" => Ok(Level::Leader),
        "local" => Ok(Level::Local),
        _ => Err(Problem::field("level", "level must be linear, leader or local")),
    }
}

fn forward(value: &str) -> Result<bool, Problem> {
    match value {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err(Problem::field("forward", "forward must be yes or no")),
    }
}

fn limit(value: &str) -> Result<usize, Problem> {
    let limit = value.parse().ok().filter(|limit| (1..=LIMIT_MOST).contains(limit));
    limit.ok_or_else(|| Problem::field("limit", format!("limit must be an integer from 1 to {LIMIT_MOST}")))
}

/// Does the same for a new name, which must be visible.
/// A name that shows nothing could not be typed again, nor told apart in a list. Reads and deletes do not
/// check this.
pub fn new_name_after<'a>(path: &'a str, prefix: &str, what: &str) -> Result<Cow<'a, str>, Problem> {
    let name = name_after(path, prefix, what)?;
    match is_blank(&name) {
        true => Err(Problem::field(what, format!("the {what} in the path has no visible character"))),
        false => Ok(name),
    }
}

/// Returns the decoded part of the path after `prefix`.
pub fn name_after<'a>(path: &'a str, prefix: &str, what: &str) -> Result<Cow<'a, str>, Problem> {
    let raw = path.strip_prefix(prefix).unwrap_or_default();
    let name =
        decode(raw).ok_or_else(|| Problem::field(what, format!("the {what} in the path is not UTF-8")))?;
    match name.as_ref() {
        "" => Err(Problem::field(what, format!("the {what} in the path is empty"))),
        _ => Ok(name),
    }
}

/// Returns None for text that is not UTF-8, or that has a percent sign without two hex digits.
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

/// Encodes a name as one segment of a path.
/// `/` is encoded as well: the name stays one segment, and a role named `a/renew` is not taken for an
/// operation.
pub fn encode(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' => out.push(char::from(byte)),
            byte => write!(out, "%{byte:02X}").expect("writing to a String cannot fail"),
        }
    }
    out
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

/// Returns whether a URL library would remove a segment: `.` or `..`, encoded or not.
/// The first test keeps the common path cheap: each such segment begins with a dot or with `%2`.
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

/// Encodes all characters that a URL library would change, so that the target reaches the next node as it came here.
pub fn url_safe(target: &str) -> Cow<'_, str> {
    if target.bytes().all(is_url_safe) {
        return Cow::Borrowed(target);
    }
    let mut out = String::with_capacity(target.len() + 16);
    for byte in target.bytes() {
        match is_url_safe(byte) {
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

/// `%` stays as it is: what is encoded already must not be encoded twice.
fn is_url_safe(byte: u8) -> bool {
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
        let tamed = url_safe(wild);
        assert_eq!(decode(&tamed).as_deref(), decode(wild).as_deref());
        assert_eq!(tamed, "/v1/docs/a%5Cb%7B%7C%7D%5E%60%22%27%C3%A9?after=x%20y");
        assert!(matches!(url_safe("/v1/docs/a-b_c~d?limit=3&after=%20"), Cow::Borrowed(_)));
    }

    #[test]
    fn what_is_known_is_read() {
        let known = ["level", "limit", "after", "prefix", "forward"];
        let query = Query::parse(Some("level=local&&limit=7&after=a%2Fb+c&prefix=&forward=no"), &known);
        let query = query.expect("all of it is known");
        assert_eq!((query.level(), query.limit(), query.no_forward), (Level::Local, 7, true));
        assert_eq!((query.after.as_deref(), query.prefix.as_deref()), (Some("a/b c"), Some("")));
        let none = Query::parse(None, &[]).expect("nothing is nothing wrong");
        assert_eq!((none.level(), none.limit(), none.no_forward), (Level::Linear, LIMIT_DEFAULT, false));
    }

    #[test]
    fn what_is_not_is_refused() {
        let known = ["level", "limit", "after"];
        for text in
            ["levle=local", "prefix=a", "level=", "level", "limit=0", "limit=1001", "limit=x", "limit=-1"]
        {
            assert!(Query::parse(Some(text), &known).is_err(), "{text}");
        }
        for text in ["level=local&level=local", "after=%ff", "after=%2", "=", "%6cevel=local"] {
            assert!(Query::parse(Some(text), &known).is_err(), "{text}");
        }
    }
}
