//! Lenient reading of JSON with unreadable parts: a number that no double can hold, or half of a surrogate pair. A
//! cluster does not accept either any more, but still returns values that it accepted before it refused them.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The depth that serde_json reads.
const DEPTH_MAX: usize = 127;

/// Reads JSON, and turns each part that cannot be read into a string of its JSON text. Returns `None` if the text is
/// not JSON.
pub fn lenient(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().or_else(|| Some(part(serde_json::from_str(text).ok()?, DEPTH_MAX)))
}

fn part(json: &RawValue, depth: usize) -> Value {
    let text = json.get();
    if let Ok(value) = serde_json::from_str(text) {
        return value;
    }
    let below = |part_of: &RawValue| part(part_of, depth - 1);
    let whole = match text.as_bytes().first() {
        Some(b'{') if depth > 0 => {
            members(text).filter(|members| !members.keys().any(|name| is_reserved(name))).map(|members| {
                Value::Object(
                    members.into_iter().map(|(name, value)| (name, below(value))).collect::<Map<_, _>>(),
                )
            })
        }
        Some(b'[') if depth > 0 => {
            let items = serde_json::from_str::<Vec<&RawValue>>(text).ok();
            items.map(|items| items.into_iter().map(below).collect())
        }
        _ => None,
    };
    whole.unwrap_or_else(|| Value::from(text))
}

/// The members of an object, as JSON text. Returns `None` if a name is unreadable.
pub fn members(object: &str) -> Option<BTreeMap<String, &RawValue>> {
    serde_json::from_str(object).ok()
}

/// Whether serde_json reserves this name: it reads an object with such a name as something else, or fails.
fn is_reserved(name: &str) -> bool {
    name.starts_with("$serde_json::private::")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_cannot_be_read_is_its_text() {
        let digits = "7".repeat(5000);
        for (text, expected) in [
            ("[1, \"é\"]", json!([1, "é"])),
            ("1e400", json!("1e400")),
            (&digits, json!(digits)),
            (r#"{"a": [1, -1e400], "b": "\ud800"}"#, json!({"a": [1, "-1e400"], "b": r#""\ud800""#})),
            (r#"[{"\ud800": 1}, 2]"#, json!([r#"{"\ud800": 1}"#, 2])),
            (
                r#"[{"$serde_json::private::RawValue": 1}]"#,
                json!([r#"{"$serde_json::private::RawValue": 1}"#]),
            ),
        ] {
            assert_eq!(lenient(text), Some(expected), "{text}");
        }
        assert_eq!(lenient("[1e400"), None);
        let deep = "[".repeat(100_000) + "1e400" + &"]".repeat(100_000);
        assert!(lenient(&deep).is_some());
    }
}
