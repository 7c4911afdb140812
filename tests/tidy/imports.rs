//! Imports run one way, down the table.

use crate::paths::{Path, paths};
use crate::source::Source;
use crate::tokens::inline_depths;

/// Every module of the crate, lowest first, with the other modules that it may import.
const TABLE: [(&str, &[&str]); 16] = [
    ("types", &[]),
    ("metrics", &[]),
    ("protocol", &["types"]),
    // The store imports the protocol only for its switches: known bugs are switched on in one place.
    ("store", &["types", "protocol"]),
    ("leases", &["types", "protocol"]),
    ("replica", &["types", "protocol", "store", "leases"]),
    ("feed", &["types", "protocol", "store", "replica"]),
    ("wire", &["types", "protocol"]),
    // Storage imports the replica and the store only where writes become jobs and states
    // become files: `storage/node`.
    ("storage", &["types", "protocol", "store", "replica"]),
    // The configuration imports the store for grants, which settings have as well as tokens.
    ("config", &["types", "protocol", "store"]),
    ("client", &[]),
    ("chronicle", &["types", "protocol", "store"]),
    ("doctor", &[]),
    (
        "driver",
        &[
            "types",
            "metrics",
            "protocol",
            "store",
            "replica",
            "feed",
            "wire",
            "storage",
            "config",
            "chronicle",
        ],
    ),
    // HTTP imports the client for the rule by which holders count: a stream is one.
    (
        "http",
        &[
            "types",
            "metrics",
            "protocol",
            "store",
            "replica",
            "wire",
            "storage",
            "config",
            "client",
            "chronicle",
            "doctor",
            "driver",
        ],
    ),
    (
        "cli",
        &[
            "types", "protocol", "store", "replica", "wire", "storage", "config", "client", "doctor",
            "driver", "http",
        ],
    ),
];

pub fn check(sources: &[Source]) -> Vec<String> {
    sources.iter().flat_map(check_file).collect()
}

fn check_file(source: &Source) -> Vec<String> {
    let Some(module) = source.module().filter(|module| *module != "client") else {
        // The client library is a separate crate, which Cargo keeps apart. The roots, `lib.rs` and `main.rs`,
        // put the modules together.
        return Vec::new();
    };
    let Some((_, allowed)) = TABLE.iter().find(|(name, _)| *name == module) else {
        let place = "give it a place in TABLE in tests/tidy/imports.rs";
        return vec![format!("{}:1: module {module} is not in the table of imports; {place}", source.path)];
    };
    let known = |target: &str| TABLE.iter().any(|(name, _)| *name == target);
    let mut complaints: Vec<String> = Vec::new();
    for (target, line) in crate_imports(source) {
        let own = target == module || (source.is_a_crate() && !known(&target));
        if !own && !allowed.contains(&target.as_str()) {
            complaints.push(complaint(source, line, module, &target, allowed));
        }
    }
    complaints.dedup();
    complaints
}

fn complaint(source: &Source, line: usize, module: &str, target: &str, allowed: &[&str]) -> String {
    let at = format!("{}:{line}", source.path);
    if !TABLE.iter().any(|(name, _)| *name == target) {
        return format!("{at}: crate::{target} does not say which module it comes from; name the module");
    }
    let allowed = if allowed.is_empty() { "nothing".to_string() } else { allowed.join(", ") };
    format!(
        "{at}: {module} must not import crate::{target}, only {allowed}; move the shared item down or the use of it up"
    )
}

/// The module right below the crate that each path names, with the line.
fn crate_imports(source: &Source) -> Vec<(String, usize)> {
    let depths = inline_depths(&source.tokens);
    let target = |path: &Path| {
        let below = steps_to_crate(&path.segments, source.depth() + depths[path.at])?;
        Some((path.segments.get(below)?.clone(), path.line))
    };
    paths(&source.tokens).iter().filter_map(target).collect()
}

/// The number of segments that lead to the crate; None if the path stays below it.
fn steps_to_crate(segments: &[String], depth: usize) -> Option<usize> {
    if segments[0] == "crate" {
        return Some(1);
    }
    let skipped = usize::from(segments[0] == "self");
    let supers = segments[skipped..].iter().take_while(|segment| *segment == "super").count();
    (supers > 0 && supers == depth).then_some(skipped + supers)
}

mod tests {
    use super::*;

    fn complaints(path: &str, text: &str) -> Vec<String> {
        check(&[Source::new(path, text)])
    }

    #[test]
    fn the_table_points_down() {
        for (place, (module, allowed)) in TABLE.iter().enumerate() {
            let lower: Vec<_> = TABLE[..place].iter().map(|(name, _)| *name).collect();
            assert!(allowed.iter().all(|name| lower.contains(name)), "{module} imports from above");
        }
    }

    #[test]
    fn what_the_table_allows_passes() {
        let text = "use crate::types::Epoch;\nuse crate::protocol::{Input, Output};\nuse super::quorum;\n\
                    // crate::store\nconst X: &str = \"crate::http\";\npub(crate) fn f() {}\n";
        assert_eq!(complaints("src/protocol/election.rs", text), Vec::<String>::new());
        assert_eq!(complaints("src/cli/serve.rs", "use crate::{client, http};"), Vec::<String>::new());
        assert_eq!(complaints("src/main.rs", "use crate::anything;"), Vec::<String>::new());
    }

    #[test]
    fn an_import_from_above_fails() {
        let expected = "src/protocol/election.rs:2: protocol must not import crate::store, only types; \
                        move the shared item down or the use of it up";
        assert_eq!(complaints("src/protocol/election.rs", "\nuse crate::store::Store;"), [expected]);
        assert_eq!(complaints("src/types/mod.rs", "fn f() -> crate::wire::Body {}").len(), 1);
    }

    #[test]
    fn groups_fail_item_by_item() {
        let text = "use crate::{\n    types::Epoch,\n    http::{routes, auth},\n    cli,\n};";
        let found = complaints("src/store/apply.rs", text);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("src/store/apply.rs:3:") && found[0].contains("crate::http"));
        assert!(found[1].starts_with("src/store/apply.rs:4:") && found[1].contains("crate::cli"));
    }

    #[test]
    fn super_that_reaches_the_crate_fails() {
        assert_eq!(complaints("src/store/mod.rs", "use super::http;").len(), 1);
        assert_eq!(complaints("src/store/apply.rs", "use super::super::http;").len(), 1);
        assert_eq!(complaints("src/store/apply.rs", "use super::{super::http, digest};").len(), 1);
        assert_eq!(complaints("src/store/apply.rs", "mod tests { use super::super::super::http; }").len(), 1);
        assert_eq!(complaints("src/store/apply.rs", "use super::http;").len(), 0);
        assert_eq!(complaints("src/store/apply.rs", "mod tests { use super::super::http; }").len(), 0);
    }

    #[test]
    fn names_without_a_module_fail() {
        assert!(complaints("src/wire/mod.rs", "use crate::*;")[0].contains("name the module"));
        assert!(complaints("src/wire/mod.rs", "use crate::Error;")[0].contains("name the module"));
    }

    #[test]
    fn a_module_outside_the_table_fails() {
        assert!(complaints("src/util/mod.rs", "")[0].starts_with("src/util/mod.rs:1: module util"));
        assert!(complaints("src/helpers.rs", "")[0].contains("TABLE"));
    }
}
