//! Whoever comes from another system is told what each word of it is here, and which test shows it: no cell is empty, and
//! each test that is named is there.

pub const PAGE: &str = "docs/coming-from.md";

/// Where the tests of a part of the page are, and how its last column names them.
#[derive(Clone, Copy)]
enum Part {
    /// `module::name`
    Rust,
    /// `folder/file.py::name`
    Python,
    /// `folder/file.test.js`: the name; another name
    JavaScript,
}

pub fn check(page: Option<&str>, texts: &[(String, String)]) -> Vec<String> {
    let Some(page) = page else {
        return vec![format!("{PAGE}:1: is missing")];
    };
    let (mut part, mut heading) = (None, true);
    let mut found = Vec::new();
    for (line, text) in (1..).zip(page.lines()) {
        if let Some(name) = text.strip_prefix("## ") {
            part = match name {
                "In Rust" => Some(Part::Rust),
                "In Python" => Some(Part::Python),
                "In JavaScript" => Some(Part::JavaScript),
                _ => None,
            };
        }
        let cells = cells(text);
        // The first row of a table is its heading, and the second one only dashes.
        let is_row = !cells.is_empty() && !cells[0].starts_with("---") && !heading;
        heading = cells.is_empty();
        if is_row {
            let complaints = row(&cells, part, texts);
            found.extend(complaints.into_iter().map(|what| format!("{PAGE}:{line}: {what}")));
        }
    }
    found
}

fn cells(line: &str) -> Vec<&str> {
    let inner = line.strip_prefix('|').and_then(|rest| rest.strip_suffix('|'));
    inner.map(|inner| inner.split('|').map(str::trim).collect()).unwrap_or_default()
}

fn row(cells: &[&str], part: Option<Part>, texts: &[(String, String)]) -> Vec<String> {
    let mut found = Vec::new();
    if cells.iter().any(|cell| cell.is_empty()) {
        found.push("a cell is empty; say what it is here".to_string());
    }
    if let (Some(part), Some(named)) = (part, cells.last()) {
        let missing = tests_in(named, part).into_iter().filter(|test| !is_there(test, part, texts));
        found.extend(missing.map(|(_, name)| format!("no test {name}; name one that is there")));
    }
    found
}

/// File, if it is named, and name.
fn tests_in(cell: &str, part: Part) -> Vec<(String, String)> {
    let quoted = || cell.split('`').skip(1).step_by(2);
    match part {
        Part::JavaScript => {
            let (file, names) =
                (quoted().next().unwrap_or_default(), cell.split_once("`: ").map(|(_, names)| names));
            let names = names.unwrap_or_default().split("; ");
            // A name that has a semicolon itself comes as two pieces, each of which is there.
            names.map(|name| (file.to_string(), name.to_string())).collect()
        }
        Part::Python => quoted().map(|test| test.split_once("::").unwrap_or(("", test))).map(own).collect(),
        Part::Rust => quoted()
            .filter_map(|test| test.rsplit_once("::"))
            .map(|(_, name)| (String::new(), name.to_string()))
            .collect(),
    }
}

fn own((file, name): (&str, &str)) -> (String, String) {
    (file.to_string(), name.to_string())
}

fn is_there((file, name): &(String, String), part: Part, texts: &[(String, String)]) -> bool {
    let has =
        |path: String, wanted: &str| texts.iter().any(|(at, text)| *at == path && text.contains(wanted));
    match part {
        Part::Python => has(format!("clients/python/tests/{file}"), &format!("def {name}(")),
        Part::JavaScript => !name.is_empty() && has(format!("clients/js/test/{file}"), name),
        Part::Rust => {
            let wanted = format!("fn {name}(");
            let of_client =
                |path: &str| path.starts_with("crates/client/src/") || path.starts_with("tests/it/client");
            texts.iter().any(|(at, text)| of_client(at) && text.contains(&wanted))
        }
    }
}

mod tests {
    use super::*;

    const TEXTS: [(&str, &str); 3] = [
        ("crates/client/src/tests/locks.rs", "fn it_locks() {}"),
        ("clients/python/tests/unit/x.py", "def test_it(self):"),
        ("clients/js/test/y.test.js", "test('it; and more', () => {})"),
    ];

    fn complaints(page: &str) -> Vec<String> {
        check(Some(page), &TEXTS.map(|(path, text)| (path.to_string(), text.to_string())))
    }

    #[test]
    fn what_is_there_passes() {
        let table = "| a | b | test |\n|---|---|---|\n| x | y |";
        let page = format!(
            "## In Rust\n{table} `locks::it_locks` |\n\n## In Python\n{table} `unit/x.py::test_it` |\n\n"
        );
        assert_eq!(
            complaints(&format!("{page}## In JavaScript\n{table} `y.test.js`: it; and more |\n")),
            [""; 0]
        );
    }

    #[test]
    fn what_is_not_does_not() {
        let table = "| a | b | test |\n|---|---|---|\n| x | y |";
        let page = format!(
            "## In Rust\n{table} `locks::gone` |\n\n## In Python\n{table} `unit/z.py::test_it` |\n\n"
        );
        let page = format!("{page}## In JavaScript\n{table} `y.test.js`: other |\n\n## In Rust\n{table} |\n");
        let found = complaints(&page);
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(found[0].starts_with("docs/coming-from.md:4: no test gone"), "{found:?}");
        assert_eq!(check(None, &[]).len(), 1);
    }
}
