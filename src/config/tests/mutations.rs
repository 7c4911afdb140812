//! Files that were damaged or mistyped: an answer each time, and the same one each time.

use super::{LOCAL, Start};

const CONFIG: &str = include_str!("../../../config/default.toml");
const EXAMPLE: &str = include_str!("../../../topology.example.json");
const ROUNDS: u64 = 10_000;

/// What is likely to be written into such a file, and what is likely to hurt.
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

/// SplitMix64.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

/// Cuts out, doubles, swaps or inserts a few times.
fn mutated(text: &str, rng: &mut Rng) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..=rng.below(4) {
        let at = rng.below(chars.len() + 1);
        let end = (at + rng.below(12)).min(chars.len());
        match rng.below(5) {
            0 => drop(chars.drain(at..end)),
            1 => chars.splice(at..at, text.chars().skip(at).take(20)).for_each(drop),
            2 => chars.truncate(rng.below(chars.len() * 8).max(at)),
            3 => chars[at..end].reverse(),
            _ => chars.splice(at..end, SCRAPS[rng.below(SCRAPS.len())].chars()).for_each(drop),
        }
    }
    chars.into_iter().collect()
}

/// Whether it was accepted. One that is not says why, in one line a mistake.
fn is_accepted(start: Start) -> bool {
    let again = start.clone();
    match start.run() {
        Ok(_) => true,
        Err(mistakes) => {
            let text = mistakes.to_string();
            assert_eq!(text.lines().count(), mistakes.iter().count() + 1, "{text}");
            assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
            assert_eq!(again.run().unwrap_err(), mistakes);
            false
        }
    }
}

#[test]
fn mutated_topologies() {
    let mut rng = Rng(1);
    let mut accepted = 0;
    for _ in 0..ROUNDS {
        let text = if rng.below(2) == 0 { mutated(EXAMPLE, &mut rng) } else { mutated(LOCAL, &mut rng) };
        accepted += u64::from(is_accepted(Start {
            config: Some("insecure = true".to_string()),
            ..Start::topology(&text)
        }));
    }
    assert!(
        (ROUNDS / 100..ROUNDS).contains(&accepted),
        "{accepted} accepted: too mild or too harsh to test anything"
    );
}

#[test]
fn mutated_settings() {
    let mut rng = Rng(2);
    let mut accepted = 0;
    for _ in 0..ROUNDS {
        accepted += u64::from(is_accepted(Start::config(&mutated(CONFIG, &mut rng))));
    }
    assert!(
        (ROUNDS / 100..ROUNDS).contains(&accepted),
        "{accepted} accepted: too mild or too harsh to test anything"
    );
}

#[test]
fn depth_and_width() {
    for text in
        ["[".repeat(300_000), "{\"a\":".repeat(100_000), format!("{{\"clusters\": {}", "[".repeat(300_000))]
    {
        assert!(!is_accepted(Start::topology(&text)));
    }
    let dotted = format!("{}a = 1", "a.".repeat(300_000));
    for text in [dotted, format!("a = {}", "[".repeat(300_000)), format!("a = {}", "{a = ".repeat(100_000))] {
        assert!(!is_accepted(Start::config(&text)));
    }
}
