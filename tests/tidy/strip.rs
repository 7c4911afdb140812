//! Separates code from comments, strings and characters, so that a check sees only the text that it is about.
//!
//! All unwanted text becomes blanks, and line ends stay: a position in the result has the line
//! that it has in the file.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Code,
    Comment,
    Text,
    Char,
}

/// Keeps the code alone.
pub fn code(text: &str) -> String {
    keep(text, |kind| kind == Kind::Code)
}

/// Keeps the text that is written for people or for output: comments and strings.
pub fn prose(text: &str) -> String {
    keep(text, |kind| matches!(kind, Kind::Comment | Kind::Text))
}

fn keep(text: &str, wanted: impl Fn(Kind) -> bool) -> String {
    let chars: Vec<char> = text.chars().collect();
    let shown = |(&c, kind): (&char, Kind)| if c == '\n' || wanted(kind) { c } else { ' ' };
    chars.iter().zip(kinds(&chars)).map(shown).collect()
}

fn kinds(chars: &[char]) -> Vec<Kind> {
    let mut kinds = Vec::with_capacity(chars.len());
    while kinds.len() < chars.len() {
        let at = kinds.len();
        let (kind, length) = piece(&chars[at..]);
        // An unterminated piece ends with the file; the compiler complains about it, not this test.
        kinds.resize((at + length).min(chars.len()), kind);
    }
    kinds
}

/// The kind and the length of the piece at the start of `rest`. It is never called inside a word that could
/// pass for a string prefix: the language allows no prefixes but its own.
fn piece(rest: &[char]) -> (Kind, usize) {
    match rest {
        ['/', '/', ..] => (Kind::Comment, line_comment(rest)),
        ['/', '*', ..] => (Kind::Comment, block_comment(rest)),
        ['\'', ..] => character(rest).map_or((Kind::Code, 1), |length| (Kind::Char, length)),
        _ => string(rest).map_or((Kind::Code, 1), |length| (Kind::Text, length)),
    }
}

fn line_comment(rest: &[char]) -> usize {
    rest.iter().position(|&c| c == '\n').unwrap_or(rest.len())
}

/// Block comments nest.
fn block_comment(rest: &[char]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        match rest[at..] {
            ['/', '*', ..] => (depth, at) = (depth + 1, at + 2),
            ['*', '/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

/// The length of a character literal; None for a lifetime, which has no closing quote.
fn character(rest: &[char]) -> Option<usize> {
    match rest {
        ['\'', '\\', _, tail @ ..] => {
            Some(tail.iter().position(|&c| c == '\'').map_or(rest.len(), |end| end + 4))
        }
        ['\'', inner, '\'', ..] if *inner != '\'' => Some(3),
        _ => None,
    }
}

/// The length of a string literal with its prefix: `"`, `b"`, `c"`, and the raw `r"`, `r#"`, `br"`, `cr"`.
fn string(rest: &[char]) -> Option<usize> {
    let quote = rest.iter().position(|c| !matches!(c, 'b' | 'c' | 'r' | '#'))?;
    if rest[quote] != '"' {
        return None;
    }
    let prefix: String = rest[..quote].iter().collect();
    let letters = prefix.trim_end_matches('#');
    let hashes = prefix.len() - letters.len();
    let body = &rest[quote + 1..];
    match letters {
        "" | "b" | "c" if hashes == 0 => Some(quote + 1 + plain_body(body)),
        "r" | "br" | "cr" => Some(quote + 1 + raw_body(body, hashes)),
        _ => None,
    }
}

/// The length up to and with the closing quote; a backslash escapes the character after it.
fn plain_body(body: &[char]) -> usize {
    let mut at = 0;
    while at < body.len() {
        match body[at] {
            '"' => return at + 1,
            '\\' => at += 2,
            _ => at += 1,
        }
    }
    body.len()
}

/// The length up to and with the closing quote and its hashes; there are no escapes.
fn raw_body(body: &[char], hashes: usize) -> usize {
    let mut end = vec!['"'];
    end.resize(hashes + 1, '#');
    let found = body.windows(end.len()).position(|window| window == end);
    found.map_or(body.len(), |at| at + end.len())
}

mod tests {
    use super::{code, prose};

    /// The words that remain; blanks do not matter.
    fn words(text: &str) -> String {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn line_comments_end_with_the_line() {
        assert_eq!(words(&code("a // b \"c\n d /// e")), "a d");
    }

    #[test]
    fn block_comments_nest() {
        assert_eq!(words(&code("a /* b /* c */ d */ e /**/ f")), "a e f");
        assert_eq!(words(&code("a /*/ b */ c")), "a c");
        assert_eq!(words(&code("a /* never closed")), "a");
    }

    #[test]
    fn strings_hide_their_content() {
        assert_eq!(words(&code(r#"a("b // \" c", d) e"#)), "a( , d) e");
        assert_eq!(words(&code(r#"a(b"\\") c"#)), "a( ) c");
        assert_eq!(words(&code("a \"b\n c\" d")), "a d");
    }

    #[test]
    fn raw_strings_end_with_their_hashes() {
        assert_eq!(words(&code(r##"a r"\" b r#"c " d"# e"##)), "a b e");
        assert_eq!(words(&code("a br##\"b \"# c\"## d")), "a d");
        assert_eq!(words(&code("let r#type = r; # \"x\" y")), "let r#type = r; # y");
    }

    #[test]
    fn lifetimes_are_code_and_characters_are_not() {
        assert_eq!(words(&code("f<'a, 'b>(x: &'a str, '\"', b)")), "f<'a, 'b>(x: &'a str, , b)");
        assert_eq!(words(&code(r"a '\'' b '\\' c '\u{1F600}' d '/' e")), "a b c d e");
        assert_eq!(words(&code("for 'r \"x\" '_ 'static")), "for 'r '_ 'static");
    }

    #[test]
    fn prose_is_comments_and_strings() {
        assert_eq!(words(&prose("a // b\n c(\"d\", 'e') /* f */")), "// b \"d\" /* f */");
    }

    #[test]
    fn lines_stay_where_they_are() {
        let text = "a /* b\n c */\n \"d\n\" e\n";
        let lines = |text: &str| text.matches('\n').count();
        assert_eq!((lines(&code(text)), lines(&prose(text))), (lines(text), lines(text)));
        assert_eq!(code("é \"é\" é"), "é     é");
    }
}
