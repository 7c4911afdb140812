//! Explains which node leads, why, and which one would be next.

use serde_json::Value;

use super::node::{list, silent, text};
use crate::cli::local_time::{after, local};

pub fn lines(told: &Value) -> Vec<String> {
    let (newest, earlier) = match list(told, "changes").split_first() {
        Some((newest, earlier)) => (Some(newest), earlier),
        None => (None, &[] as &[Value]),
    };
    let mut lines = now(told, newest);
    lines.extend(list(told, "next").iter().map(|next| capital(text(next, "says")) + "."));
    lines.extend(silent(told));
    lines.extend(list(told, "as_seen").iter().filter(|node| node["journal_lost"] == true).map(|node| {
        format!(
            "{} has lost its journal: it knows nothing from before {}.",
            text(node, "name"),
            local(text(node, "knows_since"))
        )
    }));
    steps("Since then, from", list(told, "since"), &mut lines);
    if let Some(newest) = newest {
        let title = format!("The steps to {}, from", text(&newest["leader"], "name"));
        steps(&title, list(newest, "steps"), &mut lines);
    }
    if !earlier.is_empty() {
        lines.push("\nBefore:".to_string());
    }
    for change in earlier {
        let (leader, epoch) = (text(&change["leader"], "name"), text(change, "epoch"));
        lines.push(format!("  {}  {leader} led, in epoch {epoch}", local(text(change, "at"))));
        lines.extend(because(change).map(|because| format!("    {because}")));
    }
    lines
}

/// Says which node leads and why, or why none does.
fn now(told: &Value, newest: Option<&Value>) -> Vec<String> {
    let leader = &told["leader"];
    if leader.is_null() {
        let mut lines = vec!["There is no leader now, according to the nodes that answered.".to_string()];
        lines.extend(
            told["lost_because"].as_str().map(|because| format!("The last one is lost because {because}.")),
        );
        let advice = list(told, "nobody_leads_because").iter();
        lines.extend(advice.map(|advice| format!("{} says: {}", text(advice, "name"), text(advice, "says"))));
        return lines;
    }
    let (name, epoch) = (text(leader, "name"), text(leader, "epoch"));
    // A leader may be newer than the newest change that the nodes remember.
    let Some(change) = newest.filter(|change| change["epoch"] == leader["epoch"]) else {
        return vec![format!(
            "{name} leads, in epoch {epoch}. The nodes that answered do not remember since when."
        )];
    };
    let mut lines = vec![format!("{name} leads, in epoch {epoch}, since {}.", local(text(change, "at")))];
    lines.push(because(change).unwrap_or_else(|| match change["previous_leader"]["name"].as_str() {
        Some(former) => {
            format!("Before it {former} led; the nodes that answered do not know why it leads no longer.")
        }
        None => "The nodes that answered remember no leader before.".to_string(),
    }));
    let says = list(change, "previous_leader_says").iter().filter_map(Value::as_str);
    lines.extend(says.map(|said| format!("{said}.")));
    lines
}

/// Why there was a change of leader, and for how long there was none.
fn because(change: &Value) -> Option<String> {
    let because = format!("Because {}.", change["because"].as_str()?);
    // The others notice a leader a moment later than the leader itself, whose own time may be unknown.
    let leader = &change["leader"];
    let own = change["leaderless_ms_by_node"][leader["id"].to_string()].as_u64();
    Some(match own {
        Some(ms) => format!("{because} {} was without a leader for {ms} ms.", text(leader, "name")),
        None => because,
    })
}

fn steps(title: &str, steps: &[Value], lines: &mut Vec<String>) {
    let Some(first) = steps.first() else { return };
    lines.push(format!("\n{title} {}:", local(text(first, "at"))));
    // A node of an earlier version does not say how long after the first step it was.
    let when = |step: &Value| step["after_us"].as_u64().map_or_else(|| local(text(step, "at")), after);
    lines.extend(steps.iter().map(|step| format!("  {:>12}  {}", when(step), text(step, "says"))));
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
            "as_seen": [{"name": "node-3", "journal_lost": true, "knows_since": "T0"}],
            "changes": [{
                "epoch": "2.2", "leader": {"id": 2, "name": "node-2"}, "at": "T2", "leaderless_ms_by_node": {"1": 7, "2": 41},
                "because": "node-2 gave up node-1: its port refuses connections, so its process is dead",
                "previous_leader_says": ["node-1 started"],
                "steps": [
                    {"at": "T1", "after_us": 0, "says": "node-2 gave up node-1"},
                    {"at": "T1", "says": "node-3 gave up node-1"},
                    {"at": "T2", "after_us": 41_230, "says": "node-2 leads in epoch 2.2"},
                ],
            }, {"epoch": "1.1", "leader": {"id": 1, "name": "node-1"}, "at": "T0", "because": null}],
            "since": [], "silent": [{"name": "node-1", "why": "cannot connect to it"}],
        });
        let wanted = [
            "node-2 leads, in epoch 2.2, since T2.",
            "Because node-2 gave up node-1: its port refuses connections, so its process is dead. node-2 was without a leader for 41 ms.",
            "node-1 started.",
            "If node-2 died, node-3 would lead.",
            "node-1 did not answer: cannot connect to it.",
            "node-3 has lost its journal: it knows nothing from before T0.",
            "\nThe steps to node-2, from T1:",
            "       +0.0 ms  node-2 gave up node-1",
            "            T1  node-3 gave up node-1",
            "      +41.2 ms  node-2 leads in epoch 2.2",
            "\nBefore:",
            "  T0  node-1 led, in epoch 1.1",
        ];
        assert_eq!(lines(&told), wanted);
    }

    #[test]
    fn a_leader_before_is_named_even_if_no_cause_is_known() {
        let second = |previous: Value| {
            let change = json!({"epoch": "2.2", "at": "T", "because": null, "previous_leader": previous});
            let told = json!({"leader": {"name": "node-2", "epoch": "2.2"}, "changes": [change]});
            lines(&told)[1].clone()
        };
        assert_eq!(second(Value::Null), "The nodes that answered remember no leader before.");
        assert!(second(json!({"id": 1, "name": "node-1"})).starts_with("Before it node-1 led"));
    }

    #[test]
    fn where_nobody_leads_it_is_said_what_to_do() {
        let told = json!({
            "leader": null, "lost_because": "node-1 stopped leading epoch 1.1: it no longer reached a majority",
            "nobody_leads_because": [{"name": "node-1", "says": "start node-2"}],
        });
        let lines = lines(&told);
        assert!(lines[1].starts_with("The last one is lost because node-1 stopped leading"), "{lines:?}");
        assert_eq!(lines[2], "node-1 says: start node-2");
    }
}
