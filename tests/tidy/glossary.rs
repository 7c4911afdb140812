//! The glossary has one row for each term, and lists no word that is used nowhere.

use std::collections::BTreeMap;

pub const GLOSSARY: &str = "docs/glossary.md";

/// Where a term must occur, apart from the glossary itself: in the documents, or in the code and its comments.
const USED_IN: [&str; 3] = ["docs/", "src/", "crates/"];

#[derive(Debug)]
struct Row<'a> {
    line: usize,
    term: &'a str,
    meaning: &'a str,
    older: &'a str,
}

pub fn check(glossary: Option<&str>, texts: &[(String, String)]) -> Vec<String> {
    let Some(glossary) = glossary else {
        return vec![format!("{GLOSSARY}:1: missing; write a table of `| term | what it is | older word |`")];
    };
    let rows = rows(glossary);
    let mut complaints = check_terms(&rows);
    complaints.extend(check_use(&rows, texts));
    complaints
}

fn rows(glossary: &str) -> Vec<Row<'_>> {
    let numbered = glossary.lines().enumerate();
    numbered.filter_map(|(number, line)| row(number + 1, line)).collect()
}

/// Returns None for any other line, and for the head of a table.
fn row(line: usize, text: &str) -> Option<Row<'_>> {
    let cells: Vec<_> = text.strip_prefix('|')?.strip_suffix('|')?.split('|').map(str::trim).collect();
    let [term, meaning, older] = cells[..] else { return None };
    let is_head = term == "term" || term.starts_with("---");
    (!is_head).then_some(Row { line, term, meaning, older })
}

/// Each term once, explained by a sentence that names it.
fn check_terms(rows: &[Row<'_>]) -> Vec<String> {
    let mut first = BTreeMap::new();
    let mut complaints = Vec::new();
    for Row { line, term, meaning, .. } in rows {
        if let Some(other) = first.insert(term.to_lowercase(), line) {
            complaints
                .push(format!("{GLOSSARY}:{line}: {term} stands on line {other} already; make them one"));
        }
        if !normal(meaning).contains(&normal(term)) || !meaning.ends_with('.') {
            complaints
                .push(format!("{GLOSSARY}:{line}: {term} is not in its sentence; write `A {term} is … .`"));
        }
    }
    if rows.is_empty() {
        complaints.push(format!("{GLOSSARY}:1: no row `| term | what it is | older word |` was found"));
    }
    complaints
}

/// A term that is used nowhere is no term, and an older word that no file uses needs no row.
fn check_use(rows: &[Row<'_>], texts: &[(String, String)]) -> Vec<String> {
    let others: Vec<_> =
        texts.iter().filter(|(path, _)| path != GLOSSARY && !path.starts_with("tests/tidy/")).collect();
    let used: String = others
        .iter()
        .filter(|(path, _)| USED_IN.iter().any(|folder| path.starts_with(folder)))
        .map(|(_, text)| normal(text))
        .collect();
    let mut complaints = Vec::new();
    for Row { line, term, older, .. } in rows {
        if !used.contains(&normal(term)) {
            complaints
                .push(format!("{GLOSSARY}:{line}: no document and no code uses {term}; remove the row"));
        }
        for word in older.split(',').map(|word| word.trim().trim_matches('`')).filter(|word| !word.is_empty())
        {
            if !others.iter().any(|(_, text)| text.contains(word)) {
                complaints
                    .push(format!("{GLOSSARY}:{line}: the older word {word} is used nowhere; remove it"));
            }
        }
    }
    complaints
}

/// In lower case, with hyphens, comment marks and runs of blanks as one blank: a term may be broken over two lines.
fn normal(text: &str) -> String {
    text.to_lowercase()
        .replace(['-', '/', '!', '`', '*'], " ")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

mod tests {
    use super::*;

    const GOOD: &str =
        "| term | what it is | older word |\n|---|---|---|\n| hand-over | A hand-over is it. | `given` |\n";

    fn complaints(glossary: &str) -> Vec<String> {
        let texts = [("docs/a.md", "The hand\nover."), ("src/a.rs", "fn given() {}"), (GLOSSARY, glossary)];
        let texts = texts.map(|(path, text)| (path.to_string(), text.to_string()));
        check(Some(glossary), &texts)
    }

    #[test]
    fn terms_that_are_used_pass() {
        assert_eq!(complaints(GOOD), Vec::<String>::new());
    }

    #[test]
    fn two_rows_of_one_term_fail() {
        let twice = format!("{GOOD}| Hand-over | A hand-over is that. | |\n");
        assert_eq!(
            complaints(&twice),
            [format!("{GLOSSARY}:4: Hand-over stands on line 3 already; make them one")]
        );
    }

    #[test]
    fn a_sentence_without_its_term_fails() {
        let bad = GOOD.replace("A hand-over is it.", "It is it.");
        assert_eq!(complaints(&bad).len(), 1);
        assert_eq!(complaints("# Glossary\n").len(), 1, "an empty glossary");
        assert_eq!(check(None, &[]).len(), 1, "no glossary");
    }

    #[test]
    fn what_is_used_nowhere_fails() {
        let unused = format!("{GOOD}| tie | A tie is one. | `bond` |\n");
        let expected = [
            format!("{GLOSSARY}:4: no document and no code uses tie; remove the row"),
            format!("{GLOSSARY}:4: the older word bond is used nowhere; remove it"),
        ];
        assert_eq!(complaints(&unused), expected);
    }
}
