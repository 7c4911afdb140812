//! The findings for people.

use crate::cli::out::clean;
use crate::doctor::{Finding, Seen, count};

pub fn text(seen: &Seen, findings: &[Finding]) -> String {
    let answered = seen.answered().count();
    let leaders = seen.leaders();
    let names: Vec<&str> = leaders.iter().map(|node| node.name.as_str()).collect();
    let leads = match names.as_slice() {
        [] => "no leader".to_string(),
        [one] => format!("{one} leads"),
        several => format!("{} lead", several.join(" and ")),
    };
    let mut text = format!("{answered} of {} nodes answered; {leads}\n", seen.nodes.len());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::{Node, NodeLook, Sample, SeenSilence, judge};

    fn seen() -> Seen {
        let mut said = Sample::default();
        said.status.node.id = 1;
        said.status.role = "leader".into();
        said.status.admitted = true;
        said.timing.dead_after_ms = 500;
        let look = NodeLook { said, ..NodeLook::default() };
        let node =
            |id, looks| Node { id, name: format!("node-{id}"), url: String::new(), votes: true, looks };
        Seen { nodes: vec![node(1, Ok([look.clone(), look]))], ..Seen::default() }
    }

    #[test]
    fn a_healthy_cluster_is_said_to_be_healthy() {
        let seen = seen();
        assert_eq!(text(&seen, &judge(&seen)), "1 of 1 nodes answered; node-1 leads\n\nnothing is wrong\n");
    }

    #[test]
    fn each_finding_names_its_nodes_and_what_to_type() {
        let mut seen = seen();
        let looks = seen.nodes[0].looks.as_mut().expect("it answers");
        looks[1].said.conflicts = 4;
        let silent = Err(SeenSilence::NotReached { why: "Connection \u{1b}[31mrefused".into() });
        seen.nodes.push(Node {
            id: 3,
            name: "node-3".into(),
            url: String::new(),
            votes: true,
            looks: silent,
        });
        let text = text(&seen, &judge(&seen));
        let begin =
            "1 of 2 nodes answered; node-1 leads\n\nERROR  node-3: does not answer: Connection  [31mrefused";
        assert!(text.starts_with(begin) && !text.contains("nothing is wrong"), "{text}");
        assert!(text.contains("\n    next: ") && text.contains("\nNOTE  4 values"), "{text}");
    }
}
