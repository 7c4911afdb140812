//! Readers see plain values, which share their text with the state and write themselves as JSON.

use std::fmt::{self, Write};
use std::sync::Arc;

use crate::store::command::lease_path;
use crate::store::encoding::{Json, open, write_text};
use crate::store::state::Store;
use crate::store::tables::{Doc, Election, Key, Lifetime, Page, VoteCounts};
use crate::types::{Span, Text};

/// The object that the user was created with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserView {
    pub text: Text,
}

/// The object that the election was created with, and its result: `tally` and `votes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElectionView {
    election: Election,
    tally: VoteCounts,
}

/// A document's value, and its revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocView {
    /// The JSON in the form in which it was put, on one line.
    pub value: Text,
    rev: String,
    /// `None` for a document that stays until it is deleted.
    pub lifetime: Option<Arc<Lifetime>>,
}

/// `{"key","rev","value","ttl_ms"?,"with"?,"token"?,"expires_in_ms"?}`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocItem {
    pub key: Text,
    pub doc: DocView,
    /// The time until the document ends if it is not renewed. Only the leader knows it.
    pub expires_in: Option<Span>,
}

impl Store {
    pub fn user(&self, name: &str) -> Option<UserView> {
        self.users.get(name).map(|user| UserView { text: user.new.text.clone() })
    }

    pub fn users(&self, prefix: &str, after: Option<&str>, limit: usize) -> Page<UserView> {
        let (rows, next) = self.users.page(prefix, after, limit, |_, user| user.new.text.len());
        let items = rows.into_iter().map(|(_, user)| UserView { text: user.new.text.clone() }).collect();
        Page { items, next }
    }

    pub fn election(&self, name: &str) -> Option<ElectionView> {
        self.elections.get(name).map(|election| self.counted(election.clone()))
    }

    pub fn elections(&self, prefix: &str, after: Option<&str>, limit: usize) -> Page<ElectionView> {
        let (rows, next) = self.elections.page(prefix, after, limit, |_, election| election.new.text.len());
        let items = rows.into_iter().map(|(_, election)| self.counted(election)).collect();
        Page { items, next }
    }

    pub fn doc(&self, key: &str) -> Option<DocView> {
        self.docs.get(key).map(|doc| self.doc_view(doc))
    }

    pub(in crate::store) fn doc_view(&self, doc: &Doc) -> DocView {
        DocView { value: doc.value.clone(), rev: self.rev(doc.at), lifetime: doc.lifetime.clone() }
    }

    pub fn docs(&self, prefix: &str, after: Option<&str>, limit: usize) -> Page<DocItem> {
        let size = |key: &Text, doc: &Doc| key.len() + doc.value.len();
        let (rows, next) = self.docs.table().page(prefix, after, limit, size);
        let items = rows.into_iter().map(|(key, doc)| DocItem::new(key, self.doc_view(&doc))).collect();
        Page { items, next }
    }

    fn counted(&self, election: Election) -> ElectionView {
        let tally = self.votes.tally(&election.new.name).cloned().unwrap_or_default();
        ElectionView { election, tally }
    }
}

impl DocItem {
    pub fn new(key: Text, doc: DocView) -> DocItem {
        DocItem { key, doc, expires_in: None }
    }
}

impl DocView {
    /// The document's ttl, if it has one.
    pub fn ttl(&self) -> Option<Span> {
        self.lifetime.as_ref()?.ttl
    }

    /// The lease that the document ends with: `role/leader`.
    pub fn with(&self) -> Option<String> {
        let bond = self.lifetime.as_ref()?.with.as_ref()?;
        Some(lease_path(&bond.lease))
    }

    /// Opaque to clients: the index of the record that last changed the document, with its epoch in a
    /// mergeable state, or with its history if that is not the first (`Store::rev`).
    pub fn rev(&self) -> &str {
        &self.rev
    }
}

impl ElectionView {
    /// The number of voters.
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
        write!(out, ",\"rev\":\"{}\",\"value\":{}", self.doc.rev(), self.doc.value)?;
        self.doc.lifetime.iter().try_for_each(|lifetime| lifetime.write(out))?;
        self.expires_in.iter().try_for_each(|left| write!(out, ",\"expires_in_ms\":{}", left.0 / 1000))?;
        out.write_char('}')
    }
}

/// Results of a change, for subscribers of changes.
impl Store {
    /// The value of an entry of clients' data, as JSON on one line. It shares its text with the state.
    /// Any other table has no value to show: the feed reports changes of clients' data only.
    pub fn value(&self, key: &Key) -> Option<Text> {
        match key {
            Key::Doc(name) => self.docs.get(name).map(|doc| doc.value.clone()),
            Key::Election(name) => self.elections.get(name).map(|election| election.new.text.clone()),
            Key::User(name) => self.users.get(name).map(|user| user.new.text.clone()),
            Key::Vote(name) => self.votes.table().get(name).map(|vote| vote.value().into()),
            _ => None,
        }
    }

    /// The revision of an entry of clients' data.
    pub fn rev_of(&self, key: &Key) -> Option<Text> {
        let at = match key {
            Key::Doc(name) => self.docs.get(name)?.at,
            Key::Election(name) => self.elections.get(name)?.at,
            Key::User(name) => self.users.get(name)?.at,
            Key::Vote(name) => self.votes.table().get(name)?.at,
            _ => return None,
        };
        Some(self.rev(at).into())
    }
}
