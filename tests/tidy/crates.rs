//! The packages that each crate may be built with. Cargo keeps the crates apart; this keeps the list of
//! their dependencies: a client program compiles no server and no command line, and the core has no
//! runtime, no socket and no clock.

use std::collections::{BTreeMap, BTreeSet};

/// Every crate except the product itself, with all that it may depend on.
const TABLE: [(&str, &[&str]); 6] = [
    ("core", &["blake3", "imbl", "memchr", "serde", "serde_json"]),
    ("storage", &["eldest-core", "bytes", "crc32fast", "getrandom", "rustix", "serde", "serde_json"]),
    ("tls", &["rustls"]),
    (
        "client",
        &[
            "eldest-tls",
            "bytes",
            "futures-util",
            "getrandom",
            "reqwest",
            "rustix",
            "serde",
            "serde_json",
            "tokio",
        ],
    ),
    ("load", &["eldest-tls", "tokio-rustls", "clap", "rustix", "serde", "serde_json", "tokio", "url"]),
    ("micro", &["eldest", "eldest-core", "eldest-storage"]),
];

/// The allowed features where more would bring in more than the table says, by crate and dependency; an empty
/// list would mean the default ones.
const FEATURES: [(&str, &str, &[&str]); 4] = [
    ("storage", "rustix", &["fs"]),
    ("client", "reqwest", &["stream"]),
    ("client", "rustix", &["time"]),
    ("client", "tokio", &["rt", "macros", "net", "time", "sync"]),
];

/// The packages that may not be built in by any path, by package.
const NEVER: [(&str, &[&str]); 5] = [
    ("eldest-storage", &["tokio", "axum", "hyper", "reqwest", "clap", "eldest"]),
    ("eldest-tls", &["tokio", "hyper", "reqwest", "aws-lc-rs", "eldest-core", "eldest"]),
    ("eldest-core", &["tokio", "axum", "hyper", "reqwest", "rustix", "clap", "chrono", "time"]),
    ("eldest-client", &["axum", "clap", "eldest-core", "eldest"]),
    ("eldest-load", &["axum", "reqwest", "eldest-core", "eldest-client", "eldest"]),
];

/// A dependency that Cargo's list has of a package only for its tests. `TABLE` checks that
/// it is no more than that.
const FOR_TESTS: (&str, &str) = ("eldest-core", "eldest-storage");

/// A dependency as a manifest names it.
#[derive(Debug, PartialEq, Eq)]
struct Dependency<'a> {
    name: &'a str,
    /// The text after the equals sign.
    how: &'a str,
    line: usize,
}

pub fn check(texts: &[(String, String)]) -> Vec<String> {
    let mut complaints = Vec::new();
    for (name, allowed) in TABLE {
        let path = format!("crates/{name}/Cargo.toml");
        match texts.iter().find(|(known, _)| *known == path) {
            Some((_, text)) => complaints.extend(check_manifest(&path, name, text, allowed)),
            None => {
                complaints.push(format!("{path}:1: missing; take it out of TABLE in tests/tidy/crates.rs"))
            }
        }
    }
    let unknown = texts.iter().filter(|(path, _)| {
        let name = path.strip_prefix("crates/").and_then(|path| path.strip_suffix("/Cargo.toml"));
        name.is_some_and(|name| TABLE.iter().all(|(known, _)| *known != name))
    });
    let place = "give it a line in TABLE in tests/tidy/crates.rs";
    complaints.extend(unknown.map(|(path, _)| format!("{path}:1: not in the table of crates; {place}")));
    complaints
}

/// The same check for indirect dependencies, by Cargo's own list of all packages.
pub fn check_lock(lock: Option<&str>) -> Vec<String> {
    let packages = packages(lock.unwrap_or_default());
    let mut complaints = Vec::new();
    for (package, never) in NEVER {
        let compiled = behind(package, &packages);
        if compiled.is_empty() {
            complaints
                .push(format!("Cargo.lock:1: {package} is not there; correct NEVER in tests/tidy/crates.rs"));
        }
        let wrong = never.iter().filter(|name| compiled.contains(**name));
        complaints.extend(wrong.map(|name| {
            format!(
                "Cargo.lock:1: {package} is built with {name}; `cargo tree -p {package} -i {name}` says why"
            )
        }));
    }
    complaints
}

