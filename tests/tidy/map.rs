//! ARCHITECTURE.md is a map: it names every file of the program, and no file that is gone. A folder whose
//! files each describe themselves in the first line is named as a whole: `store/*`.

use std::collections::BTreeSet;

pub const MAP: &str = "ARCHITECTURE.md";

/// A longer map is not read before the code.
const LINES_MAX: usize = 200;

pub fn check(map: Option<&str>, paths: &[String]) -> Vec<String> {
    let Some(map) = map else {
        return vec![format!("{MAP}:1: missing; write a map of src/ and tests/ in {LINES_MAX} lines")];
    };
    let lines = map.lines().count();
    let mut complaints = Vec::new();
    if lines > LINES_MAX {
        complaints.push(format!("{MAP}:{lines}: {lines} lines, at most {LINES_MAX}; say less"));
    }
    complaints.extend(check_complete(map, paths));
    complaints.extend(check_stale(map, paths));
    complaints
}

fn check_complete(map: &str, paths: &[String]) -> Vec<String> {
    let named: BTreeSet<&str> = map.lines().flat_map(names).collect();
    let whole: BTreeSet<&str> =
        map.split(['`', ' ', '\n']).filter_map(|word| word.strip_suffix("/*")).collect();
    let covered = |short: &str| short.rsplit_once('/').is_some_and(|(folder, _)| whole.contains(folder));
    let mut complaints = Vec::new();
    for path in paths {
        let short = ["src/", "crates/core/src/", "crates/"].iter().find_map(|root| path.strip_prefix(root));
        let short = short.filter(|short| short.ends_with(".rs") || path.starts_with("src/"));
        if short
            .is_some_and(|short| !named.contains(short) && !named.contains(path.as_str()) && !covered(short))
        {
            complaints.push(format!("{MAP}:1: {path} is not named; write the path, with or without src/"));
        }
    }
    for folder in test_folders(paths).iter().filter(|folder| !named.contains(folder.as_str())) {
        complaints.push(format!("{MAP}:1: {folder} is not named; write `{folder}/`"));
    }
    complaints
}

fn check_stale(map: &str, paths: &[String]) -> Vec<String> {
    let mut complaints = Vec::new();
    for (number, line) in map.lines().enumerate() {
        for name in names(line).filter(|name| !exists(name, paths)) {
            complaints.push(format!("{MAP}:{}: {name} does not exist; correct the name", number + 1));
        }
    }
    complaints
}

/// The words that look like a path.
fn names(line: &str) -> impl Iterator<Item = &str> {
    let in_path = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let words = line.split(move |c| !in_path(c));
    words
        .map(|word| word.trim_start_matches('/').trim_end_matches(['.', '/']))
        .filter(|word| !matches!(*word, "" | ".rs"))
}

/// True if the name stands for a file or a folder, as far as it is a name in src/ or
/// tests/ or of a Rust file.
fn exists(name: &str, paths: &[String]) -> bool {
    if name.starts_with("src/") || name.starts_with("tests/") {
        let folder = format!("{name}/");
        return paths.iter().any(|path| path == name || path.starts_with(&folder));
    }
    let end = format!("/{name}");
    !name.ends_with(".rs") || paths.iter().any(|path| path == name || path.ends_with(&end))
}

fn test_folders(paths: &[String]) -> BTreeSet<String> {
    let folder = |path: &String| {
        let (folder, _) = path.strip_prefix("tests/")?.split_once('/')?;
        Some(format!("tests/{folder}"))
    };
    paths.iter().filter_map(folder).collect()
}

mod tests {
    use super::*;

    const GOOD: &str = "# Map\n`src/lib.rs` and protocol/mod.rs, http/page.html.\ntests/sim/: seeds.\n\
                        The folders src/protocol/ and types/ say build.rs and/or <x>/mod.rs, *.rs.\n";

    fn complaints(map: &str) -> Vec<String> {
        let paths =
            ["build.rs", "src/lib.rs", "src/protocol/mod.rs", "src/http/page.html", "tests/sim/main.rs"];
        check(Some(map), &paths.map(str::to_string))
    }

    #[test]
    fn a_complete_map_passes() {
        assert_eq!(complaints(GOOD), Vec::<String>::new());
    }

    #[test]
    fn a_missing_map_fails() {
        assert!(check(None, &[])[0].starts_with("ARCHITECTURE.md:1: missing"));
    }

    #[test]
    fn an_unnamed_file_or_folder_fails() {
        let found = complaints(&GOOD.replace("protocol/mod.rs", "mod.rs").replace("tests/sim/", "sim"));
        assert!(found[0].contains("src/protocol/mod.rs is not named"), "{found:?}");
        assert!(found[1].contains("tests/sim is not named"), "{found:?}");
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn a_folder_may_be_named_as_a_whole() {
        let whole = GOOD.replace("protocol/mod.rs", "`protocol/*`");
        assert_eq!(complaints(&whole), Vec::<String>::new());
        assert_eq!(complaints(&whole.replace("protocol/*", "proto/*")).len(), 1, "another folder");
    }

    #[test]
    fn a_longer_name_is_another_name() {
        let found = complaints(&GOOD.replace("page.html", "page.html2"));
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn a_stale_name_fails() {
        let found = complaints(&format!("{GOOD}protocol/gone.rs, src/old/, `tests/it`, docs/any.md\n"));
        assert_eq!(found.len(), 3, "{found:?}");
        assert_eq!(found[0], "ARCHITECTURE.md:5: protocol/gone.rs does not exist; correct the name");
    }

    #[test]
    fn a_long_map_fails() {
        let found = complaints(&format!("{GOOD}{}", "text\n".repeat(197)));
        assert_eq!(found, ["ARCHITECTURE.md:201: 201 lines, at most 200; say less"]);
    }
}
