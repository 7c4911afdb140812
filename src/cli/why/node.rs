//! Prints the explanation of one node, and parses the subject of a question.

use serde_json::Value;

use crate::cli::exit::Failure;
use crate::client::CallError;

/// A refusal that names the nodes says that none of them is the wanted one. It is a mistake on the command line.
pub fn named(failure: Failure, wanted: &str) -> Failure {
    let Failure::Call(CallError::Refused(problem)) = &failure else { return failure };
    match problem.members.get("nodes").and_then(Value::as_array) {
        Some(names) => Failure::NoSuchNode {
            wanted: wanted.to_string(),
            names: names.iter().filter_map(Value::as_str).map(str::to_string).collect(),
        },
        None => failure,
    }
}

pub fn lines(told: &Value) -> Vec<String> {
    let node = &told["node"];
    let head = format!("{} ({}):", text(node, "name"), text(node, "url"));
    let says = list(told, "says").iter().filter_map(Value::as_str).map(|said| format!("  {said}"));
    // If the node itself is silent, its first sentence says so.
    let others = list(told, "silent").iter().filter(|silent| silent["id"] != node["id"]).map(silence);
    std::iter::once(head).chain(says).chain(others).collect()
}

// Helpers that read a node's explanation.

/// The text of a member, or an empty text.
pub fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

pub fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

/// The nodes that could not be asked, as the last lines.
pub fn silent(value: &Value) -> impl Iterator<Item = String> {
    list(value, "silent").iter().map(silence)
}

fn silence(node: &Value) -> String {
    format!("{} did not answer: {}.", text(node, "name"), text(node, "why"))
}

// The subject of the question.

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    Leader,
    Role(String),
    /// A node, by id or name.
    Node(String),
    Conflict(String),
    Call(String),
}

pub fn parse(text: &str) -> Result<Subject, String> {
    const WAYS: &str = "ask about leader, role/NAME, node/NAME, conflict/ID or call/REQUEST-ID";
    if text == "leader" {
        return Ok(Subject::Leader);
    }
    let (kind, name) = text.split_once('/').ok_or(WAYS)?;
    if name.is_empty() {
        return Err(format!("a name must follow {kind}/; {WAYS}"));
    }
    let name = name.to_string();
    match kind {
        "role" => Ok(Subject::Role(name)),
        "node" => Ok(Subject::Node(name)),
        "conflict" => Ok(Subject::Conflict(name)),
        "call" => Ok(Subject::Call(name)),
        _ => Err(WAYS.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::client::Problem;

    #[test]
    fn a_silent_node_is_named_once() {
        let silent = json!([{"id": 2, "name": "n2", "why": "x"}, {"id": 3, "name": "n3", "why": "y"}]);
        let node = json!({"id": 2, "name": "n2", "url": "http://h"});
        let told = json!({"node": node, "says": ["it does not answer n1: x"], "silent": silent});
        assert_eq!(lines(&told), ["n2 (http://h):", "  it does not answer n1: x", "n3 did not answer: y."]);
    }

    #[test]
    fn only_a_refusal_that_names_the_nodes_is_a_mistake() {
        let refused = |body: Value| {
            let problem: Problem = serde_json::from_value(body).expect("a problem");
            named(Failure::Call(CallError::Refused(Box::new(problem))), "n9")
        };
        let problem =
            json!({"status": 404, "code": "not_found", "title": "", "detail": "", "retryable": false});
        assert_eq!(refused(problem.clone()).code(), 6);
        let mut unknown = problem;
        unknown["nodes"] = json!(["n1", "n2"]);
        let failure = refused(unknown);
        assert_eq!((failure.code(), failure.to_string().as_str()), (2, "no node n9; the cluster has n1, n2"));
    }

    #[test]
    fn each_kind_has_its_word() {
        assert_eq!(parse("leader"), Ok(Subject::Leader));
        assert_eq!(parse("role/a/b"), Ok(Subject::Role("a/b".to_string())));
        assert_eq!(parse("conflict/doc:a/b:8.2@41"), Ok(Subject::Conflict("doc:a/b:8.2@41".to_string())));
        for wrong in ["", "billing", "role/", "rolle/x"] {
            assert!(parse(wrong).is_err_and(|why| why.contains("role/NAME")), "{wrong}");
        }
    }
}
