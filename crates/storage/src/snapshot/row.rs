//! One line of a snapshot: `table "key" value`, or `table "key" -` for a deletion.
//!
//! The key is a JSON string, so it may contain anything and the row is still one line. Lines are ordered by table and by the
//! key's own bytes, not by their escaped form. A value is never a lone `-`, which is not JSON.

use std::ops::Range;

use super::change::{Change, LINE_BYTES_MAX};
use super::error::Why;

/// The first word of the last line. It cannot be a table.
const END: &str = "end";

const DELETED: &str = "-";

/// A parsed line. It keeps the text of the line, so copying a row is copying its text. The value is not parsed: the store
/// reads it when the state is loaded, and a merge has no use for it.
#[derive(Debug, Default)]
pub(super) struct Row {
    line: String,
    table_end: usize,
    /// The key's text between the quotes.
    key: Range<usize>,
    /// The key, if its text has escapes.
    unescaped: Option<String>,
    value: Range<usize>,
}

impl Row {
    /// `line` includes its newline.
    pub fn parse(line: String) -> Result<Row, Why> {
        let text = line.strip_suffix('\n').ok_or(Why::Unfinished)?;
        let table_end = table_end(text).ok_or(Why::Table)?;
        let opening = table_end + 1;
        let (length, escaped) = string_length(&text.as_bytes()[opening..]).ok_or(Why::Key)?;
        let closing = opening + length;
        let unescaped = match escaped {
            true => Some(serde_json::from_str(&text[opening..closing]).map_err(|_| Why::Key)?),
            false => None,
        };
        let value = text[closing..].strip_prefix(' ').ok_or(Why::Key)?;
        if value.is_empty() || has_control(value) {
            return Err(Why::Value);
        }
        let (key, value) = (opening + 1..closing - 1, closing + 1..text.len());
        Ok(Row { table_end, key, unescaped, value, line })
    }

    /// Writes a change, reusing the memory of another line.
    pub fn encode(change: &Change<'_>, memory: Vec<u8>) -> Result<Row, Why> {
        let mut line = String::from_utf8(memory).unwrap_or_default();
        line.clear();
        line.push_str(change.table);
        line.push(' ');
        line.push_str(&serde_json::to_string(&change.key).expect("a string always serializes"));
        line.push(' ');
        line.push_str(change.value.as_deref().unwrap_or(DELETED));
        line.push('\n');
        if line.len() > LINE_BYTES_MAX {
            return Err(Why::LineTooLong);
        }
        if table_end(&line) != Some(change.table.len()) {
            return Err(Why::Table);
        }
        // The line must be read back as the same change. A value `-` would come back as a deletion.
        let row = Row::parse(line)?;
        if row.value() == change.value.as_deref() { Ok(row) } else { Err(Why::Value) }
    }

    /// The line with its newline.
    pub fn line(&self) -> &str {
        &self.line
    }

    pub fn table(&self) -> &str {
        &self.line[..self.table_end]
    }

    pub fn key(&self) -> &str {
        self.unescaped.as_deref().unwrap_or_else(|| &self.line[self.key.clone()])
    }

    /// Returns `None` for a deletion.
    pub fn value(&self) -> Option<&str> {
        let value = &self.line[self.value.clone()];
        (value != DELETED).then_some(value)
    }

    /// The order of rows.
    pub fn place(&self) -> (&str, &str) {
        (self.table(), self.key())
    }

    /// The line's memory, for reuse by another line.
    pub fn recycle(self) -> Vec<u8> {
        let mut memory = self.line.into_bytes();
        memory.clear();
        memory
    }
}

fn table_end(text: &str) -> Option<usize> {
    let in_table = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'_';
    let end = text.bytes().position(|byte| !in_table(&byte))?;
    let named = text.starts_with(|first: char| first.is_ascii_lowercase()) && &text[..end] != END;
    (named && text.as_bytes()[end] == b' ').then_some(end)
}

/// The length of the JSON string that `text` begins with, quotes included, and whether it has escapes.
fn string_length(text: &[u8]) -> Option<(usize, bool)> {
    if text.first() != Some(&b'"') {
        return None;
    }
    let (mut at, mut escaped) = (1, false);
    loop {
        match text.get(at)? {
            b'"' => return Some((at + 1, escaped)),
            b'\\' => (at, escaped) = (at + 2, true),
            0..=0x1f => return None,
            _ => at += 1,
        }
    }
}

/// Does not stop at the first match, so that it is compiled to wide instructions.
fn has_control(text: &str) -> bool {
    text.bytes().fold(false, |found, byte| found | (byte < b' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change<'a>(key: &'a str, value: Option<&'a str>) -> Change<'a> {
        Change { table: "doc", key: key.into(), value: value.map(Into::into) }
    }

    #[test]
    fn any_key_comes_back() {
        let keys =
            ["", "a b", "a\"b", "a\\", "\n\r\t\0\u{1f}", "\u{7f}\u{2028}é😀", "\" -", "end 1 00000000"];
        for key in keys {
            let mut row = Row::encode(&change(key, Some("{\"a\":\" - \"}")), Vec::new()).unwrap();
            assert_eq!((row.table(), row.key(), row.value()), ("doc", key, Some("{\"a\":\" - \"}")));
            assert_eq!(row.line().matches('\n').count(), 1);
            row = Row::encode(&change(key, None), row.recycle()).unwrap();
            assert_eq!((row.key(), row.value()), (key, None));
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for value in ["", "-", "1\n2", "\t1"] {
            let row = Row::encode(&change("k", Some(value)), Vec::new());
            assert_eq!(row.unwrap_err(), Why::Value, "{value:?}");
        }
        for table in ["", "end", "1st", "Doc", "a b", "a \"k\" 1", "é"] {
            let change = Change { table, key: "k".into(), value: None };
            assert_eq!(Row::encode(&change, Vec::new()).unwrap_err(), Why::Table, "{table:?}");
        }
    }

    #[test]
    fn lines_that_are_none() {
        let cases = [
            ("doc \"a\" 1", Why::Unfinished),
            ("\n", Why::Table),
            (" \"a\" 1\n", Why::Table),
            ("doc\n", Why::Table),
            ("doc \n", Why::Key),
            ("doc  \"a\" 1\n", Why::Key),
            ("doc a 1\n", Why::Key),
            ("doc \"a 1\n", Why::Key),
            ("doc \"a\\\" 1\n", Why::Key),
            ("doc \"a\\x\" 1\n", Why::Key),
            ("doc \"\\ud800\" 1\n", Why::Key),
            ("doc \"a\tb\" 1\n", Why::Key),
            ("doc \"a\"1\n", Why::Key),
            ("doc \"a\"\n", Why::Key),
            ("doc \"a\" \n", Why::Value),
            ("doc \"a\" 1\r\n", Why::Value),
            ("end 1 00000000\n", Why::Table),
        ];
        for (line, why) in cases {
            assert_eq!(Row::parse(line.to_string()).unwrap_err(), why, "{line:?}");
        }
    }
}
