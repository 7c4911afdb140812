//! A partition as a person types it: the nodes are in parts, and no part hears another one.

use std::collections::BTreeSet;
use std::fmt;

use super::place::name_of;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    parts: Vec<BTreeSet<u32>>,
}

impl Split {
    /// Parses `1 | 2 3`. Nodes that are not named form another part. Returns `None` if there is only one part,
    /// or if a node is in two parts.
    pub fn parse(text: &str, nodes: u32) -> Option<Split> {
        let mut rest: BTreeSet<u32> = (1..=nodes).collect();
        let mut parts = Vec::new();
        for part in text.split('|') {
            let part: Vec<u32> = part.split_whitespace().map(|id| id.parse().ok()).collect::<Option<_>>()?;
            // Each node must be named only once.
            if part.is_empty() || !part.iter().all(|id| rest.remove(id)) {
                return None;
            }
            parts.push(part.into_iter().collect());
        }
        if !rest.is_empty() {
            parts.push(rest);
        }
        (parts.len() > 1).then_some(Split { parts })
    }

    /// The nodes that are cut off from that node.
    pub fn hidden_from(&self, id: u32) -> impl Iterator<Item = u32> + '_ {
        self.parts.iter().filter(move |part| !part.contains(&id)).flatten().copied()
    }
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, part) in self.parts.iter().enumerate() {
            let names: Vec<String> = part.iter().copied().map(name_of).collect();
            let bar = if number == 0 { "" } else { " | " };
            write!(f, "{bar}{}", names.join(" "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_not_named_is_a_part() {
        let shown = |text, nodes| Split::parse(text, nodes).map(|split| split.to_string());
        assert_eq!(shown("1|2 3", 3).as_deref(), Some("node-1 | node-2 node-3"));
        assert_eq!(shown("3", 3).as_deref(), Some("node-3 | node-1 node-2"));
        assert_eq!(shown("1 | 3 2", 5).as_deref(), Some("node-1 | node-2 node-3 | node-4 node-5"));
        for none in ["", "|", "1 |", "1 2 3", "1 | 1", "1 1", "1 | 4", "0", "one"] {
            assert_eq!(shown(none, 3), None, "{none:?}");
        }
    }

    #[test]
    fn nobody_hears_another_part() {
        let split = Split::parse("1 | 2 3", 4).expect("three parts");
        let hidden = |id| split.hidden_from(id).collect::<Vec<_>>();
        assert_eq!(hidden(1), [2, 3, 4]);
        assert_eq!(hidden(2), [1, 4]);
        assert_eq!(hidden(4), [1, 2, 3]);
    }
}
