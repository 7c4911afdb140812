//! Comments and documents are written in plain sentences: a subject, a verb, a reason.
//!
//! Two counts for each room, and for each document: comment blocks that open with a clause in the place of a subject (`OPENERS`),
//! and words that readers stumble over (`DIALECT`). Both are bounds on a share, because a few such words are right where they
//! stand.

use std::collections::BTreeMap;

/// The first word of a block that has a clause in the place of a subject. A question may begin with any of them.
const OPENERS: [&str; 24] = [
    "whoever",
    "whomever",
    "whatever",
    "whom",
    "whose",
    "who",
    "what",
    "which",
    "of",
    "by",
    "none",
    "nobody",
    "nothing",
    "not",
    "how",
    "where",
    "whence",
    "beside",
    "besides",
    "until",
    "only",
    "anybody",
    "somebody",
    "everybody",
];

const DIALECT: [&str; 19] = [
    "whoever",
    "whomever",
    "whom",
    "nobody",
    "somebody",
    "anybody",
    "anew",
    "besides",
    "thereby",
    "wherever",
    "hither",
    "thence",
    "elder than",
    "of theirs",
    "of its own",
    "of their own",
    "on its way",
    "is told",
    "are told",
];

/// One block in 50, and three words in a thousand lines.
const OPENERS_PER_BLOCKS: (usize, usize) = (1, 50);
const WORDS_PER_LINES: (usize, usize) = (3, 1000);

/// The number of places that a complaint names.
const PLACES: usize = 10;

#[derive(Debug, Default)]
struct Room {
    blocks: usize,
    lines: usize,
    openers: Vec<String>,
    dialect: Vec<String>,
}

/// A run of comment lines, or a paragraph of a document.
#[derive(Debug)]
struct Block {
    line: usize,
    lines: usize,
    text: String,
}

pub fn check(texts: &[(String, String)]) -> Vec<String> {
    let mut rooms: BTreeMap<&str, Room> = BTreeMap::new();
    for (path, text) in texts {
        let blocks = match path.rsplit_once('.').map(|(_, ending)| ending) {
            Some("md") => paragraphs(text),
            Some("rs" | "go") => comments(text, &["//"]),
            Some("js" | "mjs" | "ts" | "css") => comments(text, &["//", "/*", "* "]),
            Some("py" | "sh" | "toml" | "yml") => comments(text, &["#"]),
            _ => continue,
        };
        let room = rooms.entry(room(path)).or_default();
        for block in blocks {
            room.add(path, &block);
        }
    }
    rooms.iter().flat_map(|(name, room)| room.complaints(name)).collect()
}

/// A document is a room by itself, as is each folder of the product, of the tests and of the clients.
fn room(path: &str) -> &str {
    let depth = match path {
        _ if path.ends_with(".md") => return path,
        _ if path.starts_with("crates/") => 3,
        _ => 2,
    };
    let end = path.match_indices('/').take(depth).last().map_or(0, |(at, _)| at);
    &path[..end]
}

impl Room {
    fn add(&mut self, path: &str, block: &Block) {
        self.blocks += 1;
        self.lines += block.lines;
        let place =
            || format!("  {path}:{}: {}", block.line, block.text.chars().take(110).collect::<String>());
        let words = words(after_label(&block.text));
        if !block.text.ends_with('?') && words.first().is_some_and(|word| OPENERS.contains(&word.as_str())) {
            self.openers.push(place());
        }
        let line = format!(" {} ", words.join(" "));
        let found = DIALECT.iter().map(|word| line.matches(&format!(" {word} ")).count()).sum();
        self.dialect.extend(std::iter::repeat_with(place).take(found));
    }

    fn complaints(&self, name: &str) -> Vec<String> {
        let name = if name.is_empty() { "the top folder" } else { name };
        let mut complaints = Vec::new();
        if is_over(self.openers.len(), self.blocks, OPENERS_PER_BLOCKS) {
            complaints.push(format!(
                "{name}: {} of {} blocks open with a clause in the place of a subject; begin with the thing that acts\n{}",
                self.openers.len(),
                self.blocks,
                places(&self.openers)
            ));
        }
        if is_over(self.dialect.len(), self.lines, WORDS_PER_LINES) {
            complaints.push(format!(
                "{name}: {} odd words in {} lines; write what a colleague would say\n{}",
                self.dialect.len(),
                self.lines,
                places(&self.dialect)
            ));
        }
        complaints
    }
}

/// One is always allowed: in a short document it would be a large share.
fn is_over(count: usize, of: usize, (most, each): (usize, usize)) -> bool {
    count > 1 && count * each > of * most
}

fn places(found: &[String]) -> String {
    found.iter().take(PLACES).cloned().collect::<Vec<_>>().join("\n")
}

