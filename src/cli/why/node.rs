//! Explains the state of one node, by its own answer and by the leader's.

use serde_json::{Value, json};

use crate::cli::exit::Failure;
use crate::cli::status::{Cluster, ListedMember};

/// The explanation of one node. `wanted` is its id or its name.
pub fn told(cluster: &Cluster, wanted: &str) -> Result<Value, Failure> {
    let is_wanted = |member: &&ListedMember| member.name == wanted || member.id.to_string() == wanted;
    let Some(member) = cluster.view.members.iter().find(is_wanted) else {
        let names = cluster.view.members.iter().map(|member| member.name.clone()).collect();
        return Err(Failure::NoSuchNode { wanted: wanted.to_string(), names });
    };
    let mut says = Vec::new();
    match cluster.nodes.get(&member.id) {
        Some(Ok(report)) => {
            says.push(match (report.role.as_str(), &report.leader) {
                ("leader", _) => format!("it leads, in epoch {}", report.epoch),
                (_, Some(leader)) => format!("it follows node {}, in epoch {}", leader.id, report.epoch),
                (_, None) => "it has no leader".to_string(),
            });
            if report.replaced {
                says.push(
                    "another disk has replaced this one under its id; if two machines run under that id, stop \
                        one".to_string(),
                );
            } else if report.admitted == Some(false) && member.votes != Some(false) {
                says.push(
                    "its disk may have forgotten its promise: it does not vote until a leader has admitted it"
                        .to_string(),
                );
            }
            if report.disk_full {
                says.push("its disk is full".to_string());
            }
            says.extend(report.remark.clone());
        }
        Some(Err(why)) => says.push(format!("it does not answer: {why}")),
        None => says.push("it was not asked: the node that answered does not know its address".to_string()),
    }
    if member.votes == Some(false) {
        says.push("it is a learner: it votes after it has caught up".to_string());
    }
    says.extend(
        member
            .trouble
            .as_ref()
            .map(|trouble| format!("calls between it and node {}: {trouble}", cluster.view.node.id)),
    );
    if let Some(lag) = member.lag.filter(|lag| *lag > 0) {
        says.push(format!("it is {lag} records behind the leader"));
    }
    Ok(json!({"node": {"id": member.id, "name": member.name, "url": member.url}, "says": says}))
}

pub fn lines(told: &Value) -> Vec<String> {
    let node = &told["node"];
    let head = format!("{} ({}):", text(node, "name"), text(node, "url"));
    let says = list(told, "says").iter().filter_map(Value::as_str);
    std::iter::once(head).chain(says.map(|said| format!("  {said}"))).collect()
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
    list(value, "silent")
        .iter()
        .map(|node| format!("{} did not answer: {}.", text(node, "name"), text(node, "why")))
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
    use super::*;

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
