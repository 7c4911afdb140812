//! Explains which node leads, why, and which one would be next.

use serde_json::Value;

use super::node::{list, silent, text};

pub fn lines(told: &Value) -> Vec<String> {
    let mut lines = vec![match told["leader"].is_null() {
        true => "There is no leader now, according to the nodes that answered.".to_string(),
        false => {
            format!("{} leads, in epoch {}.", text(&told["leader"], "name"), text(&told["leader"], "epoch"))
        }
    }];
    for advice in list(told, "nobody_leads_because") {
        lines.push(format!("{} says: {}", text(advice, "name"), text(advice, "says")));
    }
    lines.extend(list(told, "next").iter().map(|next| capital(text(next, "says")) + "."));
    lines.extend(silent(told));
    steps("\nSince then:", list(told, "since"), &mut lines);
    for change in list(told, "changes") {
        lines.push(String::new());
        lines.push(headline(change));
        if let Some(because) = change["because"].as_str() {
            lines.push(format!("  because {because}"));
        }
        steps("  step by step:", list(change, "steps"), &mut lines);
    }
    lines
}

fn headline(change: &Value) -> String {
    let (leader, epoch) = (text(&change["leader"], "name"), text(change, "epoch"));
    let led = format!("{}  {leader} leads, in epoch {epoch}", text(change, "at"));
    match change["leaderless_ms"].as_u64() {
        Some(ms) => format!("{led}, after {ms} ms without a leader"),
        None => led,
    }
}

fn steps(title: &str, steps: &[Value], lines: &mut Vec<String>) {
    if !steps.is_empty() {
        lines.push(title.to_string());
        lines.extend(steps.iter().map(|step| format!("    {}  {}", text(step, "at"), text(step, "says"))));
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn leadership_is_told_in_sentences() {
        let told = json!({
            "leader": {"id": 2, "name": "node-2", "epoch": "2.2"},
            "next": [{"says": "if node-2 died, node-3 would lead"}],
            "changes": [{
                "epoch": "2.2", "leader": {"id": 2, "name": "node-2"}, "at": "T2", "leaderless_ms": 41,
                "because": "node-2 gave up node-1: its port refused, so its process is dead",
                "steps": [{"at": "T1", "says": "node-2 gave up node-1"}],
            }],
            "since": [], "silent": [{"name": "node-1", "why": "cannot connect to it"}],
        });
        let wanted = [
            "node-2 leads, in epoch 2.2.",
            "If node-2 died, node-3 would lead.",
            "node-1 did not answer: cannot connect to it.",
            "",
            "T2  node-2 leads, in epoch 2.2, after 41 ms without a leader",
            "  because node-2 gave up node-1: its port refused, so its process is dead",
            "  step by step:",
            "    T1  node-2 gave up node-1",
        ];
        assert_eq!(lines(&told), wanted);
    }

    #[test]
    fn where_nobody_leads_it_is_said_what_to_do() {
        let told =
            json!({"leader": null, "nobody_leads_because": [{"name": "node-1", "says": "start node-2"}]});
        assert_eq!(lines(&told)[1], "node-1 says: start node-2");
    }
}