/// The words in lower case, without what stands around them.
fn words(text: &str) -> Vec<String> {
    let is_inside = |c: char| c.is_alphanumeric() || matches!(c, '\'' | '_');
    text.split(|c| !is_inside(c)).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

fn comments(text: &str, marks: &[&str]) -> Vec<Block> {
    let comment = |line: &str| {
        let line = line.trim();
        let inside = marks.iter().find_map(|mark| line.strip_prefix(mark))?;
        let is_interpreter = line.starts_with("#!/");
        (!is_interpreter).then(|| inside.trim_matches(['/', '#', '!', '*', ' ']).to_string())
    };
    blocks(text.lines().map(comment))
}

/// Headings, tables and fenced blocks are not prose. Each item of a list is a paragraph.
fn paragraphs(text: &str) -> Vec<Block> {
    let mut is_fenced = false;
    blocks(text.lines().map(|line| {
        let line = line.trim();
        if line.starts_with("```") {
            is_fenced = !is_fenced;
            return None;
        }
        (!is_fenced && !line.starts_with(['#', '|', '>'])).then(|| line.to_string())
    }))
}

/// A label such as `**What it asks.**` is a heading, and the prose begins after it.
fn after_label(text: &str) -> &str {
    let label = text.strip_prefix("**").and_then(|rest| rest.split_once("**"));
    label.filter(|(label, rest)| label.ends_with('.') || rest.starts_with(':')).map_or(text, |(_, rest)| rest)
}

/// The text of an item of a list, without its mark.
fn item(line: &str) -> Option<&str> {
    let bullet = line.strip_prefix("- ").or_else(|| line.strip_prefix("* "));
    bullet.or_else(|| line.trim_start_matches(|c: char| c.is_ascii_digit()).strip_prefix(". "))
}

/// Joins lines up to an empty one, to one that is not prose, or to the next item of a list.
fn blocks(lines: impl Iterator<Item = Option<String>>) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut continues = false;
    for (number, line) in lines.enumerate() {
        let Some(line) = line.filter(|line| !line.is_empty()) else {
            continues = false;
            continue;
        };
        let item = item(&line);
        match found.last_mut().filter(|_| continues && item.is_none()) {
            Some(block) => {
                block.lines += 1;
                block.text.push(' ');
                block.text.push_str(&line);
            }
            None => {
                let text = item.map_or(line.clone(), str::to_string);
                found.push(Block { line: number + 1, lines: 1, text });
            }
        }
        continues = true;
    }
    found
}

mod tests {
    use super::*;

    fn complaints(path: &str, text: &str) -> Vec<String> {
        check(&[(path.to_string(), text.to_string())])
    }

    #[test]
    fn plain_sentences_pass() {
        let text = "/// A client waits here.\n/// It is answered.\nfn f() {}\n\n// Who leads?\n";
        assert_eq!(complaints("src/a/b.rs", text), Vec::<String>::new());
        assert_eq!(
            complaints("docs/a.md", "# Of nobody\n\nA node.\n\n```\nOf x\n```\n"),
            Vec::<String>::new()
        );
    }

    #[test]
    fn clauses_in_the_place_of_a_subject_fail() {
        let text = "// Of many.\nfn f() {}\n// Whoever\n// comes.\n// \n// Only here.\n";
        let expected = "src/a: 3 of 3 blocks open with a clause in the place of a subject; begin with the thing that acts\n  \
             src/a/b.rs:1: Of many.\n  src/a/b.rs:3: Whoever comes.\n  src/a/b.rs:6: Only here.";
        assert!(complaints("src/a/b.rs", text).contains(&expected.to_string()));
    }

    #[test]
    fn items_of_lists_are_paragraphs() {
        let text = "1. A node.\n2. Of it.\n3. Whatever\n   comes.\n";
        let complaint = &complaints("docs/a.md", text)[0];
        assert!(complaint.starts_with("docs/a.md: 2 of 3 blocks open"), "{complaint}");
        assert!(complaint.ends_with("  docs/a.md:2: Of it.\n  docs/a.md:3: Whatever comes."), "{complaint}");
    }

    #[test]
    fn odd_words_fail() {
        let text = "It asks nobody, and begins\nanew, as it is\ntold.\n";
        let complaints = complaints("docs/a.md", text);
        assert!(complaints[0].starts_with("docs/a.md: 3 odd words in 3 lines;"), "{complaints:?}");
        let text = "# is told, are told\nkey = 1 # are told\n";
        assert!(
            check(&[("a.toml".to_string(), text.to_string())])[0].starts_with("the top folder: 2 odd words")
        );
    }

    #[test]
    fn a_share_is_bounded_and_one_is_allowed() {
        let text = |good| "// A node.\n\n".repeat(good) + "// Of it.\n\n// By it.\n";
        assert_eq!(complaints("src/a/b.rs", "// Of it.\n"), Vec::<String>::new());
        assert_eq!(complaints("src/a/b.rs", &text(98)), Vec::<String>::new());
        assert_eq!(complaints("src/a/b.rs", &text(97)).len(), 1);
    }

    #[test]
    fn rooms_are_documents_and_folders() {
        for (path, name) in [
            ("docs/a.md", "docs/a.md"),
            ("src/http/a/b.rs", "src/http"),
            ("src/lib.rs", "src"),
            ("crates/core/src/a/b.rs", "crates/core/src"),
            ("build.rs", ""),
        ] {
            assert_eq!(room(path), name);
        }
    }
}
