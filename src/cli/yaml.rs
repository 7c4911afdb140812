//! JSON as YAML for people: in blocks, with quotes only where a reader could take a text for something else.

use std::fmt::Write;

use serde_json::Value;

use super::out::is_harmful;

/// Plain words that some version of YAML reads as something other than text.
const TAKEN: [&str; 11] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan", "inf"];

/// YAML readers need not accept longer keys before a colon.
const SIMPLE_KEY_BYTES: usize = 512;

pub fn yaml(value: &Value) -> String {
    let mut out = String::new();
    block(value, 0, &mut out);
    out
}

/// Writes a value at the cursor, which has `indent` blanks before it, and ends with a line break.
fn block(value: &Value, indent: usize, out: &mut String) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (place, (name, value)) in members.iter().enumerate() {
                pad(indent, place, out);
                match name.len() {
                    0..=SIMPLE_KEY_BYTES => out.push_str(&text(name)),
                    _ => {
                        out.push_str(&format!("? {}\n", text(name)));
                        pad(indent, 1, out);
                    }
                }
                out.push(':');
                below(value, indent + 2, out);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (place, item) in items.iter().enumerate() {
                pad(indent, place, out);
                out.push_str("- ");
                block(item, indent + 2, out);
            }
        }
        one => out.push_str(&format!("{}\n", scalar(one))),
    }
}

/// Writes a value after a colon. A value with parts begins on a new line.
fn below(value: &Value, indent: usize, out: &mut String) {
    match value {
        Value::Object(members) if !members.is_empty() => out.push('\n'),
        Value::Array(items) if !items.is_empty() => out.push('\n'),
        _ => {
            out.push(' ');
            return block(value, indent, out);
        }
    }
    pad(indent, 1, out);
    block(value, indent, out);
}

/// Indents a line. The first line of a block begins where its parent has left the cursor.
fn pad(indent: usize, place: usize, out: &mut String) {
    if place > 0 {
        out.extend(std::iter::repeat_n(' ', indent));
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(said) => text(said),
        // Numbers and empty values are written as in JSON.
        other => other.to_string(),
    }
}

fn text(said: &str) -> String {
    let is_word = said.starts_with(|c: char| c.is_ascii_alphabetic())
        && said.chars().all(|c| c.is_ascii_alphanumeric() || "_-./@".contains(c));
    if is_word && !TAKEN.contains(&said.to_ascii_lowercase().as_str()) {
        return said.to_string();
    }
    quoted(said)
}

/// A text as in JSON, which YAML understands. Characters that move a cursor or turn a line around are escaped.
fn quoted(said: &str) -> String {
    let mut out = String::new();
    for c in Value::from(said).to_string().chars() {
        match c {
            c if is_harmful(c)
                || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}') =>
            {
                // Writing into a string never fails.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn blocks() {
        let value = json!({"items": [{"key": "app/config", "rev": "12", "value": {"a": [1, [2, 3], {}], "b": null}}, []], "next": "no"});
        let expected = "\
items:
  - key: app/config
    rev: \"12\"
    value:
      a:
        - 1
        - - 2
          - 3
        - {}
      b: null
  - []
next: \"no\"
";
        assert_eq!(yaml(&value), expected);
    }

    #[test]
    fn what_could_be_taken_for_something_else_is_quoted() {
        for said in
            ["", "Yes", "null", "1", "1e5", "-", "a: b", "a #b", "~", " a", "é", "0x1f", "[", "2026-11-24"]
        {
            assert_eq!(yaml(&json!(said)), format!("{}\n", json!(said)));
        }
        assert_eq!(yaml(&json!("node-1.example")), "node-1.example\n");
        assert_eq!(yaml(&json!("a\u{7f}\u{85}\u{202e}\u{1b}")), "\"a\\u007f\\u0085\\u202e\\u001b\"\n");
        assert_eq!(yaml(&json!(1.5)), "1.5\n");
    }

    #[test]
    fn a_long_name_is_told_to_be_one() {
        let name = "k".repeat(SIMPLE_KEY_BYTES + 1);
        let named = json!({ name.as_str(): {"a": 1}, "z": 2 });
        assert_eq!(yaml(&named), format!("? {name}\n:\n  a: 1\nz: 2\n"));
    }
}
