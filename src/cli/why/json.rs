//! Reading what a node tells.

use serde_json::Value;

/// The text of a member, or nothing.
pub fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

pub fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

/// Whom nobody could ask, as the last lines.
pub fn silent(value: &Value) -> impl Iterator<Item = String> {
    list(value, "silent")
        .iter()
        .map(|node| format!("{} was not heard: {}.", text(node, "name"), text(node, "why")))
}
