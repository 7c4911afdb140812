//! Paths with their `use` groups written out: `a::{b, c::d}` is `a::b` and `a::c::d`.

use crate::tokens::{Token, text_at};

/// The words that may stand before a path that begins with `::`, and are no part of it.
const KEYWORDS: [&str; 14] = [
    "as", "break", "dyn", "else", "for", "if", "impl", "in", "let", "match", "mut", "return", "use", "where",
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    pub segments: Vec<String>,
    pub line: usize,
    /// The token that it starts at.
    pub at: usize,
}

impl Path {
    pub fn contains(&self, part: &[&str]) -> bool {
        self.segments.windows(part.len()).any(|window| window == part)
    }
}

/// Every path in the code; a lone word is a path of one segment.
pub fn paths(tokens: &[Token]) -> Vec<Path> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let starts = begins(tokens, at);
        at = if starts { walk(tokens, at, &[], &mut found) } else { at + 1 };
    }
    found
}

/// After `<T as Trait>::` comes the rest of a path whose beginning is not a name; after
/// `-> ::` comes a new one.
fn begins(tokens: &[Token], at: usize) -> bool {
    let before = |back: usize| at.checked_sub(back).map_or("", |at| text_at(tokens, at));
    let rest = before(1) == "::" && before(2) == ">" && !matches!(before(3), "-" | "=");
    tokens[at].is_word() && !rest && !KEYWORDS.contains(&text_at(tokens, at))
}

/// Adds the paths that start at `from`, below `prefix`, and returns where reading continues.
fn walk(tokens: &[Token], from: usize, prefix: &[String], found: &mut Vec<Path>) -> usize {
    let mut segments = prefix.to_vec();
    let mut at = from;
    loop {
        match text_at(tokens, at) {
            "{" => return group(tokens, at, &segments, found),
            // `a::{self}` is `a`.
            "self" if !segments.is_empty() => {}
            segment => segments.push(segment.to_string()),
        }
        at += 1;
        if text_at(tokens, at) != "::" || !joins(tokens, at + 1) {
            break;
        }
        at += 1;
    }
    found.push(Path { segments, line: tokens[at - 1].line, at: from });
    at
}

fn joins(tokens: &[Token], at: usize) -> bool {
    tokens.get(at).is_some_and(|token| token.is_word() || token.text == "{" || token.text == "*")
}

fn group(tokens: &[Token], open: usize, prefix: &[String], found: &mut Vec<Path>) -> usize {
    let mut at = open + 1;
    while at < tokens.len() && tokens[at].text != "}" {
        at = match text_at(tokens, at) {
            "as" => at + 2,
            _ if joins(tokens, at) => walk(tokens, at, prefix, found),
            _ => at + 1,
        };
    }
    at + 1
}

mod tests {
    use super::*;
    use crate::tokens::tokens;

    fn joined(text: &str) -> Vec<String> {
        let found = paths(&tokens(text)).into_iter();
        found.map(|path| path.segments.join("::")).filter(|path| path.contains("::")).collect()
    }

    #[test]
    fn paths_in_expressions() {
        assert_eq!(joined("let x: a::B<c::D> = e::f::<g::H>(&i);"), ["a::B", "c::D", "e::f", "g::H"]);
        assert_eq!(
            joined("<T as a::B>::c::d(::std::e); use ::f::g; fn h() -> ::i::j"),
            ["a::B", "std::e", "f::g", "i::j"]
        );
    }

    #[test]
    fn groups_are_written_out() {
        let text = "use a::{b, c::{d as e, f::*}, self, g::h,}; use {i::j, ::k::l};";
        assert_eq!(joined(text), ["a::b", "a::c::d", "a::c::f::*", "a::g::h", "i::j", "k::l"]);
    }

    #[test]
    fn a_self_in_a_group_is_the_group() {
        let found = paths(&tokens("a::b::{self, c}"));
        assert_eq!(found[0].segments, ["a", "b"]);
    }

    #[test]
    fn a_path_knows_its_line() {
        let found = paths(&tokens("use a::{\n  b,\n  c::d,\n};"));
        assert_eq!(found.iter().map(|path| path.line).collect::<Vec<_>>(), [2, 3]);
    }

    #[test]
    fn a_part_is_found_anywhere() {
        let path = &paths(&tokens("a::b::c"))[0];
        assert!(path.contains(&["b", "c"]) && !path.contains(&["a", "c"]));
    }
}
