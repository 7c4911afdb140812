//! What is wrong, where, and what to type about it.

use crate::cli::doctor::seen::Seen;
use crate::cli::out::clean;
use serde::Serialize;
use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Something does not work, or will not when the next thing fails.
    Error,
    /// Something will go wrong if nobody sees to it.
    Warning,
    /// Good to know. It is no reason to end with another code.
    Note,
}

impl Severity {
    pub fn name(self) -> &'static str {
        match self {
            Severity::Error => "ERROR",
            Severity::Warning => "WARNING",
            Severity::Note => "NOTE",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub severity: Severity,
    /// What it is about, in one word that scripts may compare.
    pub about: String,
    /// Ids of those that it concerns; none if it is the whole cluster.
    pub nodes: Vec<u32>,
    pub text: String,
    /// What to type.
    pub next: String,
}

impl Finding {
    pub fn new(severity: Severity, about: &str, text: impl Into<String>, next: impl Into<String>) -> Finding {
        Finding { severity, about: about.into(), nodes: Vec::new(), text: text.into(), next: next.into() }
    }

    pub fn error(about: &str, text: impl Into<String>, next: impl Into<String>) -> Finding {
        Finding::new(Severity::Error, about, text, next)
    }

    pub fn warning(about: &str, text: impl Into<String>, next: impl Into<String>) -> Finding {
        Finding::new(Severity::Warning, about, text, next)
    }

    pub fn note(about: &str, text: impl Into<String>, next: impl Into<String>) -> Finding {
        Finding::new(Severity::Note, about, text, next)
    }

    pub fn at(mut self, node: u32) -> Finding {
        self.nodes.push(node);
        self
    }
}

/// The worst first. What several nodes say in the same words is one finding.
pub fn sorted(all: Vec<Finding>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for finding in all {
        let same = |other: &&mut Finding| other.about == finding.about && other.text == finding.text;
        match findings.iter_mut().find(same) {
            Some(same) => same.nodes.extend(finding.nodes),
            None => findings.push(finding),
        }
    }
    // Keeps the order of those that are equally bad.
    findings.sort_by_key(|finding| finding.severity);
    findings
}

// Findings for people and for scripts.

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
