//! A finding: what is wrong, where, and which command helps.

use serde::Serialize;
use serde_json::{Value, json};

use super::seen::Seen;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Something does not work, or will not work after the next failure.
    Error,
    /// Something will go wrong unless an operator acts.
    Warning,
    /// Good to know. It does not change the exit code.
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
    /// The subject in one word that scripts may compare.
    pub about: String,
    /// The ids of the nodes that the finding concerns. Empty for the whole cluster.
    pub nodes: Vec<u32>,
    pub text: String,
    /// The command to type.
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

/// Sorts the findings, the worst first. The same text from several nodes becomes one finding.
pub fn sorted(all: Vec<Finding>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for finding in all {
        let same = |other: &&mut Finding| other.about == finding.about && other.text == finding.text;
        match findings.iter_mut().find(same) {
            Some(same) => same.nodes.extend(finding.nodes),
            None => findings.push(finding),
        }
    }
    // The sort is stable: it keeps the order of findings of the same severity.
    findings.sort_by_key(|finding| finding.severity);
    findings
}

/// The number of findings that are worse than a note.
pub fn count(findings: &[Finding]) -> usize {
    findings.iter().filter(|finding| finding.severity < Severity::Note).count()
}

/// The findings for programs, and each node with what it says of itself.
pub fn json(seen: &Seen, findings: &[Finding]) -> Value {
    let nodes: Vec<_> = seen
        .nodes
        .iter()
        .map(|node| {
            let said = node.now();
            json!({ "id": node.id, "name": node.name, "url": node.url, "answers": said.is_some(),
                "version": said.map(|said| &said.version), "role": said.map(|said| &said.status.role),
                "epoch": said.map(|said| &said.status.epoch), "disk": said.map(|said| said.disk) })
        })
        .collect();
    json!({ "well": count(findings) == 0, "findings": findings, "nodes": nodes })
}
