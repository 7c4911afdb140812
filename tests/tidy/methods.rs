//! The methods of a type stand in its own room: so a room cannot call a type that it may not import, and the
//! private state of a type stays in one place.

use std::collections::BTreeMap;

use crate::source::Source;
use crate::tokens::{closing, item_end, text_at};

/// The modules with this rule, by the folder of their rooms.
const MODULES: [&str; 2] = ["crates/core/src/protocol/", "crates/core/src/replica/"];

pub fn check(sources: &[Source]) -> Vec<String> {
    MODULES.iter().flat_map(|module| check_module(sources, module)).collect()
}

fn check_module(sources: &[Source], module: &str) -> Vec<String> {
    let files: Vec<(&Source, &str)> =
        sources.iter().filter_map(|source| Some((source, room(&source.path, module)?))).collect();
    let mut homes = BTreeMap::new();
    for (source, room) in &files {
        homes.extend(types(source).map(|name| (name, *room)));
    }
    let mut complaints = Vec::new();
    for (source, room) in &files {
        for (name, line) in impls(source) {
            if let Some(home) = homes.get(name).filter(|home| *home != room) {
                let at = format!("{}:{line}", source.path);
                complaints.push(format!("{at}: {name} lives in {home}; write its methods there"));
            }
        }
    }
    complaints
}

fn room<'a>(path: &'a str, module: &str) -> Option<&'a str> {
    let inside = path.strip_prefix(module)?.trim_end_matches(".rs");
    inside.split('/').next()
}

fn types(source: &Source) -> impl Iterator<Item = &str> {
    let tokens = &source.tokens;
    let defines = |at: &usize| ["struct", "enum", "union"].contains(&text_at(tokens, *at));
    (0..tokens.len()).filter(defines).map(|at| text_at(tokens, at + 1))
}

/// Each `impl Type` that is not of a trait.
fn impls(source: &Source) -> Vec<(&str, usize)> {
    let tokens = &source.tokens;
    let mut found = Vec::new();
    for at in (0..tokens.len()).filter(|&at| text_at(tokens, at) == "impl") {
        let starts = at == 0 || ["}", ";", "]"].contains(&text_at(tokens, at - 1));
        if !starts || source.is_test(tokens[at].line) {
            continue;
        }
        let mut name = at + 1;
        if text_at(tokens, name) == "<" {
            let mut depth = 0;
            while name < tokens.len() {
                match text_at(tokens, name) {
                    "<" => depth += 1,
                    ">" => depth -= 1,
                    _ => {}
                }
                name += 1;
                if depth == 0 {
                    break;
                }
            }
        }
        let end = item_end(tokens, at);
        let body = (at..end).find(|&open| text_at(tokens, open) == "{" && closing(tokens, open) == end);
        let of_trait = (at..body.unwrap_or(end)).any(|word| text_at(tokens, word) == "for");
        if !of_trait {
            found.push((text_at(tokens, name), tokens[at].line));
        }
    }
    found
}

mod tests {
    use super::*;

    fn complaints(files: &[(&str, &str)]) -> Vec<String> {
        let path = |path: &str| format!("crates/core/src/protocol/{path}");
        let files: Vec<_> = files.iter().map(|(at, text)| (path(at), text.to_string())).collect();
        check(&Source::all(&files))
    }

    #[test]
    fn methods_in_another_room_fail() {
        let files = [
            ("core/mod.rs", "pub struct Core;\npub struct Of<T>(T);"),
            ("node.rs", "struct Node;\nimpl Core { fn f() {} }\nimpl<T: Into<u8>> Of<T> {}"),
        ];
        let expected = [
            "crates/core/src/protocol/node.rs:2: Core lives in core; write its methods there",
            "crates/core/src/protocol/node.rs:3: Of lives in core; write its methods there",
        ];
        assert_eq!(complaints(&files), expected);
    }

    #[test]
    fn methods_at_home_traits_and_tests_pass() {
        let files = [
            ("core/mod.rs", "pub struct Core;\nimpl Core {}"),
            ("core/members.rs", "impl Core { fn f(x: impl Iterator) -> impl Fn() { for y in x {} } }"),
            ("node.rs", "impl From<Core> for u8 {}\n#[cfg(test)]\nmod tests { impl Core {} }"),
        ];
        assert_eq!(complaints(&files), Vec::<String>::new());
    }
}
