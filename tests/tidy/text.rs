//! Text files look the same in every editor and diff.

const LINE_CHARS_MAX: usize = 160;

pub fn check(texts: &[(String, String)]) -> Vec<String> {
    texts.iter().flat_map(|(path, text)| check_file(path, text)).collect()
}

fn check_file(path: &str, text: &str) -> Vec<String> {
    let rust = path.ends_with(".rs");
    let mut complaints = Vec::new();
    for (number, line) in text.split('\n').enumerate() {
        let mut complain = |what: &str| complaints.push(format!("{path}:{}: {what}", number + 1));
        if line.ends_with(char::is_whitespace) {
            complain("blanks at the end of the line; remove them");
        }
        if line.contains('\t') && (rust || path.ends_with(".md")) {
            complain("a tab; write blanks, or \\t in a string");
        }
        let chars = line.chars().count();
        if rust && chars > LINE_CHARS_MAX {
            complain(&format!("{chars} characters, at most {LINE_CHARS_MAX}; break the line"));
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        let last = text.lines().count();
        complaints.push(format!("{path}:{last}: no newline at the end of the file; add it"));
    }
    complaints
}

mod tests {
    use super::*;

    fn complaints(path: &str, text: &str) -> Vec<String> {
        check(&[(path.to_string(), text.to_string())])
    }

    #[test]
    fn clean_text_passes() {
        assert_eq!(complaints("a.rs", "fn f() {\n\n    g()\n}\n"), Vec::<String>::new());
        assert_eq!(complaints("empty.txt", ""), Vec::<String>::new());
        assert_eq!(complaints("Makefile", "a:\n\tb\n"), Vec::<String>::new());
    }

    #[test]
    fn blanks_at_the_end_fail() {
        let expected = "a.toml:2: blanks at the end of the line; remove them";
        for text in ["a\nb \n", "a\nb\t\n", "a\n  \n", "a\nb\r\n"] {
            assert_eq!(complaints("a.toml", text), [expected], "{text:?}");
        }
    }

    #[test]
    fn a_missing_newline_fails() {
        assert_eq!(complaints("a.json", "a\nb"), ["a.json:2: no newline at the end of the file; add it"]);
    }

    #[test]
    fn tabs_fail() {
        let expected = |path| [format!("{path}:1: a tab; write blanks, or \\t in a string")];
        assert_eq!(complaints("a.rs", "\ta\n"), expected("a.rs"));
        assert_eq!(complaints("a.md", "a\tb\n"), expected("a.md"));
    }

    #[test]
    fn long_lines_fail() {
        let (fits, long) = ("é".repeat(160) + "\n", "é".repeat(161) + "\n");
        assert_eq!(complaints("a.rs", &fits), Vec::<String>::new());
        assert_eq!(complaints("a.rs", &long), ["a.rs:1: 161 characters, at most 160; break the line"]);
        assert_eq!(complaints("a.md", &long), Vec::<String>::new());
    }
}
