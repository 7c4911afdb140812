//! Files and functions stay small. What is over the limit is listed with its size, and the list only goes down.

use std::collections::BTreeMap;

use crate::source::Source;

pub const RATCHET: &str = "tests/tidy/sizes.txt";

const FILE_LINES_MAX: usize = 400;
const FUNCTION_LINES_MAX: usize = 70;

#[derive(Debug)]
struct Size {
    lines: usize,
    limit: usize,
    /// `file:line` of what was measured.
    place: String,
}

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
        complaints.extend(compare(entry, sizes.get(&entry.name)));
    }
    for (name, size) in &sizes {
        let known = listed.iter().any(|entry| entry.name == *name);
        if size.lines > size.limit && !known {
            let Size { lines, limit, place } = size;
            complaints.push(format!("{place}: {name} has {lines} lines, at most {limit}; split it"));
        }
    }
    complaints
}

fn compare(entry: &Listed, size: Option<&Size>) -> Option<String> {
    let Listed { name, lines: listed, place } = entry;
    match size {
        None => Some(format!("{place}: {name} does not exist; remove the line")),
        Some(size) if size.lines <= size.limit => {
            Some(format!("{place}: {name} is within the limit of {}; remove the line", size.limit))
        }
        Some(size) if size.lines < *listed => {
            Some(format!("{place}: {name} shrank; write `{name} {}`", size.lines))
        }
        Some(size) if size.lines > *listed => {
            Some(format!("{}: {name} grew from {listed} to {} lines; split it", size.place, size.lines))
        }
        Some(_) => None,
    }
}

/// The entries, and complaints about lines that are none.
fn parse(ratchet: &str) -> (Vec<Listed>, Vec<String>) {
    let (mut listed, mut complaints) = (Vec::<Listed>::new(), Vec::new());
    for (number, line) in ratchet.lines().enumerate() {
        let place = format!("{RATCHET}:{}", number + 1);
        let entry = line.split_once(' ').and_then(|(name, lines)| Some((name, lines.parse().ok()?)));
        match entry {
            _ if line.is_empty() || line.starts_with('#') => {}
            None => complaints.push(format!("{place}: write `path lines` or `path::function lines`")),
            Some((name, _)) if listed.iter().any(|other| other.name == name) => {
                complaints.push(format!("{place}: {name} is listed twice; remove a line"));
            }
            Some((name, lines)) => listed.push(Listed { name: name.to_string(), lines, place }),
        }
    }
    (listed, complaints)
}

/// The size of every file and function. Functions of one name in one file share an entry, the longest counts.
fn measure(sources: &[Source]) -> BTreeMap<String, Size> {
    let mut sizes = BTreeMap::new();
    for source in sources {
        let place = format!("{}:1", source.path);
        let size = Size { lines: file_lines(source), limit: FILE_LINES_MAX, place };
        sizes.insert(source.path.clone(), size);
        for function in source.functions() {
            let lines = function.lines.clone().count();
            let place = format!("{}:{}", source.path, function.lines.start());
            let name = format!("{}::{}", source.path, function.name);
            if sizes.get(&name).is_none_or(|other: &Size| other.lines < lines) {
                sizes.insert(name, Size { lines, limit: FUNCTION_LINES_MAX, place });
            }
        }
    }
    sizes
}

/// Tests beside the code do not make the code longer; a file of tests counts whole.
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

    fn function(lines: usize) -> Vec<Source> {
        vec![Source::new("src/a.rs", &format!("fn f() {{\n{}}}\n", "x();\n".repeat(lines - 2)))]
    }

    #[test]
    fn small_things_pass() {
        assert_eq!(check(&file(FILE_LINES_MAX), "# nothing\n"), Vec::<String>::new());
        assert_eq!(check(&function(FUNCTION_LINES_MAX), ""), Vec::<String>::new());
    }

    #[test]
    fn big_things_fail() {
        assert_eq!(check(&file(401), ""), ["src/a.rs:1: src/a.rs has 401 lines, at most 400; split it"]);
        assert_eq!(check(&function(71), ""), ["src/a.rs:1: src/a.rs::f has 71 lines, at most 70; split it"]);
    }

    #[test]
    fn the_longest_of_one_name_counts() {
        let sample = |lines| format!("fn f() {{\n{}}}\n", "x();\n".repeat(lines));
        let text = [sample(1), sample(80), sample(2)].concat();
        let found = check(&[Source::new("src/a.rs", &text)], "");
        assert_eq!(found, ["src/a.rs:4: src/a.rs::f has 82 lines, at most 70; split it"]);
    }

    #[test]
    fn tests_beside_the_code_do_not_count() {
        let text = format!("fn f() {{}}\n#[cfg(test)]\nmod tests {{\n{}}}\n", "// x\n".repeat(400));
        assert_eq!(check(&[Source::new("src/a.rs", &text)], ""), Vec::<String>::new());
        assert_eq!(check(&[Source::new("tests/a.rs", &text)], "").len(), 1);
    }

    #[test]
    fn the_ratchet_only_goes_down() {
        assert_eq!(check(&file(500), "src/a.rs 500\n"), Vec::<String>::new());
        let grew = "src/a.rs:1: src/a.rs grew from 500 to 501 lines; split it";
        assert_eq!(check(&file(501), "src/a.rs 500\n"), [grew]);
        let shrank = "tests/tidy/sizes.txt:1: src/a.rs shrank; write `src/a.rs 450`";
        assert_eq!(check(&file(450), "src/a.rs 500\n"), [shrank]);
        let small = "tests/tidy/sizes.txt:1: src/a.rs::f is within the limit of 70; remove the line";
        assert_eq!(check(&function(70), "src/a.rs::f 80\n"), [small]);
    }

    #[test]
    fn wrong_entries_fail() {
        let ratchet = "src/gone.rs 500\nsrc/a.rs\nsrc/a.rs 500\nsrc/a.rs 500\n";
        let found = check(&file(500), ratchet);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].contains(":2: write `path lines`"));
        assert!(found[1].contains(":4: src/a.rs is listed twice"));
        assert!(found[2].contains(":1: src/gone.rs does not exist"));
    }
}