type Packages<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Each package with its dependencies, without their versions.
fn packages(lock: &str) -> Packages<'_> {
    let mut packages = Packages::new();
    for package in lock.split("[[package]]").skip(1) {
        let name = package.lines().find_map(|line| line.strip_prefix("name = "));
        let listed = package.split_once("dependencies = [").map_or("", |(_, rest)| rest);
        let listed = listed.split(']').next().unwrap_or_default();
        let names = listed.lines().filter_map(|line| word(line.trim().trim_end_matches(',')));
        let name = name.and_then(word).unwrap_or_default();
        packages.entry(name).or_default().extend(names.filter(|needed| (name, *needed) != FOR_TESTS));
    }
    packages
}

/// The name in quotes, without the version behind it.
fn word(text: &str) -> Option<&str> {
    let inside = text.strip_prefix('"')?.strip_suffix('"')?;
    inside.split(' ').next()
}

/// Everything that a package is built with, itself included; empty if there is no such package.
fn behind<'a>(package: &'a str, packages: &Packages<'a>) -> BTreeSet<&'a str> {
    let (mut found, mut open) = (BTreeSet::new(), vec![package]);
    while let Some(name) = open.pop() {
        if let Some(next) = packages.get(name)
            && found.insert(name)
        {
            open.extend(next);
        }
    }
    found
}

fn check_manifest(path: &str, krate: &str, text: &str, allowed: &[&str]) -> Vec<String> {
    let mut complaints = Vec::new();
    for Dependency { name, how, line } in dependencies(text) {
        if !allowed.contains(&name) {
            let allowed = allowed.join(", ");
            complaints.push(format!("{path}:{line}: {krate} must not depend on {name}, only on {allowed}"));
        }
        let known = FEATURES.iter().find(|(of, on, _)| (*of, *on) == (krate, name));
        if let Some((.., known)) = known {
            let more = features(how).into_iter().filter(|feature| !known.contains(feature));
            complaints
                .extend(more.map(|more| format!("{path}:{line}: {krate} must not ask {name} for {more}")));
        }
    }
    complaints
}

/// The dependencies that are compiled for every user of the crate: tests have more.
fn dependencies(text: &str) -> Vec<Dependency<'_>> {
    let (mut found, mut inside) = (Vec::new(), false);
    for (number, line) in text.lines().enumerate() {
        let line_number = number + 1;
        let line = line.trim();
        if let Some(section) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            inside = is_compiled(section);
            // `[dependencies.name]`, a separate table.
            if let Some((_, name)) = section.rsplit_once("dependencies.").filter(|_| inside) {
                found.push(Dependency { name, how: "", line: line_number });
                inside = false;
            }
        } else if let Some((name, how)) = line.split_once('=').filter(|_| inside && !line.starts_with('#')) {
            let name = name.trim().trim_matches('"');
            found.push(Dependency {
                name: name.trim_end_matches(".workspace"),
                how: how.trim(),
                line: line_number,
            });
        }
    }
    found
}

