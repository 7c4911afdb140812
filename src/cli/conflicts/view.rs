//! A conflict for people: as one row of a table, or in full.

use serde_json::Value;

use crate::cli::table::Table;

/// The members of a conflict that are shown here. A missing member is shown as an empty text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    id: String,
    kind: String,
    key: String,
    lost: Side,
    kept: Side,
    when: String,
}

/// A value, and the side on which it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Side {
    /// The leader of that side.
    node: String,
    epoch: String,
    index: String,
    /// `None` means that the value was deleted.
    value: Option<String>,
}

impl Conflict {
    pub fn read(json: &Value) -> Conflict {
        Conflict {
            id: text(&json["id"]),
            kind: text(&json["kind"]),
            key: key(json),
            lost: Side::read(&json["lost"]),
            kept: Side::read(&json["kept"]),
            when: text(&json["at"]),
        }
    }

    pub fn row(&self) -> [String; 7] {
        let Conflict { id, kind, key, lost, kept, when } = self;
        let nodes = format!("{} {}", lost.node, kept.node);
        [kind.clone(), key.clone(), lost.short(), kept.short(), nodes, when.clone(), id.clone()]
    }

    pub fn whole(&self) -> String {
        let mut table = Table::default();
        let facts = [
            ("id", self.id.clone()),
            ("kind", self.kind.clone()),
            ("key", self.key.clone()),
            ("lost", self.lost.whole()),
            ("kept", self.kept.whole()),
            ("when", self.when.clone()),
        ];
        facts.into_iter().for_each(|(name, value)| table.row([name.to_string(), value]));
        table.to_string()
    }
}

impl Side {
    fn read(json: &Value) -> Side {
        let value = Some(&json["value"]).filter(|value| !value.is_null()).map(Value::to_string);
        Side { node: text(&json["node"]), epoch: text(&json["epoch"]), index: text(&json["index"]), value }
    }

    fn short(&self) -> String {
        self.value.clone().unwrap_or_else(|| "(deleted)".to_string())
    }

    fn whole(&self) -> String {
        let value = self.value.as_deref().unwrap_or("(deleted)");
        format!("{value}  (written on the side of node {}, at {}@{})", self.node, self.epoch, self.index)
    }
}

/// The key that the two values were written for.
fn key(json: &Value) -> String {
    match json["kind"].as_str() {
        Some("vote") => format!("{} of {}", text(&json["voter"]), text(&json["election"])),
        _ => text(&json["key"]),
    }
}

/// A text without its quotes, any other value as JSON.
fn text(json: &Value) -> String {
    match json {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn conflict() -> Value {
        json!({ "id": "doc:a:8.2@41", "kind": "doc", "key": "a",
            "lost": { "epoch": "8.2", "index": 41, "node": 2, "value": { "n": 1 } },
            "kept": { "epoch": "7.1", "index": 40, "node": 1, "value": null },
            "merged_at": "9.1@50", "at": "2026-01-02T03:04:05Z" })
    }

    #[test]
    fn a_row() {
        let row = Conflict::read(&conflict()).row().join("|");
        assert_eq!(row, "doc|a|{\"n\":1}|(deleted)|2 1|2026-01-02T03:04:05Z|doc:a:8.2@41");
    }

    #[test]
    fn all_of_it() {
        let expected = "\
id    doc:a:8.2@41
kind  doc
key   a
lost  {\"n\":1}  (written on the side of node 2, at 8.2@41)
kept  (deleted)  (written on the side of node 1, at 7.1@40)
when  2026-01-02T03:04:05Z
";
        assert_eq!(Conflict::read(&conflict()).whole(), expected);
    }

    #[test]
    fn what_is_missing_is_nothing() {
        assert_eq!(Conflict::read(&json!({})).row().concat(), "(deleted)(deleted) ");
        let vote = json!({ "kind": "vote", "election": "lunch", "voter": "ann" });
        assert_eq!(Conflict::read(&vote).key, "ann of lunch");
        assert_eq!(Conflict::read(&json!([1])).id, "");
    }
}
