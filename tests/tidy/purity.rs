//! The core has no IO, clock, randomness or threads: any failure replays from its inputs.

use crate::paths::{Path, paths};
use crate::source::Source;
use crate::tokens::text_at;

const PURE: [&str; 6] = ["types", "protocol", "store", "leases", "replica", "feed"];

/// The one place for test-only switches, which each test thread sets for itself.
const SWITCHES: &str = "crates/core/src/protocol/mutant.rs";

const OUTSIDE: &str = "return an output and let the driver act";
const CLOCK: &str = "take the time as an argument";
const SHARED: &str = "the core has one owner and shares nothing that changes";

/// Modules of std, each with its alternative.
const MODULES: [(&str, &str); 7] = [
    ("fs", OUTSIDE),
    ("net", OUTSIDE),
    ("io", OUTSIDE),
    ("os", OUTSIDE),
    ("process", OUTSIDE),
    ("thread", OUTSIDE),
    ("env", "take the value as an argument"),
];

/// Words that may not be written at all. For types with a random order `crates/core/clippy.toml` has the same
/// rule, and the core has no dependency on crates with effects on the outside.
const WORDS: [(&str, &str); 2] = [("async", OUTSIDE), ("await", OUTSIDE)];

/// Macros; their names may be used for other things.
const MACROS: [(&str, &str); 5] = [
    ("print", OUTSIDE),
    ("eprint", OUTSIDE),
    ("println", OUTSIDE),
    ("eprintln", OUTSIDE),
    ("thread_local", SHARED),
];

pub fn check(sources: &[Source]) -> Vec<String> {
    let pure = |source: &&Source| source.module().is_some_and(|module| PURE.contains(&module));
    sources.iter().filter(pure).flat_map(check_file).collect()
}

fn check_file(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    for path in paths(&source.tokens) {
        if let Some(instead) = banned_path(&path) {
            found.push((path.line, path.segments.join("::"), instead));
        }
    }
    for (at, token) in source.tokens.iter().enumerate() {
        if let Some(instead) = banned_word(source, at) {
            found.push((token.line, token.text.clone(), instead));
        }
    }
    found.retain(|(line, ..)| !source.is_test(*line));
    found.sort();
    found.dedup();
    let complaint =
        |(line, what, instead)| format!("{}:{line}: {what} in the pure core; {instead}", source.path);
    found.into_iter().map(complaint).collect()
}

/// The alternative to a word; None for a harmless one.
fn banned_word(source: &Source, at: usize) -> Option<&'static str> {
    let word = source.tokens[at].text.as_str();
    let called = text_at(&source.tokens, at + 1) == "!";
    let switch = word == "thread_local" && source.path == SWITCHES;
    let macros = MACROS.iter().filter(|_| called && !switch);
    WORDS.iter().chain(macros).find(|(name, _)| *name == word).map(|(_, instead)| *instead)
}

/// The alternative to a path; None for a harmless one. A whole module of which only a part is harmless may
/// not be imported, because its other parts could then be reached by a shorter name.
fn banned_path(path: &Path) -> Option<&'static str> {
    let segments: Vec<&str> = path.segments.iter().map(String::as_str).collect();
    match segments.as_slice() {
        ["std", "*", ..] => Some("name what you import"),
        ["std", "time"] | ["std", "time", "*", ..] => Some(CLOCK),
        ["std", "time", "Instant" | "SystemTime" | "UNIX_EPOCH", ..] => Some(CLOCK),
        ["std" | "core" | "alloc", "sync", "Arc" | "Weak", ..] => None,
        ["std" | "core" | "alloc", "sync", ..] => Some(SHARED),
        ["std" | "core", module, ..] => {
            MODULES.iter().find(|(name, _)| name == module).map(|(_, instead)| *instead)
        }
        _ => None,
    }
}

mod tests {
    use super::*;

    fn complaints(path: &str, text: &str) -> Vec<String> {
        check(&[Source::new(path, text)])
    }

    #[test]
    fn innocent_code_passes() {
        let text = "use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};\n\
                    // println! and async\nconst X: &str = \"std::fs\";\n\
                    fn f(now: Instant, randomly: u8) { std::time::Duration::ZERO; fs::x(); print(1); }\n\
                    #[cfg(test)]\nmod tests { use std::fs; }\n";
        assert_eq!(complaints("src/store/apply.rs", text), Vec::<String>::new());
        assert_eq!(complaints("src/driver/mod.rs", "use std::fs;"), Vec::<String>::new());
    }

    #[test]
    fn a_complaint_says_where_and_what_to_do() {
        let expected = "src/types/id.rs:2: std::time::Instant in the pure core; take the time as an argument";
        assert_eq!(complaints("src/types/id.rs", "\nuse std::time::{Duration, Instant};"), [expected]);
    }

    #[test]
    fn every_path_to_the_outside_fails() {
        let paths = [
            "std::fs",
            "std::net::IpAddr",
            "std::{fmt, io}",
            "std::thread::spawn",
            "std::env::var",
            "std::process::exit",
            "::std::os::fd",
            "std::*",
            "std::time",
            "std::time::{self, Duration}",
            "std::time::*",
            "std::time::SystemTime",
            "std::sync::Mutex",
            "std::sync::{Arc, RwLock}",
            "core::sync::atomic::AtomicU8",
            "std::sync::*",
        ];
        for path in paths {
            let found = complaints("src/protocol/mod.rs", &format!("use {path};"));
            assert_eq!(found.len(), 1, "{path}: {found:?}");
        }
    }

    #[test]
    fn every_word_fails() {
        for (word, _) in WORDS.iter().chain(&MACROS) {
            let found = complaints("src/store.rs", &format!("fn f() {{ a.{word}!(b) }}"));
            assert_eq!(found.len(), 1, "{word}: {found:?}");
        }
        assert_eq!(complaints("src/types/mod.rs", "async fn f() { g().await }").len(), 2);
    }

    #[test]
    fn switches_live_in_one_file() {
        let text = "thread_local! { static X: Cell<u8>; }";
        assert_eq!(complaints(SWITCHES, text).len(), 0);
        assert_eq!(complaints("src/protocol/mod.rs", text).len(), 1);
        assert_eq!(complaints(SWITCHES, "use std::fs;").len(), 1);
    }
}
