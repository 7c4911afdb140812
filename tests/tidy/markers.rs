//! No unfinished or switched-off code stays behind. The rules that clippy knows (`todo!`, sleeping, an
//! allowance without a reason) are in `Cargo.toml` and `clippy.toml`.

use crate::source::Source;
use crate::tokens::{attributes, in_word};

/// The words are put together from halves, or this file would complain about itself.
const NOTES: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

pub fn check(sources: &[Source]) -> Vec<String> {
    sources.iter().flat_map(check_file).collect()
}

fn check_file(source: &Source) -> Vec<String> {
    let mut found = notes(source);
    found.extend(switched_off(source));
    found.sort();
    found.into_iter().map(|(line, what)| format!("{}:{line}: {what}", source.path)).collect()
}

/// Finds them in code, comments and strings.
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

mod tests {
    use super::*;

    fn complaints(text: &str) -> Vec<String> {
        check(&[Source::new("src/a.rs", text)])
    }

    #[test]
    fn finished_code_passes() {
        let text = "#[derive(Debug)]\nstruct Ignore;\nfn allow(ignore: bool) {}\n";
        assert_eq!(complaints(text), Vec::<String>::new());
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
    fn ignored_tests_fail() {
        for text in ["#[ignore]", "#[ignore = \"slow\"]", "#[cfg_attr(slow, ignore)]"] {
            assert_eq!(complaints(&format!("#[test]\n{text}\nfn f() {{}}")).len(), 1, "{text}");
        }
    }
}
