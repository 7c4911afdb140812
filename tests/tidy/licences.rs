//! The packages that the product is built from may be passed on under its own licence and come from the
//! public registry: every package of `cargo metadata` is compared with the lists of `deny.toml`. The
//! product's own licence goes with each package that is passed on.

use serde_json::Value as Json;

use crate::tree::Repo;

/// The files of the product's licence, and the packages that are distributed alone.
const LICENCES: [&str; 2] = ["LICENSE-MIT", "LICENSE-APACHE"];
const PACKAGES: [&str; 4] = ["crates/client", "clients/python", "clients/js", "clients/go"];

/// Complaints about packages as `cargo metadata` lists them.
pub fn check(deny: &str, metadata: &Json) -> Vec<String> {
    let allowed = list(deny, "allow");
    let banned = banned(deny);
    let mut complaints = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let text = |key: &str| package[key].as_str().unwrap_or_default();
        let (name, source) = (text("name"), text("source"));
        if !is_allowed(text("license"), &allowed) {
            complaints.push(format!(
                "deny.toml:1: {name} is licensed as {:?}; do without it, or argue for its licence in deny.toml",
                text("license")
            ));
        }
        if !source.is_empty() && !source.starts_with("registry+") {
            complaints.push(format!("Cargo.lock:1: {name} comes from {source}; take it from the registry"));
        }
        if banned.contains(&name) {
            complaints.push(format!("Cargo.lock:1: {name} is banned by deny.toml; do without it"));
        }
    }
    complaints
}

/// Each package that is passed on alone contains the licence, word by word.
pub fn check_copies(repo: &Repo) -> Vec<String> {
    let pairs = LICENCES.iter().flat_map(|file| PACKAGES.map(|folder| (*file, format!("{folder}/{file}"))));
    let differ = pairs.filter(|(file, copy)| repo.text(file).is_none() || repo.text(file) != repo.text(copy));
    differ.map(|(file, copy)| format!("{copy}:1: not the same as {file}; copy it")).collect()
}

/// One of the alternatives is allowed; for parts joined by `AND`, each part is.
fn is_allowed(expression: &str, allowed: &[&str]) -> bool {
    let expression = expression.replace('/', " OR ");
    let groups = expression.split(" AND ").map(|part| part.trim_matches(['(', ')', ' ']));
    groups.into_iter().all(|group| {
        let mut either = group.split(" OR ").map(|one| one.trim_matches(['(', ')', ' ']));
        either.any(|one| allowed.contains(&one.split(" WITH ").next().unwrap_or(one).trim_end_matches('+')))
    })
}

/// The texts of `key = [...]`.
fn list<'a>(toml: &'a str, key: &str) -> Vec<&'a str> {
    let start = format!("\n{key} = [");
    let inside =
        toml.split_once(&start).and_then(|(_, rest)| rest.split_once(']')).map_or("", |(inside, _)| inside);
    inside.split(',').map(|one| one.trim().trim_matches('"')).filter(|one| !one.is_empty()).collect()
}

/// The names in `deny = [{ name = "..." }, ...]`.
fn banned(toml: &str) -> Vec<&str> {
    toml.lines().filter_map(|line| line.trim().strip_prefix("{ name = \"")?.split('"').next()).collect()
}

mod tests {
    use serde_json::json;

    use super::*;

    const DENY: &str =
        "[licenses]\nallow = [\"MIT\", \"ISC\"]\n[bans]\ndeny = [\n    { name = \"openssl\" },\n]\n";

    fn complaints(name: &str, license: &str, source: Option<&str>) -> usize {
        check(DENY, &json!({"packages": [{"name": name, "license": license, "source": source}]})).len()
    }

    #[test]
    fn what_may_be_passed_on_passes() {
        let registry = Some("registry+https://example.com/index");
        for good in [
            "MIT",
            "GPL-3.0 OR MIT",
            "MIT/Apache-2.0",
            "(MIT OR Apache-2.0) AND ISC",
            "ISC WITH some-exception",
        ] {
            assert_eq!(complaints("a", good, registry), 0, "{good}");
        }
        assert_eq!(complaints("own", "MIT", None), 0);
    }

    #[test]
    fn other_licences_sources_and_banned_names_fail() {
        for bad in ["GPL-3.0", "MIT AND GPL-3.0", "(MIT OR ISC) AND OpenSSL", ""] {
            assert_eq!(complaints("a", bad, None), 1, "{bad}");
        }
        assert_eq!(complaints("a", "MIT", Some("git+https://example.com/a")), 1);
        assert_eq!(complaints("openssl", "MIT", None), 1);
    }
}
