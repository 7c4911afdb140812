//! The tests that a cell names.
//!
//! | written | what it is |
//! |---|---|
//! | `` `module::name` `` | a test of `crates/client`; of the module `it` one of `tests/it/client.rs` |
//! | `` `tests/it/file.rs::name` `` | a test of any file |
//! | `` `folder/file.py::name` `` | a test below `clients/python/tests` |
//! | `` `file.test.js`: its name; another `` | tests below `clients/js/test` |
//! | `` `scenario.txt` `` | a scenario of `tests/golden/scripts` |

pub enum Named {
    Test,
    /// There is no test of this name.
    Nothing(String),
}

pub fn read(cell: &str, texts: &[(String, String)]) -> Vec<Named> {
    let pieces: Vec<&str> = cell.split('`').collect();
    let mut named = Vec::new();
    for at in (1..pieces.len()).step_by(2) {
        let (quoted, after) = (pieces[at], pieces.get(at + 1).copied().unwrap_or_default());
        match quoted.ends_with(".test.js") {
            true => named.extend(of_javascript(quoted, after, texts)),
            false if is_there(quoted, texts) => named.push(Named::Test),
            false => named.push(Named::Nothing(quoted.to_string())),
        }
    }
    named
}

fn is_there(quoted: &str, texts: &[(String, String)]) -> bool {
    if quoted.ends_with(".txt") {
        let path = format!("tests/golden/scripts/{quoted}");
        return texts.iter().any(|(at, _)| *at == path);
    }
    let Some((place, name)) = quoted.rsplit_once("::") else {
        return false;
    };
    if place.ends_with(".py") {
        let path = format!("clients/python/tests/{place}");
        return texts.iter().any(|(at, text)| *at == path && text.contains(&format!("def {name}(")));
    }
    let files: Vec<String> = match place {
        "it" => vec!["tests/it/client.rs".to_string()],
        place if place.ends_with(".rs") => vec![place.to_string()],
        // Tests in the same file as the code are in a module `tests` of that file.
        place => {
            let path = place.replace("::", "/");
            let beside = path.strip_suffix("/tests").map(|path| format!("crates/client/src/{path}.rs"));
            beside.into_iter().chain([format!("crates/client/src/tests/{path}.rs")]).collect()
        }
    };
    texts.iter().any(|(at, text)| files.contains(at) && has_rust_test(text, name))
}

/// A function of this name below an attribute that makes it a test.
fn has_rust_test(text: &str, name: &str) -> bool {
    let head = format!("fn {name}(");
    let mut is_test = false;
    for line in text.lines().map(str::trim_start) {
        if line.starts_with("#[") {
            is_test |= line.contains("test");
        } else if line.contains(&head) && is_test {
            return true;
        } else if !line.starts_with("//") {
            is_test = false;
        }
    }
    false
}

/// The names after a file's, as they are written there; one may contain a semicolon.
fn of_javascript(file: &str, after: &str, texts: &[(String, String)]) -> Vec<Named> {
    let path = format!("clients/js/test/{file}");
    let there: Vec<String> =
        texts.iter().filter(|(at, _)| *at == path).flat_map(|(_, text)| declared(text)).collect();
    let mut rest = after.strip_prefix(": ").unwrap_or_default().trim_end_matches([';', ',', ' ']);
    let mut named = Vec::new();
    while !rest.is_empty() || named.is_empty() {
        let ends = |name: &&String| {
            rest.strip_prefix(name.as_str()).is_some_and(|more| more.is_empty() || more.starts_with("; "))
        };
        match there.iter().filter(ends).max_by_key(|name| name.len()) {
            Some(name) => {
                named.push(Named::Test);
                rest = rest[name.len()..].trim_start_matches("; ");
            }
            None => {
                named.push(Named::Nothing(format!("{file}: {rest}")));
                return named;
            }
        }
    }
    named
}

/// The names of all tests of a file.
fn declared(text: &str) -> Vec<String> {
    let name = |line: &str| {
        let rest = line.strip_prefix("test('")?;
        let end = rest.find("', ")?;
        Some(rest[..end].replace("\\'", "'"))
    };
    text.lines().filter_map(name).collect()
}
