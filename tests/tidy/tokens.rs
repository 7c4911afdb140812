//! Words and punctuation with their lines, and the few structural questions that the checks ask about them.

use std::ops::Range;

use crate::strip;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// A word, a `::`, or one other character.
    pub text: String,
    pub line: usize,
}

impl Token {
    pub fn is_word(&self) -> bool {
        self.text.starts_with(in_word)
    }
}

pub fn in_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

pub fn tokens(text: &str) -> Vec<Token> {
    let mut found = Vec::new();
    for (number, line) in strip::code(text).lines().enumerate() {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let length = match first {
                c if in_word(c) => rest.find(|c| !in_word(c)).unwrap_or(rest.len()),
                ':' if rest.starts_with("::") => 2,
                c => c.len_utf8(),
            };
            let (token, tail) = rest.split_at(length);
            found.push(Token { text: token.to_string(), line: number + 1 });
            rest = tail.trim_start();
        }
    }
    found
}

/// The text at `at`; beyond the end an empty one, which equals no token.
pub fn text_at(tokens: &[Token], at: usize) -> &str {
    tokens.get(at).map_or("", |token| &token.text)
}

/// The place at which the bracket that opens at `open` closes.
pub fn closing(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    tokens.len().saturating_sub(1)
}

/// The last token of the item or field that starts at `start`: the end of its block, or its `;` or `,`.
pub fn item_end(tokens: &[Token], start: usize) -> usize {
    let (mut at, mut angles, mut bounds) = (start, 0, false);
    while at < tokens.len() {
        match tokens[at].text.as_str() {
            "{" if angles == 0 => return closing(tokens, at),
            "{" | "(" | "[" => at = closing(tokens, at),
            "<" => angles += 1,
            ">" if !matches!(text_at(tokens, at.wrapping_sub(1)), "-" | "=") => angles -= 1,
            ";" => return at,
            "where" => bounds = true,
            "," if angles == 0 && !bounds => return at,
            "}" | ")" | "]" => return at.saturating_sub(1).max(start),
            _ => {}
        }
        at += 1;
    }
    tokens.len().saturating_sub(1)
}

/// The attributes, each from its `#` to beyond its `]`.
pub fn attributes(tokens: &[Token]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        let inner = usize::from(text_at(tokens, at + 1) == "!");
        if tokens[at].text == "#" && text_at(tokens, at + 1 + inner) == "[" {
            found.push(at..closing(tokens, at + 1 + inner) + 1);
        }
    }
    found
}

/// For each token, the number of `mod name { … }` of this file that contain it.
pub fn inline_depths(tokens: &[Token]) -> Vec<usize> {
    let mut depths = vec![0; tokens.len()];
    for at in 0..tokens.len() {
        if tokens[at].text == "mod" && text_at(tokens, at + 2) == "{" {
            let end = closing(tokens, at + 2);
            depths[at + 2..end].iter_mut().for_each(|depth| *depth += 1);
        }
    }
    depths
}

mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        tokens(text).into_iter().map(|token| token.text).collect()
    }

    fn item(text: &str) -> String {
        let found = tokens(text);
        texts(text)[..=item_end(&found, 0)].join(" ")
    }

    #[test]
    fn tokens_are_words_double_colons_and_characters() {
        assert_eq!(texts("a::b_1: x->y"), ["a", "::", "b_1", ":", "x", "-", ">", "y"]);
        assert_eq!(tokens("a\n\n b").last().map(|token| token.line), Some(3));
    }

    #[test]
    fn an_item_ends_with_its_block_or_its_sign() {
        assert_eq!(item("fn f<A, B>(a: A) -> B { x } fn g"), "fn f < A , B > ( a : A ) - > B { x }");
        assert_eq!(item("fn f<A>() where A: B, C: D {} fn g"), "fn f < A > ( ) where A : B , C : D { }");
        assert_eq!(item("fn f(a: A) -> B<{ C }, 2> { x } fn g"), "fn f ( a : A ) - > B < { C } , 2 > { x }");
        assert_eq!(item("mod a; mod b"), "mod a ;");
        assert_eq!(item("pub a: Map<K, V>, pub b: C }"), "pub a : Map < K , V > ,");
        assert_eq!(item("pub last: C } fn g() {}"), "pub last : C");
    }

    #[test]
    fn attributes_are_found_whole() {
        let found = tokens("#![a(b)] #[c] struct D;");
        let ranges: Vec<_> = attributes(&found);
        assert_eq!(ranges, [0..8, 8..12]);
    }

    #[test]
    fn depth_counts_inline_modules() {
        let found = tokens("a mod b { c mod d { e } } f");
        let depths = inline_depths(&found);
        let depth_of = |name| depths[found.iter().position(|token| token.text == name).unwrap()];
        assert_eq!(["a", "c", "e", "f"].map(depth_of), [0, 1, 2, 0]);
    }
}
