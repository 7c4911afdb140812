//! What a change has come to: for those who are told of changes one by one.

use super::key::{Key, ballot_parts};
use super::state::Store;
use crate::types::Text;

impl Key {
    /// Whether it names clients' data, and not what the store keeps about it.
    pub fn is_data(&self) -> bool {
        matches!(self, Key::Doc(_) | Key::Election(_) | Key::User(_) | Key::Vote(_))
    }

    /// Election and voter, of a vote.
    pub fn ballot(&self) -> Option<(String, String)> {
        match self {
            Key::Vote(name) => ballot_parts(name),
            _ => None,
        }
    }
}

impl Store {
    /// The value of an entry of clients' data, as JSON on one line. It shares its text with the state.
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
