//! JSON whose values keep their position, so that a mistake that is found long after parsing still has its line.
//!
//! The values are slices of the text, as serde_json delimits them. The offset of a slice in the text is the position.

use std::fmt;

use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::Value as Json;
use serde_json::value::RawValue;

use super::place::Spot;
use super::wrong::one_line;

/// A text without its comments: `//`, `/* */` and `#` are replaced by blanks, byte by byte, so that every position
/// stays.
#[derive(Debug)]
pub struct Document<'a> {
    text: &'a str,
    bare: String,
    /// The position of a slash that does not begin a comment.
    lone_slash: Option<usize>,
}

/// One value of a document.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    raw: &'a RawValue,
    root: &'a str,
}

/// The entries of an object in their order, duplicates included.
struct Entries<'a>(Vec<(String, &'a RawValue)>);

impl<'a> Document<'a> {
    pub fn new(text: &'a str) -> Document<'a> {
        let mut bare = text.as_bytes().to_vec();
        let stripped = json_strip_comments::strip_slice(&mut bare);
        // The removal of comments stops at the first lone slash, which is then the last byte that was replaced by a
        // blank.
        let last_blanked = || (0..bare.len()).rev().find(|&at| bare[at] != text.as_bytes()[at]);
        let lone_slash = stripped.err().map(|_| last_blanked().unwrap_or(0));
        Document { text, lone_slash, bare: String::from_utf8_lossy(&bare).into_owned() }
    }

    pub fn root(&self) -> Result<Item<'_>, (Spot, String)> {
        if let Some(at) = self.lone_slash {
            return Err((Spot::of(self.text, at), "a single slash; a comment starts with //".to_string()));
        }
        let parsed = serde_json::from_str::<&RawValue>(&self.bare);
        let root = &self.bare;
        parsed.map(|raw| Item { raw, root }).map_err(|error| self.explain(&error))
    }

    pub fn spot(&self, item: Item<'_>) -> Spot {
        Spot::of(self.text, item.offset())
    }

    /// The parser counts lines in the bare text, where a comment over several lines is one line of blanks.
    fn explain(&self, error: &serde_json::Error) -> (Spot, String) {
        let before: usize = self.bare.split_inclusive('\n').take(error.line().max(1) - 1).map(str::len).sum();
        let spot = Spot::of(self.text, before + error.column().max(1) - 1);
        let text = error.to_string();
        (spot, one_line(text.split(" at line ").next().unwrap_or(&text)))
    }
}

impl<'a> Item<'a> {
    fn offset(self) -> usize {
        self.raw.get().as_ptr() as usize - self.root.as_ptr() as usize
    }

    /// Returns `None` if the value is not an object.
    pub fn entries(self) -> Option<Vec<(String, Item<'a>)>> {
        let Entries(entries) = serde_json::from_str(self.raw.get()).ok()?;
        Some(entries.into_iter().map(|(key, raw)| (key, Item { raw, ..self })).collect())
    }

    /// Returns `None` if the value is not a list.
    pub fn elements(self) -> Option<Vec<Item<'a>>> {
        let elements: Vec<&'a RawValue> = serde_json::from_str(self.raw.get()).ok()?;
        Some(elements.into_iter().map(|raw| Item { raw, ..self }).collect())
    }

    /// The value. It is null if the text can be delimited but not represented, such as a number beyond all bounds.
    pub fn value(self) -> Json {
        serde_json::from_str(self.raw.get()).unwrap_or(Json::Null)
    }
}

impl Spot {
    /// The line and column of an offset. An offset beyond the text gives the end of the text.
    pub(super) fn of(text: &str, offset: usize) -> Spot {
        let offset = (0..=offset.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        let before = &text[..offset];
        let line = before.rsplit('\n').next().unwrap_or(before);
        Spot { line: before.matches('\n').count() + 1, column: line.chars().count() + 1 }
    }
}

impl<'de> Deserialize<'de> for Entries<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Entries<'de>, D::Error> {
        deserializer.deserialize_map(EntriesVisitor)
    }
}

struct EntriesVisitor;

impl<'de> Visitor<'de> for EntriesVisitor {
    type Value = Entries<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries<'de>, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Entries(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_know_their_lines() {
        let text = "// é\n{ /* over\n two lines */ \"é\": [1,\n  {\"b\": \"x\"}], # c\n}\n";
        let document = Document::new(text);
        let root = document.root().unwrap();
        assert_eq!(document.spot(root), Spot { line: 2, column: 1 });
        let (key, list) = root.entries().unwrap().remove(0);
        assert_eq!((key.as_str(), document.spot(list)), ("é", Spot { line: 3, column: 20 }));
        let object = list.elements().unwrap()[1];
        assert_eq!(document.spot(object), Spot { line: 4, column: 3 });
        assert_eq!(document.spot(object.entries().unwrap()[0].1), Spot { line: 4, column: 9 });
    }

    #[test]
    fn syntax_errors_know_theirs() {
        let (spot, why) = Document::new("{ /* a\n\n */\n \"b\": 1 2}").root().unwrap_err();
        assert_eq!((spot, why.as_str()), (Spot { line: 4, column: 9 }, "expected `,` or `}`"));
        for text in ["", "{", "{\"a", "{} {}", "/* never closed", "\u{0}", "\"\\ud800\""] {
            let document = Document::new(text);
            assert!(document.root().map(|item| item.value() == Json::Null).unwrap_or(true), "{text}");
        }
    }

    #[test]
    fn a_lone_slash_is_no_comment() {
        let (spot, _) = Document::new("{ // a\n \"b\": 4 / 2 // c\n}").root().unwrap_err();
        assert_eq!(spot, Spot { line: 2, column: 9 });
    }

    #[test]
    fn depth_is_no_danger() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let document = Document::new(&deep);
        let root = document.root().unwrap();
        assert_eq!(root.elements().unwrap().len(), 1);
        assert_eq!(root.value(), Json::Null);
    }
}
