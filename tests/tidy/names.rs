//! One name stands for one thing: no two visible types of a crate have the same name. A reader
//! who looks one up finds it.

use std::collections::BTreeMap;

use crate::source::Source;
use crate::tokens::{closing, text_at};

/// The folder of each crate's sources.
const CRATES: [&str; 6] = [
    "src/",
    "crates/core/src/",
    "crates/storage/src/",
    "crates/client/src/",
    "crates/load/src/",
    "crates/tls/src/",
];

pub fn check(sources: &[Source]) -> Vec<String> {
    CRATES.iter().flat_map(|root| check_crate(sources, root)).collect()
}

fn check_crate(sources: &[Source], root: &str) -> Vec<String> {
    let mut first = BTreeMap::new();
    let mut complaints = Vec::new();
    for source in sources.iter().filter(|source| source.path.starts_with(root)) {
        for (name, line) in public_types(source) {
            let here = format!("{}:{line}", source.path);
            match first.get(name) {
                None => drop(first.insert(name, here)),
                Some(there) => complaints
                    .push(format!("{here}: {there} has a {name}, too; give one of them a name of its own")),
            }
        }
    }
    complaints
}

fn public_types(source: &Source) -> Vec<(&str, usize)> {
    let tokens = &source.tokens;
    let mut found = Vec::new();
    for at in (0..tokens.len()).filter(|&at| text_at(tokens, at) == "pub" && !source.is_test(tokens[at].line))
    {
        // `pub(in crate::a)` is public enough to be looked up.
        let after = if text_at(tokens, at + 1) == "(" { closing(tokens, at + 1) + 1 } else { at + 1 };
        if ["struct", "enum", "trait", "type", "union"].contains(&text_at(tokens, after)) {
            found.push((text_at(tokens, after + 1), tokens[at].line));
        }
    }
    found
}

mod tests {
    use super::*;

    fn complaints(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<_> = files.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect();
        check(&Source::all(&files))
    }

    #[test]
    fn one_name_for_two_types_fails() {
        let files = [
            ("crates/core/src/a.rs", "pub struct X;"),
            ("crates/core/src/b.rs", "\npub(in crate::b) enum X { Y }"),
        ];
        let expected =
            "crates/core/src/b.rs:2: crates/core/src/a.rs:1 has a X, too; give one of them a name of its own";
        assert_eq!(complaints(&files), [expected]);
    }

    #[test]
    fn what_nobody_else_sees_passes() {
        let files = [
            (
                "crates/core/src/a.rs",
                "pub struct X;\nimpl X { pub fn type_of() {} }\n#[cfg(test)]\nmod tests { pub struct X; }",
            ),
            ("crates/core/src/b.rs", "struct X;\npub use a::X;\npub(crate) fn x() -> X {}"),
            ("crates/storage/src/a.rs", "pub struct X;"),
        ];
        assert_eq!(complaints(&files), Vec::<String>::new());
    }
}
