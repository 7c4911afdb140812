//! What readers are shown: plain values that share their text with the state and write themselves as JSON.

use std::fmt::{self, Write};

use super::json::{Json, open, write_list, write_text};
use super::rows::{Doc, Election};
use super::state::Store;
use super::votes::Tally;
use crate::types::Text;

/// A part of a list, and the name to go on after if there is more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    pub items: Vec<T>,
    pub next: Option<Text>,
}

/// The object that the user was created with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserView {
    pub text: Text,
}

/// The object that the election was created with, and what it came to: `tally` and `votes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElectionView {
    election: Election,
    tally: Tally,
}

/// A document's value, and its revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocView {
    /// The JSON as it was put, on one line.
    pub value: Text,
    rev: String,
}

/// `{"key","rev","value"}`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocItem {
    pub key: Text,
    pub doc: DocView,
}

impl Store {
    pub fn user(&self, name: &str) -> Option<UserView> {
        self.users.get(name).map(|user| UserView { text: user.new.text.clone() })
    }

    pub fn users(&self, after: Option<&str>, limit: usize) -> Page<UserView> {
        let (rows, next) = self.users.page("", after, limit, |_, user| user.new.text.len());
        let items = rows.into_iter().map(|(_, user)| UserView { text: user.new.text.clone() }).collect();
        Page { items, next }
    }

    pub fn election(&self, name: &str) -> Option<ElectionView> {
        self.elections.get(name).map(|election| self.counted(election.clone()))
    }

    pub fn elections(&self, after: Option<&str>, limit: usize) -> Page<ElectionView> {
        let (rows, next) = self.elections.page("", after, limit, |_, election| election.new.text.len());
        let items = rows.into_iter().map(|(_, election)| self.counted(election)).collect();
        Page { items, next }
    }

    pub fn doc(&self, key: &str) -> Option<DocView> {
        self.docs.get(key).map(|doc| self.doc_view(doc))
    }

    pub(super) fn doc_view(&self, doc: &Doc) -> DocView {
        DocView { value: doc.value.clone(), rev: self.rev(doc.at) }
    }

    pub fn docs(&self, prefix: &str, after: Option<&str>, limit: usize) -> Page<DocItem> {
        let size = |key: &Text, doc: &Doc| key.len() + doc.value.len();
        let (rows, next) = self.docs.page(prefix, after, limit, size);
        let items = rows.into_iter().map(|(key, doc)| DocItem { key, doc: self.doc_view(&doc) }).collect();
        Page { items, next }
    }

    fn counted(&self, election: Election) -> ElectionView {
        let tally = self.votes.tally(&election.new.name).cloned().unwrap_or_default();
        ElectionView { election, tally }
    }
}

impl DocView {
    /// Opaque to clients: the index of the record that last changed it, with its epoch where sides are told apart.
    pub fn rev(&self) -> &str {
        &self.rev
    }
}

impl ElectionView {
    /// How many have voted.
    pub fn votes(&self) -> u64 {
        self.tally.votes
    }

    /// Every choice with its votes, in the order in which the choices were given.
    pub fn tally(&self) -> impl Iterator<Item = (&Text, u64)> {
        let choices = self.election.new.choices.iter();
        choices.map(|choice| (choice, self.tally.count(choice).unwrap_or(0)))
    }
}

impl Json for UserView {
    fn write_json(&self, out: &mut dyn Write) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl Json for ElectionView {
    fn write_json(&self, out: &mut dyn Write) -> fmt::Result {
        out.write_str(open(&self.election.new.text))?;
        out.write_str(",\"tally\":{")?;
        for (number, (choice, count)) in self.tally().enumerate() {
            out.write_str(if number > 0 { "," } else { "" })?;
            write_text(out, choice)?;
            write!(out, ":{count}")?;
        }
        write!(out, "}},\"votes\":{}}}", self.votes())
    }
}

impl Json for DocItem {
    fn write_json(&self, out: &mut dyn Write) -> fmt::Result {
        out.write_str("{\"key\":")?;
        write_text(out, &self.key)?;
        write!(out, ",\"rev\":\"{}\",\"value\":{}}}", self.doc.rev(), self.doc.value)
    }
}

/// `{"items","next"}`
impl<T: Json> Json for Page<T> {
    fn write_json(&self, out: &mut dyn Write) -> fmt::Result {
        out.write_str("{\"items\":")?;
        write_list(out, &self.items, |out, item| item.write_json(out))?;
        out.write_str(",\"next\":")?;
        match &self.next {
            Some(next) => write_text(out, next)?,
            None => out.write_str("null")?,
        }
        out.write_char('}')
    }
}
