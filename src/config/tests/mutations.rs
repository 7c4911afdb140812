//! Files that were damaged or mistyped: each gets an answer, and a readable one.

use std::path::PathBuf;

use eldest_storage::files::Dice;

use super::{LOCAL, Start};
use crate::config::files::File;
use crate::config::mistakes::Findings;
use crate::config::{Mistakes, topology};

const CONFIG: &str = include_str!("../../../config/default.toml");
const EXAMPLE: &str = include_str!("../../../topology.example.json");
const ROUNDS: u64 = 10_000;

/// Pieces of text that are likely in such a file, or likely to do harm.
const SCRAPS: [&str; 28] = [
    "\"",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "=",
    "//",
    "/*",
    "*/",
    "#",
    "\n",
    "\\",
    "\\ud800",
    "-1",
    "0",
    "1e999",
    "null",
    "true",
    "99999999999999999999",
    "é",
    "\u{0}",
    "[[a]]",
    "a.b.c = 1\n",
    "2020-01-01",
    "'''",
    "$serde_json::private::RawValue",
];

/// Cuts, doubles, swaps or inserts text a few times.
fn mutated(text: &str, rng: &mut Dice) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..=rng.place(4) {
        let at = rng.place(chars.len() + 1);
        let end = (at + rng.place(12)).min(chars.len());
        match rng.place(5) {
            0 => drop(chars.drain(at..end)),
            1 => chars.splice(at..at, text.chars().skip(at).take(20)).for_each(drop),
            2 => chars.truncate(rng.place((chars.len() * 8).max(1)).max(at)),
            3 => chars[at..end].reverse(),
            _ => chars.splice(at..end, SCRAPS[rng.place(SCRAPS.len())].chars()).for_each(drop),
        }
    }
    chars.into_iter().collect()
}

/// One part of a file, without the comments, where a mutation has no effect.
fn part(config: &str, rng: &mut Dice) -> String {
    let parts: Vec<&str> = config.split("\n[").collect();
    let (first, at) = (parts[0].to_string(), rng.place(parts.len()));
    let part = if at == 0 { first } else { format!("[{}", parts[at]) };
    let lines = part.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| format!("{line}\n")).collect()
}

/// Whether there are no mistakes. Also checks that each mistake is one line.
fn is_accepted(mistakes: Option<Mistakes>) -> bool {
    let Some(mistakes) = mistakes else {
        return true;
    };
    let text = mistakes.to_string();
    assert_eq!(text.lines().count(), mistakes.iter().count() + 1, "{text}");
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
    false
}

fn accepts_settings(text: &str) -> bool {
    is_accepted(Start::config(text).run().err())
}

/// Checks the topology alone: half of the time of a start goes into settings that are the same each time.
fn accepts_topology(text: &str) -> bool {
    let mut findings = Findings::default();
    let file = File { path: PathBuf::from("topology.json"), text: Ok(text.to_string()) };
    let topology = topology::read(file, None, &mut findings);
    let mistakes = findings.into_result::<()>(None).unwrap_err();
    let is_wrong = mistakes.iter().next().is_some();
    assert!(is_wrong || topology.is_some());
    is_accepted(is_wrong.then_some(mistakes))
}

#[test]
fn mutated_topologies() {
    let mut rng = Dice::new(1);
    let mut accepted = 0;
    for _ in 0..ROUNDS {
        let text = if rng.place(2) == 0 { EXAMPLE } else { LOCAL };
        accepted += u64::from(accepts_topology(&mutated(text, &mut rng)));
    }
    assert!((ROUNDS / 100..ROUNDS).contains(&accepted), "{accepted}: too mild or too harsh to test anything");
}

#[test]
fn mutated_settings() {
    let mut rng = Dice::new(2);
    let mut accepted = 0;
    for _ in 0..ROUNDS {
        let text = part(CONFIG, &mut rng);
        accepted += u64::from(accepts_settings(&mutated(&text, &mut rng)));
    }
    assert!((ROUNDS / 100..ROUNDS).contains(&accepted), "{accepted}: too mild or too harsh to test anything");
}

#[test]
fn depth_and_width() {
    for text in
        ["[".repeat(300_000), "{\"a\":".repeat(100_000), format!("{{\"clusters\": {}", "[".repeat(300_000))]
    {
        assert!(!accepts_topology(&text));
    }
    let dotted = format!("{}a = 1", "a.".repeat(300_000));
    for text in [dotted, format!("a = {}", "[".repeat(300_000)), format!("a = {}", "{a = ".repeat(100_000))] {
        assert!(!accepts_settings(&text));
    }
}
