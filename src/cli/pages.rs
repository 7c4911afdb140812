//! A list of the cluster, read page after page until there is no more.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::client::Target;
use super::exit::Failure;
use crate::client::{Page, Request, encoded};

/// The largest page that a node returns.
const PAGE_ITEMS: usize = 1000;

/// All items under this path that these parameters select, as JSON or as its text. A parameter without a value is
/// left out.
pub async fn all<T: DeserializeOwned>(
    target: &Target,
    path: &str,
    chosen: &[(&str, Option<&str>)],
) -> Result<Vec<T>, Failure> {
    let mut all = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let request = Request::get(page(path, chosen, after.as_deref()));
        let Page { items, next } = target.call(&request).await?.taken()?.read()?;
        all.extend(items);
        // A node that returns the same position twice would make this loop endless.
        if next.is_none() || next == after {
            return Ok(all);
        }
        after = next;
    }
}

fn page(path: &str, chosen: &[(&str, Option<&str>)], after: Option<&str>) -> String {
    with_query(&format!("{path}?limit={PAGE_ITEMS}"), &[chosen, &[("after", after)]].concat())
}

/// Appends parameters to a path that has some already.
pub fn with_query(path: &str, given: &[(&str, Option<&str>)]) -> String {
    let mut path = path.to_string();
    for (name, value) in given {
        path.extend(value.map(|value| format!("&{name}={}", encoded(value))));
    }
    path
}

/// The text of a table cell: text as it is, other values as JSON, and nothing for null.
pub fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for() {
        let chosen = [("prefix", Some("a/&b")), ("role", None)];
        assert_eq!(page("/v1/roles", &chosen, None), "/v1/roles?limit=1000&prefix=a%2F%26b");
        assert_eq!(page("/v1/roles", &[], Some("x y")), "/v1/roles?limit=1000&after=x%20y");
    }

    #[test]
    fn a_cell_is_short() {
        let cells = [Value::Null, Value::from("a b"), serde_json::json!({"a": [1, "x"]})];
        assert_eq!(cells.each_ref().map(cell), ["", "a b", "{\"a\":[1,\"x\"]}"]);
    }
}
