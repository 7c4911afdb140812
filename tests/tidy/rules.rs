//! The numbered rules of docs/protocol.md and the code that cites them resolve both ways.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::Source;
use crate::tokens::in_word;

pub const PROTOCOL: &str = "docs/protocol.md";

/// The samples of this test are not citations.
const SAMPLES: &str = "tests/tidy/";

const FORMS: &str = "`#### P7. name` or `**I7 name.** text` at the start of a line";

/// `P` for a rule or `I` for an invariant, and the number.
type Rule = (char, usize);

#[derive(Debug)]
struct Citation {
    rule: Rule,
    path: String,
    line: usize,
}

pub fn check(protocol: Option<&str>, sources: &[Source]) -> Vec<String> {
    let Some(protocol) = protocol else {
        return vec![format!("{PROTOCOL}:1: missing; write the rules and invariants, each as {FORMS}")];
    };
    let definitions = definitions(protocol);
    let citations = citations(sources);
    let mut complaints = check_numbers(&definitions);
    complaints.extend(check_cited(&definitions, &citations));
    complaints.extend(check_defined(&definitions, &citations));
    complaints
}

/// Each number occurs once, and none is left out.
fn check_numbers(definitions: &[(Rule, usize)]) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut first_lines = BTreeMap::new();
    for &(rule, line) in definitions {
        let first = *first_lines.entry(rule).or_insert(line);
        if first != line {
            let name = name(rule);
            complaints
                .push(format!("{PROTOCOL}:{line}: {name} is defined on line {first} already; renumber"));
        }
    }
    for kind in ['P', 'I'] {
        let numbers = first_lines.iter().filter(|((of, _), _)| *of == kind);
        let misplaced = numbers.clone().zip(1..).find(|((rule, _), due)| rule.1 != *due);
        if let Some(((&rule, line), due)) = misplaced {
            let (name, due) = (name(rule), name((kind, due)));
            complaints.push(format!("{PROTOCOL}:{line}: {name} where {due} is due; leave no gap"));
        }
        if numbers.count() == 0 {
            complaints.push(format!("{PROTOCOL}:1: no {kind} is defined; write {FORMS}"));
        }
    }
    complaints
}

fn check_cited(definitions: &[(Rule, usize)], citations: &[Citation]) -> Vec<String> {
    let mut complaints = Vec::new();
    for &(rule, line) in definitions {
        let cited_from =
            |folder| citations.iter().any(|cited| cited.rule == rule && cited.path.starts_with(folder));
        let at = format!("{PROTOCOL}:{line}: {}", name(rule));
        if !cited_from("src/") && !cited_from("crates/") {
            complaints
                .push(format!("{at} is not cited from src/; cite it in a comment where the code keeps it"));
        }
        if rule.0 == 'I' && !cited_from("tests/") {
            complaints.push(format!("{at} is not cited from tests/; cite it where a test checks it"));
        }
    }
    complaints
}

fn check_defined(definitions: &[(Rule, usize)], citations: &[Citation]) -> Vec<String> {
    let defined: BTreeSet<_> = definitions.iter().map(|(rule, _)| *rule).collect();
    let complaint = |Citation { rule, path, line }: &Citation| {
        format!(
            "{path}:{line}: {} is not defined in {PROTOCOL}; correct it or define it as {FORMS}",
            name(*rule)
        )
    };
    citations.iter().filter(|cited| !defined.contains(&cited.rule)).map(complaint).collect()
}

/// The rules with their lines, in the order of the document. Fenced blocks show code and define nothing.
fn definitions(protocol: &str) -> Vec<(Rule, usize)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (number, line) in protocol.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            found.extend(definition(line).map(|rule| (rule, number + 1)));
        }
    }
    found
}

/// A bold lead without the full stop, as in `**P7** says`, is a mention.
fn definition(line: &str) -> Option<Rule> {
    let bold = line.strip_prefix("**").and_then(|rest| rest.split_once("**"));
    let lead = match bold {
        Some((lead, _)) => lead.strip_suffix('.')?,
        None => line.strip_prefix("###")?.trim_start_matches('#').strip_prefix(' ')?,
    };
    let word = lead.split(|c| !in_word(c)).next()?;
    let ends = matches!(lead[word.len()..].chars().next(), None | Some(' ' | '.' | ':'));
    rule(word).filter(|_| ends)
}

