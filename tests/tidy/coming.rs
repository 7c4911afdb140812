//! Users of other systems find each of their terms here, and a test that shows it: no cell is empty, and
//! every row of a part names a test that exists.

mod cell;

use cell::Named;

pub const PAGE: &str = "docs/coming-from.md";

/// The parts of the page that show something; a part is the text after a heading of the second level.
const PARTS: [&str; 8] = [
    "In Rust",
    "In Python",
    "In JavaScript",
    "Leader and Followers Cluster",
    "etcd",
    "Consul",
    "ZooKeeper and Curator",
    "Redis and Redlock",
];

pub fn check(page: Option<&str>, texts: &[(String, String)]) -> Vec<String> {
    let Some(page) = page else {
        return vec![format!("{PAGE}:1: is missing")];
    };
    let (mut shows, mut heading) = (false, true);
    let mut found = Vec::new();
    for (line, text) in (1..).zip(page.lines()) {
        if let Some(name) = text.strip_prefix("## ") {
            shows = PARTS.contains(&name);
        }
        let cells = cells(text);
        // The first row of a table is its heading, and the second one only dashes.
        let is_row = !cells.is_empty() && !cells[0].starts_with("---") && !heading;
        heading = cells.is_empty();
        if is_row {
            let complaints = row(&cells, shows, texts);
            found.extend(complaints.into_iter().map(|what| format!("{PAGE}:{line}: {what}")));
        }
    }
    let missing =
        PARTS.iter().filter(|part| !page.lines().any(|line| line.strip_prefix("## ") == Some(part)));
    found.extend(
        missing.map(|part| format!("{PAGE}:1: has no part {part:?}; name it in PARTS as it is named there")),
    );
    found
}

/// A bar within a cell is written `\|`.
fn cells(line: &str) -> Vec<String> {
    let line = line.replace("\\|", "\u{0}");
    let inner = line.strip_prefix('|').and_then(|rest| rest.strip_suffix('|'));
    let cells = inner.map(|inner| inner.split('|').map(|cell| cell.trim().replace('\u{0}', "|")).collect());
    cells.unwrap_or_default()
}

fn row(cells: &[String], shows: bool, texts: &[(String, String)]) -> Vec<String> {
    let mut found = Vec::new();
    if cells.iter().any(|cell| cell.is_empty()) {
        found.push("a cell is empty; say what it is here".to_string());
    }
    let Some(last) = cells.last().filter(|_| shows) else {
        return found;
    };
    let named = cell::read(last, texts);
    if named.is_empty() {
        found.push("no test is named; name one that shows it".to_string());
    }
    let missing = named.into_iter().filter_map(|named| match named {
        Named::Test => None,
        Named::Nothing(name) => Some(format!("no test {name}; name one that is there")),
    });
    found.extend(missing);
    found
}

mod tests {
    use super::*;

    const TEXTS: [(&str, &str); 5] = [
        ("crates/client/src/tests/locks.rs", "#[tokio::test]\nasync fn it_locks() {}\nfn help() {}"),
        ("clients/python/tests/unit/x.py", "def test_it(self):"),
        ("clients/js/test/y.test.js", "test('it; and more', () => {})\ntest('it\\'s', () => {})"),
        ("tests/it/z.rs", "#[test]\nfn it_runs() {}"),
        ("tests/golden/scripts/calm.txt", ""),
    ];

    fn complaints(part: &str, cell: &str) -> Vec<String> {
        let others = PARTS.iter().filter(|other| **other != part).map(|other| format!("## {other}\n"));
        let page = format!(
            "## {part}\n| a | b | test |\n|---|---|---|\n| x | y \\| z | {cell} |\n\n{}",
            others.collect::<String>()
        );
        check(Some(&page), &TEXTS.map(|(path, text)| (path.to_string(), text.to_string())))
    }

    #[test]
    fn what_is_there_passes() {
        for cell in [
            "`locks::it_locks`",
            "`unit/x.py::test_it`",
            "`y.test.js`: it; and more",
            "`y.test.js`: it's; it; and more; `locks::it_locks`",
            "`tests/it/z.rs::it_runs`, `calm.txt`",
        ] {
            assert_eq!(complaints("In Rust", cell), [""; 0], "{cell}");
        }
    }

    #[test]
    fn what_is_not_does_not() {
        for (cell, what) in [
            ("`locks::gone`", "no test locks::gone;"),
            ("`calls::it_locks`", "no test calls::it_locks;"),
            ("`locks::help`", "no test locks::help;"),
            ("`unit/z.py::test_it`", "no test unit/z.py::test_it;"),
            ("`y.test.js`: and more", "no test y.test.js: and more;"),
            ("`y.test.js`", "no test y.test.js: ;"),
            ("`tests/it/z.rs::it_stops`", "no test tests/it/z.rs::it_stops;"),
            ("`storm.txt`", "no test storm.txt;"),
            ("`calls`", "no test calls;"),
            ("–", "no test is named;"),
            ("all of them", "no test is named;"),
            ("", "a cell is empty;"),
        ] {
            let found = complaints("In JavaScript", cell);
            assert!(
                found.first().is_some_and(|first| first.starts_with(&format!("{PAGE}:4: {what}"))),
                "{cell}: {found:?}"
            );
        }
        assert_eq!(complaints("What there is", "–"), [""; 0]);
        let found = check(Some("## In Rust\n"), &[]);
        assert_eq!(found.len(), PARTS.len() - 1, "{found:?}");
        assert_eq!(check(None, &[]).len(), 1);
    }
}
