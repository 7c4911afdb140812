//! Files stay small. A file over the limit is listed with its size, and the list only goes down. Clippy
//! checks the size of functions.

use std::collections::BTreeMap;

use crate::source::Source;

pub const RATCHET: &str = "tests/tidy/sizes.txt";

/// A file is a room that owns its data. One object split over many files has no such room.
const FILE_LINES_MAX: usize = 1_000;

#[derive(Debug)]
struct Listed {
    name: String,
    lines: usize,
    place: String,
}

pub fn check(sources: &[Source], ratchet: &str) -> Vec<String> {
    let sizes = measure(sources);
    let (listed, mut complaints) = parse(ratchet);
    for entry in &listed {
        complaints.extend(compare(entry, sizes.get(&entry.name).copied()));
    }
    for (name, lines) in sizes {
        let known = listed.iter().any(|entry| entry.name == name);
        if lines > FILE_LINES_MAX && !known {
            complaints.push(format!("{name}:1: {lines} lines, at most {FILE_LINES_MAX}; split it"));
        }
    }
    complaints
}

fn compare(entry: &Listed, size: Option<usize>) -> Option<String> {
    let Listed { name, lines: listed, place } = entry;
    match size {
        None => Some(format!("{place}: {name} does not exist; remove the line")),
        Some(lines) if lines <= FILE_LINES_MAX => {
            Some(format!("{place}: {name} is within the limit of {FILE_LINES_MAX}; remove the line"))
        }
        Some(lines) if lines < *listed => Some(format!("{place}: {name} shrank; write `{name} {lines}`")),
        Some(lines) if lines > *listed => {
            Some(format!("{name}:1: grew from {listed} to {lines} lines; split it"))
        }
        Some(_) => None,
    }
}

/// The entries, and complaints about lines that are not entries.
fn parse(ratchet: &str) -> (Vec<Listed>, Vec<String>) {
    let (mut listed, mut complaints) = (Vec::<Listed>::new(), Vec::new());
    for (number, line) in ratchet.lines().enumerate() {
        let place = format!("{RATCHET}:{}", number + 1);
        let entry = line.split_once(' ').and_then(|(name, lines)| Some((name, lines.parse().ok()?)));
        match entry {
            _ if line.is_empty() || line.starts_with('#') => {}
            None => complaints.push(format!("{place}: write `path lines`")),
            Some((name, _)) if listed.iter().any(|other| other.name == name) => {
                complaints.push(format!("{place}: {name} is listed twice; remove a line"));
            }
            Some((name, lines)) => listed.push(Listed { name: name.to_string(), lines, place }),
        }
    }
    (listed, complaints)
}

fn measure(sources: &[Source]) -> BTreeMap<String, usize> {
    sources.iter().map(|source| (source.path.clone(), file_lines(source))).collect()
}

/// Tests in the same file do not make the code longer; a file of tests counts as a whole.
fn file_lines(source: &Source) -> usize {
    let lines = 1..=source.text.lines().count();
    if source.path.starts_with("tests/") {
        return lines.count();
    }
    lines.filter(|&line| !source.in_test_item(line)).count()
}

mod tests {
    use super::*;

    fn file(lines: usize) -> Vec<Source> {
        vec![Source::new("src/a.rs", &"// x\n".repeat(lines))]
    }

    #[test]
    fn small_things_pass() {
        assert_eq!(check(&file(FILE_LINES_MAX), "# nothing\n"), Vec::<String>::new());
    }

    #[test]
    fn big_things_fail() {
        assert_eq!(check(&file(1_001), ""), ["src/a.rs:1: 1001 lines, at most 1000; split it"]);
    }

    #[test]
    fn tests_beside_the_code_do_not_count() {
        let text = format!("fn f() {{}}\n#[cfg(test)]\nmod tests {{\n{}}}\n", "// x\n".repeat(1_000));
        assert_eq!(check(&[Source::new("src/a.rs", &text)], ""), Vec::<String>::new());
        assert_eq!(check(&[Source::new("tests/a.rs", &text)], "").len(), 1);
    }

    #[test]
    fn the_ratchet_only_goes_down() {
        assert_eq!(check(&file(1500), "src/a.rs 1500\n"), Vec::<String>::new());
        let grew = "src/a.rs:1: grew from 1500 to 1501 lines; split it";
        assert_eq!(check(&file(1501), "src/a.rs 1500\n"), [grew]);
        let shrank = "tests/tidy/sizes.txt:1: src/a.rs shrank; write `src/a.rs 1450`";
        assert_eq!(check(&file(1450), "src/a.rs 1500\n"), [shrank]);
        let small = "tests/tidy/sizes.txt:1: src/a.rs is within the limit of 1000; remove the line";
        assert_eq!(check(&file(1_000), "src/a.rs 1080\n"), [small]);
    }

    #[test]
    fn wrong_entries_fail() {
        let ratchet = "src/gone.rs 1500\nsrc/a.rs\nsrc/a.rs 1500\nsrc/a.rs 1500\n";
        let found = check(&file(1500), ratchet);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].contains(":2: write `path lines`"));
        assert!(found[1].contains(":4: src/a.rs is listed twice"));
        assert!(found[2].contains(":1: src/gone.rs does not exist"));
    }
}
