//! Findings for people and for scripts.

use serde_json::{Value, json};

use super::finding::{Finding, Severity};
use super::seen::Seen;
use crate::cli::out::clean;

pub fn text(seen: &Seen, findings: &[Finding]) -> String {
    let answered = seen.answered().count();
    let leaders = seen.leaders();
    let names: Vec<&str> = leaders.iter().map(|node| node.name.as_str()).collect();
    let leads = match names.as_slice() {
        [] => "nobody leads".to_string(),
        [one] => format!("{one} leads"),
        several => format!("{} lead", several.join(" and ")),
    };
    let mut text = format!("{answered} of {} nodes answer; {leads}\n", seen.nodes.len());
    for finding in findings {
        let names: Vec<String> = finding.nodes.iter().map(|id| seen.name_of(*id)).collect();
        let who = if names.is_empty() { String::new() } else { format!("{}: ", names.join(", ")) };
        let (severity, what) = (finding.severity.name(), clean(&finding.text));
        text.push_str(&format!("\n{severity}  {who}{what}\n    next: {}\n", clean(&finding.next)));
    }
    if count(findings) == 0 {
        text.push_str("\nnothing is wrong\n");
    }
    text
}

/// Of those that are more than good to know.
pub fn count(findings: &[Finding]) -> usize {
    findings.iter().filter(|finding| finding.severity < Severity::Note).count()
}

pub fn json(seen: &Seen, findings: &[Finding]) -> Value {
    let nodes: Vec<_> = seen
        .nodes
        .iter()
        .map(|node| {
            let said = node.now();
            json!({ "id": node.id, "name": node.name, "url": node.url, "answers": said.is_some(),
                "version": said.map(|said| &said.version), "role": said.map(|said| &said.status.role),
                "epoch": said.map(|said| &said.status.epoch) })
        })
        .collect();
    json!({ "well": count(findings) == 0, "findings": findings, "nodes": nodes })
}
