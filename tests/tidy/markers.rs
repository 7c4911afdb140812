//! Nothing unfinished, switched off or timed by sleeping stays behind.

use crate::paths::paths;
use crate::source::Source;
use crate::strip;
use crate::tokens::{attributes, in_word, text_at};

const MACROS: [&str; 3] = ["todo", "unimplemented", "dbg"];

/// Put together from halves, or this file would complain about itself.
const NOTES: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

/// Fewer words than this after an allowance are a label and not a reason.
const REASON_WORDS_MIN: usize = 3;

pub fn check(sources: &[Source]) -> Vec<String> {
    sources.iter().flat_map(check_file).collect()
}

fn check_file(source: &Source) -> Vec<String> {
    let mut found = macros(source);
    found.extend(notes(source));
    found.extend(sleeps(source));
    found.extend(switched_off(source));
    found.extend(allowances(source));
    found.sort();
    found.into_iter().map(|(line, what)| format!("{}:{line}: {what}", source.path)).collect()
}

fn macros(source: &Source) -> Vec<(usize, String)> {
    let text = |at| text_at(&source.tokens, at);
    let mut found = Vec::new();
    for (at, token) in source.tokens.iter().enumerate() {
        let name = token.text.as_str();
        let called = text(at + 1) == "!" && matches!(text(at + 2), "(" | "[" | "{");
        if MACROS.contains(&name) && called {
            let what = format!("{name}! is left over; finish it or remove it");
            found.push((token.line, what));
        }
    }
    found
}

/// In code, comments and strings alike.
fn notes(source: &Source) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in source.text.lines().enumerate() {
        let words: Vec<_> = line.split(|c| !in_word(c)).collect();
        for note in NOTES.iter().filter(|note| words.iter().any(|word| word.starts_with(**note))) {
            found.push((number + 1, format!("{note} is left over; do it or write it down elsewhere")));
        }
    }
    found
}

fn sleeps(source: &Source) -> Vec<(usize, String)> {
    let found = paths(&source.tokens).into_iter().filter(|path| path.contains(&["thread", "sleep"]));
    let what = "sleeping hides a race; wait for the event itself";
    found.map(|path| (path.line, format!("{}: {what}", path.segments.join("::")))).collect()
}

fn switched_off(source: &Source) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for attribute in attributes(&source.tokens) {
        let tokens = &source.tokens[attribute];
        if let Some(token) = tokens.iter().find(|token| token.text == "ignore") {
            found.push((token.line, "an ignored test checks nothing; mend it or remove it".to_string()));
        }
    }
    found
}

fn allowances(source: &Source) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for attribute in attributes(&source.tokens) {
        let tokens = &source.tokens[attribute];
        let allows = (0..tokens.len()).any(|at| tokens[at].text == "allow" && text_at(tokens, at + 1) == "(");
        let explained = tokens.iter().any(|token| token.text == "reason");
        if allows && !explained && !has_reason(source, tokens[0].line) {
            let what = "allow without a reason; say why in a comment on this line or the one before";
            found.push((tokens[0].line, what.to_string()));
        }
    }
    found
}

/// A comment on the line itself, or alone on the lines right before it.
fn has_reason(source: &Source, line: usize) -> bool {
    let comments = strip::comments(&source.text);
    let comments: Vec<&str> = comments.lines().map(str::trim).collect();
    let lines: Vec<&str> = source.text.lines().map(str::trim).collect();
    let own = line - 1;
    let alone = |at: &usize| !lines[*at].is_empty() && lines[*at] == comments[*at];
    let before = (0..own).rev().take_while(alone).map(|at| words_of_reason(comments[at])).sum::<usize>();
    words_of_reason(comments[own]) >= REASON_WORDS_MIN || before >= REASON_WORDS_MIN
}

/// A doc comment tells of the item and not of the allowance.
fn words_of_reason(comment: &str) -> usize {
    if ["///", "//!", "/**", "/*!"].iter().any(|doc| comment.starts_with(doc)) {
        return 0;
    }
    comment.split_whitespace().filter(|word| word.starts_with(in_word)).count()
}

mod tests {
    use super::*;

    fn complaints(text: &str) -> Vec<String> {
        check(&[Source::new("src/a.rs", text)])
    }

    #[test]
    fn finished_code_passes() {
        let text = "// the thread does not sleep\nconst A: &str = \"todo!()\";\nfn todo() { dbg(sleep) && dbg != x }\n\
                    #[derive(Debug)]\nstruct Ignore;\nfn allow(ignore: bool) {}\n";
        assert_eq!(complaints(text), Vec::<String>::new());
    }

    #[test]
    fn leftover_macros_fail() {
        for name in MACROS {
            let found = complaints(&format!("fn f() {{\n    {name}!(x)\n}}\n"));
            let expected = format!("src/a.rs:2: {name}! is left over; finish it or remove it");
            assert_eq!(found, [expected]);
        }
    }

    #[test]
    fn leftover_notes_fail() {
        for note in NOTES {
            for text in [format!("// {note}: x"), format!("f(\"({note})\")"), format!("/* {note}S */")] {
                assert_eq!(complaints(&text).len(), 1, "{text}");
            }
            assert_eq!(complaints(&format!("// mktemp a{note}XX")).len(), 0);
        }
    }

    #[test]
    fn sleeping_fails() {
        for text in ["std::thread::sleep(d)", "thread::sleep(d)", "use std::thread::{spawn, sleep};"] {
            assert_eq!(complaints(text).len(), 1, "{text}");
        }
    }

    #[test]
    fn ignored_tests_fail() {
        for text in ["#[ignore]", "#[ignore = \"slow\"]", "#[cfg_attr(slow, ignore)]"] {
            assert_eq!(complaints(&format!("#[test]\n{text}\nfn f() {{}}")).len(), 1, "{text}");
        }
    }

    #[test]
    fn an_allowance_needs_a_reason() {
        let bad = [
            "#[allow(a)]",
            "/// About the item itself.\n#[allow(a)]",
            "f(); // of the call before\n#[allow(a)]",
            "#![allow(a)] // later",
            "#[cfg_attr(x, allow(a))]",
            "// a reason, but too far up\n\n#[allow(a)]",
        ];
        assert!(bad.iter().all(|text| complaints(text).len() == 1));
        let good = [
            "#[allow(a)] // the macro writes it",
            "// the macro writes it,\n// always\n#[allow(a)]",
            "#[allow(a, reason = \"the macro\")]",
        ];
        assert!(good.iter().all(|text| complaints(text).is_empty()));
    }
}