fn citations(sources: &[Source]) -> Vec<Citation> {
    let mut found = Vec::new();
    for source in sources.iter().filter(|source| !source.path.starts_with(SAMPLES)) {
        for (number, line) in source.prose().lines().enumerate() {
            for rule in line.split(|c| !in_word(c)).filter_map(rule) {
                found.push(Citation { rule, path: source.path.clone(), line: number + 1 });
            }
        }
    }
    found
}

/// `P7` or `I12`: one or two digits, the first not zero.
fn rule(word: &str) -> Option<Rule> {
    let kind = word.chars().next().filter(|kind| matches!(kind, 'P' | 'I'))?;
    let digits = &word[1..];
    let plain = digits.len() <= 2 && !digits.starts_with('0') && digits.chars().all(|c| c.is_ascii_digit());
    Some((kind, digits.parse().ok().filter(|_| plain)?))
}

fn name((kind, number): Rule) -> String {
    format!("{kind}{number}")
}

mod tests {
    use super::*;

    const GOOD: &str = "# Protocol\n### P1 · elders first\n**P2.** Text.\n### I1\n**I2 one leader.** Text.\n\
                        **P1** and **I1** are mentioned.\n```\n### P9\n```\n";

    fn code(cited: &str, tested: &str) -> Vec<Source> {
        let src = Source::new("src/a.rs", &format!("// {cited}\nlet P8 = 'P';\n"));
        let tests = Source::new("tests/sim/main.rs", &format!("const X: &str = \"{tested}\";\n"));
        vec![src, tests, Source::new("tests/tidy/rules.rs", "// P77\n")]
    }

    fn complaints(protocol: &str, cited: &str, tested: &str) -> Vec<String> {
        check(Some(protocol), &code(cited, tested))
    }

    #[test]
    fn numbers_that_resolve_pass() {
        assert_eq!(complaints(GOOD, "P1, P2 (I1) I2", "I1 I2 P100 P0 IP1 P1x"), Vec::<String>::new());
    }

    #[test]
    fn a_missing_document_fails() {
        assert!(check(None, &[])[0].starts_with("docs/protocol.md:1: missing"));
        assert_eq!(complaints("# Protocol\n", "", "").len(), 2);
    }

    #[test]
    fn an_undefined_number_fails() {
        let found = complaints(GOOD, "P1 P2 I1 I2 P3", "I1 I2 I9");
        assert!(found[0].starts_with("src/a.rs:1: P3 is not defined"), "{found:?}");
        assert!(found[1].starts_with("tests/sim/main.rs:1: I9 is not defined"), "{found:?}");
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn an_uncited_number_fails() {
        let found = complaints(GOOD, "P1 I1 I2", "P2 I2");
        assert!(found[0].starts_with("docs/protocol.md:3: P2 is not cited from src/"), "{found:?}");
        assert!(found[1].starts_with("docs/protocol.md:4: I1 is not cited from tests/"), "{found:?}");
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn a_number_defined_twice_fails() {
        let found = complaints(&format!("{GOOD}#### P2: again\n"), "P1 P2 I1 I2", "I1 I2");
        assert_eq!(found, ["docs/protocol.md:10: P2 is defined on line 3 already; renumber"]);
    }

    #[test]
    fn a_gap_fails() {
        let found = complaints(&format!("{GOOD}### P4 late\n"), "P1 P2 P4 I1 I2", "I1 I2");
        assert_eq!(found, ["docs/protocol.md:10: P4 where P3 is due; leave no gap"]);
    }

    #[test]
    fn the_forms_of_a_definition() {
        let forms = ["### P7 · name", "### P7", "#### P7: name", "**P7.** text", "**P7 name.** text"];
        assert!(forms.iter().all(|line| definition(line) == Some(('P', 7))));
        let others =
            ["P7. text", "**P7** says", "## P7 to P9", "### P7, P8", "### About P7", "**P07.**", "- P7."];
        assert!(others.iter().all(|line| definition(line).is_none()));
    }
}
