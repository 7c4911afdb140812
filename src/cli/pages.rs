//! Reads: the node that answers, and lists, which are read page after page.

use clap::ValueEnum;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::client::Target;
use super::exit::Failure;
use super::out::note;
use crate::client::{Page, Request, encoded};

/// The largest page that a node returns.
const PAGE_ITEMS: usize = 1000;

/// The node that answers a read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum ReadLevel {
    #[default]
    Linear,
    Leader,
    Local,
}

#[derive(Clone, Debug, Default, clap::Args)]
pub struct Reading {
    /// linear: the newest state; leader: what the leader has, even if it has just been replaced; local: what the
    /// node that is called has, even without a leader
    #[arg(long, value_enum, default_value = "linear", hide_possible_values = true, value_name = "LEVEL")]
    level: ReadLevel,
}

impl Reading {
    /// The parameter of the call.
    pub fn parameter(&self) -> (&'static str, Option<&'static str>) {
        let level = match self.level {
            ReadLevel::Linear => None,
            ReadLevel::Leader => Some("leader"),
            ReadLevel::Local => Some("local"),
        };
        ("level", level)
    }

    /// The path with the parameter, as its first.
    pub fn of(&self, path: &str) -> String {
        let level = self.parameter().1.map(|level| format!("?level={level}"));
        format!("{path}{}", level.unwrap_or_default())
    }
}

#[derive(Clone, Debug, Default, clap::Args)]
pub struct Listing {
    /// Show at most this many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    limit: Option<u64>,
    #[command(flatten)]
    reading: Reading,
}

/// The items under this path that these parameters select, as JSON or as its text. A parameter without a value is
/// left out.
pub async fn all<T: DeserializeOwned>(
    target: &Target,
    path: &str,
    chosen: &[(&str, Option<&str>)],
    listing: &Listing,
) -> Result<Vec<T>, Failure> {
    let chosen = [chosen, &[listing.reading.parameter()]].concat();
    let most = listing.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let mut all = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let limit = PAGE_ITEMS.min(most - all.len());
        let request = Request::get(page(path, limit, &chosen, after.as_deref()));
        let Page { items, next } = target.call(&request).await?.taken()?.read()?;
        all.extend(items);
        if all.len() >= most {
            all.truncate(most);
            if next.is_some() {
                note(&format!("these are the first {most}; there are more"));
            }
            return Ok(all);
        }
        // A node that returns the same position twice would make this loop endless.
        if next.is_none() || next == after {
            return Ok(all);
        }
        after = next;
    }
}

fn page(path: &str, limit: usize, chosen: &[(&str, Option<&str>)], after: Option<&str>) -> String {
    with_query(&format!("{path}?limit={limit}"), &[chosen, &[("after", after)]].concat())
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
        assert_eq!(page("/v1/roles", 1000, &chosen, None), "/v1/roles?limit=1000&prefix=a%2F%26b");
        assert_eq!(page("/v1/roles", 7, &[], Some("x y")), "/v1/roles?limit=7&after=x%20y");
    }

    #[test]
    fn the_usual_level_is_not_said() {
        let reading = |level| Reading { level };
        assert_eq!(reading(ReadLevel::Linear).of("/v1/roles/r"), "/v1/roles/r");
        assert_eq!(reading(ReadLevel::Local).of("/v1/roles/r"), "/v1/roles/r?level=local");
        assert_eq!(reading(ReadLevel::Leader).parameter(), ("level", Some("leader")));
    }

    #[test]
    fn a_cell_is_short() {
        let cells = [Value::Null, Value::from("a b"), serde_json::json!({"a": [1, "x"]})];
        assert_eq!(cells.each_ref().map(cell), ["", "a b", "{\"a\":[1,\"x\"]}"]);
    }
}