fn is_compiled(section: &str) -> bool {
    let section = section.rsplit_once("'.").map_or(section, |(_, section)| section);
    ["dependencies", "build-dependencies"]
        .iter()
        .any(|kind| section.strip_prefix(kind).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
}

fn features(how: &str) -> Vec<&str> {
    let list = how.split_once("features = [").and_then(|(_, rest)| rest.split_once(']'));
    let names = list.map(|(list, _)| list.split(',')).into_iter().flatten();
    names.map(|name| name.trim().trim_matches('"')).filter(|name| !name.is_empty()).collect()
}

mod tests {
    use super::*;

    const CORE: &str = "[package]\nname = \"eldest-core\"\n\n[dependencies]\n# Text.\nserde = \"1\"\nimbl = \"7\"\n\n\
                        [dev-dependencies]\ntokio = \"1\"\n";

    fn complaints(name: &str, text: &str) -> Vec<String> {
        let allowed = TABLE.iter().find(|(known, _)| *known == name).map(|(_, allowed)| *allowed);
        check_manifest("Cargo.toml", name, text, allowed.expect("it is in the table"))
    }

    #[test]
    fn what_the_table_allows_passes() {
        assert_eq!(complaints("core", CORE), Vec::<String>::new());
    }

    #[test]
    fn a_runtime_in_the_core_fails() {
        let text = CORE.replace("imbl = \"7\"", "tokio = \"1\"");
        let expected =
            "Cargo.toml:7: core must not depend on tokio, only on blake3, imbl, memchr, serde, serde_json";
        assert_eq!(complaints("core", &text), [expected]);
    }

    #[test]
    fn a_server_in_the_client_fails_however_it_is_written() {
        for text in [
            "[dependencies]\naxum = \"0.8\"",
            "[dependencies]\naxum.workspace = true",
            "[dependencies.axum]\nversion = \"0.8\"",
            "[build-dependencies]\naxum = \"0.8\"",
            "[target.'cfg(unix)'.dependencies]\n\"axum\" = { version = \"0.8\" }",
        ] {
            assert_eq!(complaints("client", text).len(), 1, "{text}");
        }
        let tests = "[dev-dependencies]\naxum = \"0.8\"\n[features]\naxum = []";
        assert_eq!(complaints("client", tests), Vec::<String>::new());
    }

    #[test]
    fn features_are_kept_small() {
        let good = "[dependencies]\ntokio = { version = \"1\", features = [\"rt\", \"time\"] }";
        assert_eq!(complaints("client", good), Vec::<String>::new());
        let bad = good.replace("\"time\"", "\"full\"");
        assert_eq!(complaints("client", &bad), ["Cargo.toml:2: client must not ask tokio for full"]);
    }

    #[test]
    fn a_crate_outside_the_table_fails() {
        let texts = |names: &[&str]| -> Vec<(String, String)> {
            names.iter().map(|name| (format!("crates/{name}/Cargo.toml"), String::new())).collect()
        };
        assert_eq!(
            check(&texts(&["core", "storage", "tls", "client", "load", "micro"])),
            Vec::<String>::new()
        );
        let found = check(&texts(&["core", "storage", "tls", "client", "load", "micro", "more"]));
        assert!(found[0].starts_with("crates/more/Cargo.toml:1: not in the table"), "{found:?}");
        assert!(
            check(&texts(&["core", "storage", "tls", "client", "micro"]))[0]
                .contains("crates/load/Cargo.toml:1: missing")
        );
    }

    const LOCK: &str = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\ndependencies = [\n \"b 2.0.0\",\n \"c\",\n]\n\n\
                        [[package]]\nname = \"b\"\nversion = \"2.0.0\"\ndependencies = [\n \"d\",\n \"a\",\n]\n\n\
                        [[package]]\nname = \"c\"\nversion = \"1.0.0\"\n\n[[package]]\nname = \"d\"\nversion = \"1.0.0\"\n\n\
                        [[package]]\nname = \"e\"\nversion = \"1.0.0\"\n";

    #[test]
    fn what_comes_along_is_found() {
        let packages = packages(LOCK);
        assert_eq!(behind("a", &packages), BTreeSet::from(["a", "b", "c", "d"]));
        assert_eq!(behind("c", &packages), BTreeSet::from(["c"]));
        assert_eq!(behind("x", &packages), BTreeSet::new());
        assert_eq!(check_lock(None).len(), NEVER.len());
    }

    #[test]
    fn a_server_behind_a_dependency_fails() {
        let lock = ["eldest-core", "eldest-storage", "eldest-tls", "eldest-client", "eldest-load"]
            .iter()
            .map(|name| format!("[[package]]\nname = \"{name}\"\ndependencies = [\n \"b\",\n]\n"));
        let lock = lock.collect::<String>() + "[[package]]\nname = \"b\"\n";
        assert_eq!(check_lock(Some(&lock)), Vec::<String>::new());
        let lock = lock + "dependencies = [\n \"clap\",\n]\n[[package]]\nname = \"clap\"\n";
        let found = check_lock(Some(&lock));
        assert!(
            found.iter().any(|complaint| complaint.contains("eldest-client is built with clap")),
            "{found:?}"
        );
    }
}
