//! The product reads every switch for a known bug: a mutant that no code reads proves nothing.

use crate::paths::paths;
use crate::source::Source;
use crate::tokens::{Token, closing, text_at};

const DEFINITION: &str = "crates/core/src/protocol/mutant.rs";

pub fn check(sources: &[Source]) -> Vec<String> {
    let definition = sources.iter().find(|source| source.path == DEFINITION);
    let variants = definition.map(|source| variants(&source.tokens)).unwrap_or_default();
    if variants.is_empty() {
        return vec![format!(
            "{DEFINITION}:1: no `enum Mutant` with variants; write it, or correct the path here"
        )];
    }
    let in_product = |source: &&Source| source.path.starts_with("src/") || source.path.starts_with("crates/");
    let users = sources.iter().filter(in_product).filter(|source| source.path != DEFINITION);
    let used: Vec<_> = users.flat_map(|source| paths(&source.tokens)).collect();
    let unused = |variant: &&Token| !used.iter().any(|path| path.contains(&["Mutant", &variant.text]));
    let complaint = |Token { text, line }: &Token| {
        format!(
            "{DEFINITION}:{line}: Mutant::{text} is read nowhere in the product; read it there or remove it"
        )
    };
    variants.iter().filter(unused).map(complaint).collect()
}

fn variants(tokens: &[Token]) -> Vec<Token> {
    let is_enum = |at: &usize| tokens[*at].text == "enum" && text_at(tokens, at + 1) == "Mutant";
    let Some(start) = (0..tokens.len()).find(is_enum) else {
        return Vec::new();
    };
    let end = closing(tokens, start + 2);
    let mut found = Vec::new();
    let mut at = start + 3;
    while at < end {
        if tokens[at].text == "#" {
            at = closing(tokens, at + 1) + 1;
            continue;
        }
        found.push(tokens[at].clone());
        at = variant_end(tokens, at) + 1;
    }
    found
}

/// The comma after the variant, its fields and its number.
fn variant_end(tokens: &[Token], start: usize) -> usize {
    let mut at = start;
    while at < tokens.len() && tokens[at].text != "," {
        at = if matches!(text_at(tokens, at), "(" | "{" | "[") { closing(tokens, at) + 1 } else { at + 1 };
    }
    at
}

mod tests {
    use super::*;

    const ENUM: &str = "/// Bugs.\n#[derive(Debug)]\npub enum Mutant {\n    /// One, two.\n    #[doc(hidden)]\n    First,\n\
                        \n    Second(u8, u8),\n    Third { a: u8 },\n    Fourth = 1 << 4,\n    Fifth\n}\n";

    fn complaints(definition: &str, user: &str) -> Vec<String> {
        check(&[Source::new(DEFINITION, definition), Source::new("src/driver/mod.rs", user)])
    }

    #[test]
    fn variants_are_found_with_their_lines() {
        let found = variants(&Source::new(DEFINITION, ENUM).tokens);
        let found: Vec<_> = found.iter().map(|token| (token.text.as_str(), token.line)).collect();
        assert_eq!(found, [("First", 6), ("Second", 8), ("Third", 9), ("Fourth", 10), ("Fifth", 11)]);
    }

    #[test]
    fn used_mutants_pass() {
        let user =
            "use p::Mutant::{First, Second};\nf(Mutant::Third { a: 1 }, p::Mutant::Fourth, Mutant::Fifth);";
        assert_eq!(complaints(ENUM, user), Vec::<String>::new());
    }

    #[test]
    fn an_unused_mutant_fails() {
        let user = "f(Mutant::First, Mutant::Second, Mutant::Third, Mutant::Fifth); // Mutant::Fourth";
        let own = format!("{ENUM}const X: Mutant = Mutant::Fourth;\n");
        let expected = "crates/core/src/protocol/mutant.rs:10: Mutant::Fourth is read nowhere in the product; read it there or remove it";
        assert_eq!(complaints(&own, user), [expected]);
    }

    #[test]
    fn a_missing_enum_fails() {
        assert!(check(&[])[0].starts_with("crates/core/src/protocol/mutant.rs:1: no `enum Mutant`"));
        assert_eq!(complaints("pub enum Mutant {}", "").len(), 1);
    }
}
