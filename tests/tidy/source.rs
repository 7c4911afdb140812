//! A Rust file as the checks see it.

use std::ops::RangeInclusive;

use crate::strip;
use crate::tokens::{Token, attributes, item_end, text_at, tokens};

const STORAGE: &str = "crates/storage/src/";

#[derive(Clone, Debug)]
pub struct Source {
    /// The path from the root of the repository.
    pub path: String,
    pub text: String,
    pub tokens: Vec<Token>,
    /// The lines of items that are compiled for tests only.
    tests: Vec<RangeInclusive<usize>>,
    /// The whole file is a module that its parent declares for tests only.
    pub only_for_tests: bool,
}

impl Source {
    pub fn new(path: &str, text: &str) -> Source {
        let tokens = tokens(text);
        let tests = test_items(&tokens);
        let lines = |&(start, end): &(usize, usize)| tokens[start].line..=tokens[end].line;
        let tests = tests.iter().map(lines).collect();
        let (path, text) = (path.to_string(), text.to_string());
        Source { path, text, tokens, tests, only_for_tests: false }
    }

    /// Sources that know each other: a parent says which of its children are for tests only.
    pub fn all(files: &[(String, String)]) -> Vec<Source> {
        let mut sources: Vec<_> = files.iter().map(|(path, text)| Source::new(path, text)).collect();
        let test_files: Vec<_> = sources.iter().flat_map(Source::test_children).collect();
        for source in &mut sources {
            let stem = source.path.trim_end_matches(".rs");
            let inside = |child: &String| stem == child || stem.starts_with(&format!("{child}/"));
            source.only_for_tests = test_files.iter().any(inside);
        }
        sources
    }

    pub fn is_test(&self, line: usize) -> bool {
        self.only_for_tests || self.in_test_item(line)
    }

    pub fn in_test_item(&self, line: usize) -> bool {
        self.tests.iter().any(|lines| lines.contains(&line))
    }

    pub fn prose(&self) -> String {
        strip::prose(&self.text)
    }

    /// The module right below its crate; None for the roots and for tests. The client library counts as one
    /// module, and so does storage.
    pub fn module(&self) -> Option<&str> {
        if self.path.starts_with("crates/client/") {
            return Some("client");
        }
        if self.path.starts_with(STORAGE) {
            return Some("storage");
        }
        let inside = self.path.strip_prefix("src/").or_else(|| self.path.strip_prefix("crates/core/src/"))?;
        let first = inside.split('/').next()?.trim_end_matches(".rs");
        (!matches!(first, "lib" | "main")).then_some(first)
    }

    /// The path below which its child modules live.
    pub fn folder(&self) -> &str {
        let stem = self.path.trim_end_matches(".rs");
        let root = ["/mod", "/lib", "/main"].iter().find_map(|root| stem.strip_suffix(root));
        root.unwrap_or(stem)
    }

    /// The number of `super` that lead from this file to the crate.
    pub fn depth(&self) -> usize {
        let folder = self.folder();
        let inside = ["crates/core/", "crates/storage/"].iter().find_map(|root| folder.strip_prefix(root));
        inside.unwrap_or(folder).matches('/').count()
    }

    /// True if this module is a crate, so that everything right below the crate is a part of it: items of
    /// other modules have the name of their module.
    pub fn is_a_crate(&self) -> bool {
        self.path.starts_with(STORAGE)
    }

    fn test_children(&self) -> Vec<String> {
        let items = test_items(&self.tokens).into_iter();
        let declares = |&(_, end): &(usize, usize)| {
            text_at(&self.tokens, end) == ";" && text_at(&self.tokens, end.wrapping_sub(2)) == "mod"
        };
        let child = |(_, end): (usize, usize)| format!("{}/{}", self.folder(), self.tokens[end - 1].text);
        items.filter(declares).map(child).collect()
    }
}

/// First and last token of each item under `#[cfg(test)]` or `#[cfg(all(test, …))]`.
fn test_items(tokens: &[Token]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for attribute in attributes(tokens) {
        let inside = &tokens[attribute.clone()];
        let has = |word| inside.iter().any(|token| token.text == word);
        if text_at(inside, 2) == "cfg" && has("test") && !has("not") && !has("any") {
            let mut item = attribute.end;
            while let Some(next) = attributes(&tokens[item..]).first().filter(|next| next.start == 0) {
                item += next.end;
            }
            found.push((attribute.start, item_end(tokens, item)));
        }
    }
    found
}

mod tests {
    use super::*;

    #[test]
    fn test_modules_are_known() {
        let text = "fn a() {}\n#[cfg(test)]\n#[rustfmt::skip]\nmod tests {\n  fn b() {}\n}\nfn c() {}\n";
        let source = Source::new("src/a.rs", text);
        let lines: Vec<_> = (1..=7).filter(|&line| source.is_test(line)).collect();
        assert_eq!(lines, [2, 3, 4, 5, 6]);
    }

    #[test]
    fn only_what_needs_test_is_test() {
        for (cfg, expected) in [("all(test, x)", true), ("any(test, x)", false), ("not(test)", false)] {
            let source = Source::new("src/a.rs", &format!("#[cfg({cfg})]\nuse b;\n"));
            assert_eq!(source.is_test(2), expected, "{cfg}");
        }
    }

    #[test]
    fn a_parent_declares_a_test_file() {
        let file = |path: &str, text: &str| (path.to_string(), text.to_string());
        let parent = file("src/a/mod.rs", "#[cfg(test)]\nmod tests;\nmod testsuite;\n");
        let names = ["src/a/tests.rs", "src/a/tests/b.rs", "src/a/testsuite.rs", "src/b/tests.rs"];
        let mut files: Vec<_> = names.iter().map(|name| file(name, "")).collect();
        files.push(parent);
        let only: Vec<_> = Source::all(&files).iter().map(|source| source.only_for_tests).collect();
        assert_eq!(only, [true, true, false, false, false]);
    }

    #[test]
    fn module_and_depth_come_from_the_path() {
        let known = |path| {
            let source = Source::new(path, "");
            (source.module().map(str::to_string), source.depth())
        };
        let module = Some("a".to_string());
        assert_eq!(known("src/lib.rs"), (None, 0));
        assert_eq!(known("src/a.rs"), (module.clone(), 1));
        assert_eq!(known("src/a/mod.rs"), (module.clone(), 1));
        assert_eq!(known("src/a/b.rs"), (module.clone(), 2));
        assert_eq!(known("src/a/b/mod.rs"), (module, 2));
    }
}
