//! JSON as text: made compact without reading it as values, so that numbers stay as written and members in their order.

use std::borrow::Cow;
use std::fmt::{self, Write};

use memchr::memchr2;
use serde_json::value::RawValue;

use super::fields::Problem;
use super::limits::{DEPTH_MOST, VALUE_MOST};

/// Values that can write themselves as JSON.
pub trait Json {
    fn write_json(&self, out: &mut dyn Write) -> fmt::Result;

    fn to_json(&self) -> String {
        let mut text = String::new();
        self.write_json(&mut text).expect("writing to a String cannot fail");
        text
    }
}

/// The same JSON on one line: no blanks between tokens, and no control characters anywhere. Otherwise a value with newlines
/// could forge lines of the log. It is copied only if something has to change.
pub fn compact(json: &RawValue) -> Result<Cow<'_, str>, Problem> {
    let text = json.get();
    let bytes = text.as_bytes();
    let mut out = String::new();
    let (mut at, mut copied, mut depth, mut controls) = (0, 0, 0_usize, false);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                let end = string_end(bytes, at, &mut controls);
                at = end;
                continue;
            }
            b' ' | b'\t' | b'\n' | b'\r' => {
                out.reserve(text.len() - out.len());
                out.push_str(&text[copied..at]);
                copied = at + 1;
            }
            b'{' | b'[' => depth += 1,
            // A `RawValue` is valid JSON, so brackets match and strings end.
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEPTH_MOST {
            return Err(Problem::TooDeep { most: DEPTH_MOST });
        }
        at += 1;
    }
    let mut out = match copied {
        0 => Cow::Borrowed(text),
        _ => Cow::Owned(out + &text[copied..]),
    };
    if controls {
        out = without_controls(&out).into();
    }
    if out.len() > VALUE_MOST { Err(Problem::TooLarge { most: VALUE_MOST }) } else { Ok(out) }
}

/// The position behind the closing quote of the string that begins at `at`. Sets `controls` if the string may contain control
/// characters: JSON forbids those below U+0020 in strings, but neither delete nor those of U+0080 to U+009F, which begin with
/// C2 in UTF-8.
pub(super) fn string_end(bytes: &[u8], at: usize, controls: &mut bool) -> usize {
    let mut from = at + 1;
    while let Some(length) = memchr2(b'"', b'\\', &bytes[from..]) {
        let mut end = from + length;
        *controls |= memchr2(0x7f, 0xc2, &bytes[from..end]).is_some();
        // An escaped character is passed over: it may be a quote. A run of escapes is not worth a search each.
        while bytes.get(end) == Some(&b'\\') {
            end += 2;
        }
        if bytes.get(end) == Some(&b'"') {
            return end + 1;
        }
        from = bytes.len().min(end);
    }
    bytes.len()
}

fn without_controls(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c.is_control() {
            true => escape(&mut out, c).expect("writing to a String cannot fail"),
            false => out.push(c),
        }
    }
    out
}

fn escape(out: &mut (impl Write + ?Sized), c: char) -> fmt::Result {
    write!(out, "\\u{:04x}", u32::from(c))
}

/// A string with its quotes.
pub fn write_text(out: &mut (impl Write + ?Sized), text: &str) -> fmt::Result {
    out.write_char('"')?;
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c == '"' || c == '\\' || c.is_control()) {
        out.write_str(&rest[..at])?;
        let c = rest[at..].chars().next().expect("just found");
        match c {
            '"' => out.write_str("\\\"")?,
            '\\' => out.write_str("\\\\")?,
            c => escape(out, c)?,
        }
        rest = &rest[at + c.len_utf8()..];
    }
    out.write_str(rest)?;
    out.write_char('"')
}

/// Items between brackets.
pub fn write_list<T>(
    out: &mut dyn Write,
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut dyn Write, T) -> fmt::Result,
) -> fmt::Result {
    out.write_char('[')?;
    for (number, item) in items.into_iter().enumerate() {
        if number > 0 {
            out.write_char(',')?;
        }
        write(out, item)?;
    }
    out.write_char(']')
}

/// An object's text without its closing brace, so that members can follow. The object must have at least one member.
pub fn open(object: &str) -> &str {
    object.strip_suffix('}').unwrap_or(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compacted(json: &str) -> Result<Cow<'_, str>, Problem> {
        compact(serde_json::from_str(json).expect("JSON"))
    }

    #[test]
    fn only_blanks_between_tokens_go() {
        let json = "\n{ \"a b\" :\t[1.0e5 , -0,\r\n 1.000000000000000000001], \"\\\" \\\\\": \" x \" }\n";
        let expected = "{\"a b\":[1.0e5,-0,1.000000000000000000001],\"\\\" \\\\\":\" x \"}";
        assert_eq!(compacted(json).as_deref(), Ok(expected));
    }

    #[test]
    fn controls_that_json_allows_are_escaped() {
        let compact = compacted("[\"a\u{7f}\u{85}é\u{9f}\u{2028}\"]").expect("small");
        assert_eq!(compact, "[\"a\\u007f\\u0085é\\u009f\u{2028}\"]");
        assert!(!compact.contains(char::is_control));
    }

    #[test]
    fn depth_and_size_are_bounded() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(compacted(&nested(DEPTH_MOST)).is_ok());
        assert_eq!(compacted(&nested(DEPTH_MOST + 1)), Err(Problem::TooDeep { most: DEPTH_MOST }));
        assert_eq!(compacted(&nested(1_000_000)), Err(Problem::TooDeep { most: DEPTH_MOST }));
        let text = |size: usize| format!("  \"{}\"  ", "x".repeat(size - 2));
        assert!(compacted(&text(VALUE_MOST)).is_ok());
        assert_eq!(compacted(&text(VALUE_MOST + 1)), Err(Problem::TooLarge { most: VALUE_MOST }));
    }

    #[test]
    fn written_text_is_read_back() {
        for text in ["", "plain", "\"q\" \\ / \n\t\0\u{7f}\u{9b}", "é\u{1f600}\"", "\\\\\"\""] {
            let mut json = String::new();
            write_text(&mut json, text).expect("a string");
            assert_eq!(serde_json::from_str::<String>(&json).ok().as_deref(), Some(text));
            assert!(!json.contains(char::is_control));
        }
    }
}
