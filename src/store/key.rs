//! The names of entries: what a snapshot is sorted by, and what a change is known by.

use std::fmt::Write;

use super::json::write_text;
use crate::types::{Epoch, NodeId, Position, Text};

/// The tables, in the order of their names.
pub const TABLES: [&str; 5] = ["call", "doc", "election", "user", "vote"];

/// One entry of the state. Ordered as in a snapshot: by table, then by the bytes of the name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// An idempotency key's hash.
    Call(u128),
    Doc(Text),
    Election(Text),
    User(Text),
    /// `["election","voter"]`, see `ballot`.
    Vote(Text),
}

impl Key {
    pub fn table(&self) -> &'static str {
        match self {
            Key::Call(_) => "call",
            Key::Doc(_) => "doc",
            Key::Election(_) => "election",
            Key::User(_) => "user",
            Key::Vote(_) => "vote",
        }
    }

    pub fn name(&self) -> String {
        match self {
            Key::Call(key) => format!("{key:032x}"),
            Key::Doc(name) | Key::Election(name) | Key::User(name) | Key::Vote(name) => name.to_string(),
        }
    }
}

/// The name of a vote: JSON, because names may hold anything that could stand between them.
pub fn ballot(election: &str, voter: &str) -> Text {
    let mut name = ballots_of(election);
    write_text(&mut name, voter).expect("a string takes everything");
    name.push(']');
    name.into()
}

/// What the names of all votes of an election begin with, and no others.
pub fn ballots_of(election: &str) -> String {
    let mut prefix = String::with_capacity(2 * election.len() + 8);
    prefix.push('[');
    write_text(&mut prefix, election).expect("a string takes everything");
    prefix.push(',');
    prefix
}

/// Election and voter.
pub fn ballot_parts(name: &str) -> Option<(String, String)> {
    let parts: (String, String) = serde_json::from_str(name).ok()?;
    (*ballot(&parts.0, &parts.1) == *name).then_some(parts)
}

pub fn call_named(name: &str) -> Option<u128> {
    let key = u128::from_str_radix(name, 16).ok()?;
    (Key::Call(key).name() == name).then_some(key)
}

/// `7.1@12`
pub fn position_in(text: &str) -> Option<Position> {
    let (epoch, index) = text.split_once('@')?;
    let (counter, leader) = epoch.split_once('.')?;
    let epoch = Epoch::new(counter.parse().ok()?, NodeId(leader.parse().ok()?));
    Some(Position::new(epoch, index.parse().ok()?))
}

/// An entry's value: what it says, and the record that said so.
pub fn written(at: Position, value: &str) -> String {
    const REST: usize = 64;
    let mut text = String::with_capacity(value.len() + REST);
    write!(text, "{{\"at\":\"{at}\",\"value\":{value}}}").expect("a string takes everything");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ballots_are_unambiguous() {
        let names = [("a", "b"), ("a\",\"", "b"), ("a", "\",\"b"), ("a,b", ""), ("é\\", "]")];
        for (election, voter) in names {
            let name = ballot(election, voter);
            assert_eq!(ballot_parts(&name), Some((election.into(), voter.into())));
            let begins = |other: &(&str, &str)| name.starts_with(&ballots_of(other.0));
            assert!(names.iter().filter(|other| begins(other)).all(|other| other.0 == election));
        }
        assert_eq!(&*ballot("election1", "tester"), "[\"election1\",\"tester\"]");
        assert_eq!(ballot_parts("[\"a\", \"b\"]"), None);
    }

    #[test]
    fn keys_sort_as_their_names() {
        let text = |name: &str| Text::from(name);
        let mut keys = [
            Key::Vote(ballot("a", "b")),
            Key::Vote(ballot("a ", "b")),
            Key::User(text("a")),
            Key::Doc(text("é")),
            Key::Doc(text("z/1")),
            Key::Call(u128::MAX),
            Key::Call(16),
        ];
        keys.sort();
        let names = keys.iter().map(|key| (key.table(), key.name()));
        assert!(names.is_sorted());
        assert_eq!(keys[0], Key::Call(16));
        let mut tables: Vec<_> = keys.iter().map(Key::table).collect();
        tables.dedup();
        assert!(tables.iter().all(|table| TABLES.contains(table)) && TABLES.is_sorted());
    }

    #[test]
    fn positions_are_read_back() {
        let at = Position::new(Epoch::new(7, NodeId(1)), 120);
        assert_eq!(position_in(&at.to_string()), Some(at));
        assert_eq!(at.epoch.to_string(), "7.1");
        for wrong in ["", "7.1", "7@1", "7.1@", "7.n1@2", "7.1@-2"] {
            assert_eq!(position_in(wrong), None);
        }
    }
}
