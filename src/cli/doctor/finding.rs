//! What is wrong, where, and what to type about it.

use serde::Serialize;

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
