//! A backup's rows: which ones of a state they are, and the steps of the restore that they become.
//!
//! ```text
//!  doc "greeting" {"at":"7.1@12","value":"hello"}      clients' data, as a snapshot writes it
//!  token "last" 1763737161000007                       what tokens have to rise past (I6)
//! ```
//!
//! Leases are in none: who restores elsewhere would hand them to strangers, and here they stand anyway. Nor are the calls that are
//! remembered, nor what two histories know of each other: a restore writes everything anew, in a history of its own.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::document::BadDocument;
use super::restore::{Guard, ITEM_BYTES_MOST, Parts, Steps};
use crate::store::command::Unreadable;
use crate::store::encoding::{Problem, TOKENS_END, write_text};
use crate::store::state::Store;
use crate::store::tables::{CastVote, Doc, Election, Key, LAST, TABLES, User, ballot_parts};
use crate::types::{Position, Stamp};

/// Why a backup's rows are not taken in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadRow {
    /// Of no backup, or damaged.
    Unreadable(Unreadable),
    /// A value that no client could have written.
    Document(BadDocument),
    /// What it comes to is more than the state may have.
    TooLarge { most: u64 },
}

impl fmt::Display for BadRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadRow::Unreadable(error) => error.fmt(f),
            BadRow::Document(error) => error.fmt(f),
            BadRow::TooLarge { most } => write!(f, "the rows come to more than {most} bytes"),
        }
    }
}

impl From<BadDocument> for BadRow {
    fn from(error: BadDocument) -> BadRow {
        BadRow::Document(error)
    }
}

impl Store {
    /// The rows of a backup, in the order of snapshots.
    pub fn backup_rows(&self) -> impl Iterator<Item = (Key, String)> + '_ {
        let docs = self.docs.table().iter().map(|(key, row)| (Key::Doc(key.clone()), row.entry()));
        let elections = self.elections.iter().map(|(key, row)| (Key::Election(key.clone()), row.entry()));
        let token = self.entry(&Key::Token).map(|token| (Key::Token, token));
        let users = self.users.iter().map(|(key, row)| (Key::User(key.clone()), row.entry()));
        let votes = self.votes.table().iter().map(|(key, row)| (Key::Vote(key.clone()), row.entry()));
        docs.chain(elections).chain(token).chain(users).chain(votes)
    }

    /// How many they are.
    pub fn backup_rows_count(&self) -> u64 {
        let data =
            [self.docs.table().len(), self.elections.len(), self.users.len(), self.votes.table().len()];
        data.into_iter().map(|rows| rows as u64).sum::<u64>() + u64::from(self.last_token > 0)
    }

    /// Whether clients have written nothing that stands.
    pub fn has_no_data(&self) -> bool {
        self.docs.table().len() + self.elections.len() + self.users.len() + self.votes.table().len() == 0
    }
}

/// Takes a backup's rows in their order, and believes none of them. Each part is read as every node will read it, and only the parts are
/// held: never the text, nor a second state.
#[derive(Debug)]
pub struct RowSteps {
    restore: u64,
    parts: Parts,
    /// What has been read back of them.
    read: usize,
    bytes: u64,
    /// What the state may have.
    most: u64,
    /// Documents that end with a lease stay behind: elsewhere a lease of that name is somebody else's.
    unbound: bool,
    /// Only whether it could be restored is asked.
    only_checks: bool,
    /// Elections with the votes cast in them so far: these come last.
    elections: BTreeMap<String, Ballots>,
    /// What these come to so far, at least.
    held: u64,
    token: u64,
}

#[derive(Debug)]
struct Ballots {
    text: String,
    votes: String,
}

#[derive(Deserialize)]
struct PartOfRestore<'a> {
    #[serde(borrow)]
    data: &'a RawValue,
}

impl RowSteps {
    /// `restore` tells this one from any other.
    pub fn new(restore: u64, most: u64) -> RowSteps {
        RowSteps {
            restore,
            parts: Parts::new(restore),
            read: 0,
            bytes: 0,
            most,
            unbound: false,
            only_checks: false,
            elections: BTreeMap::new(),
            held: 0,
            token: 0,
        }
    }

    /// From now on, for a cluster that is not the one of the backup.
    pub fn leave_bound_docs(&mut self) {
        self.unbound = true;
    }

    /// Keeps nothing: for whoever only wants to know.
    pub fn only_checking() -> RowSteps {
        RowSteps { only_checks: true, ..RowSteps::new(1, u64::MAX) }
    }

    pub fn add(&mut self, table: &str, key: &str, value: &str) -> Result<(), BadRow> {
        let added = match table {
            "doc" => self.doc(key, value)?,
            "election" => self.election(key, value),
            "token" => self.token(key, value),
            "user" => self.user(key, value)?,
            "vote" => self.vote(key, value)?,
            _ => None,
        };
        let known = TABLES.into_iter().find(|known| *known == table);
        match (added, known) {
            (Some(()), _) => self.read_back(),
            (None, Some(table)) => Err(BadRow::Unreadable(Unreadable::Entry { table, key: key.to_string() })),
            (None, None) => Err(BadRow::Unreadable(Unreadable::Table(table.to_string()))),
        }
    }

    /// The records of the restore, under this guard but for the last token, which stands in the rows.
    pub fn finish(mut self, guard: Guard) -> Result<Steps, BadRow> {
        self.held = 0;
        for (_, Ballots { mut text, votes }) in std::mem::take(&mut self.elections) {
            text.pop();
            text.push_str(&format!(",\"votes\":[{votes}]}}"));
            self.item("elections", &text)?;
        }
        self.parts.close_last();
        self.read_back()?;
        let mut steps = std::mem::replace(&mut self.parts, Parts::new(self.restore)).ended();
        steps.replaces_with = Some(self.bytes);
        steps.guard = Guard { token: self.token, ..guard };
        Ok(steps)
    }

    fn item(&mut self, list: &'static str, item: &str) -> Result<(), BadRow> {
        if item.len() > ITEM_BYTES_MOST {
            return Err(BadDocument::new(list, Problem::TooLarge { most: ITEM_BYTES_MOST }).into());
        }
        self.parts.add(list, item);
        Ok(())
    }

    fn doc(&mut self, key: &str, value: &str) -> Result<Option<()>, BadRow> {
        let Some(doc) = Doc::from_entry(value) else { return Ok(None) };
        if self.unbound && doc.bond().is_some() {
            return Ok(Some(()));
        }
        let mut text = String::with_capacity(key.len() + doc.value.len() + 32);
        text.push_str("{\"key\":");
        write_text(&mut text, key).expect("a string takes everything");
        text.push_str(",\"value\":");
        text.push_str(&doc.value);
        if let Some(lifetime) = &doc.lifetime {
            lifetime.write(&mut text).expect("a string takes everything");
        }
        text.push('}');
        self.item("docs", &text).map(Some)
    }

    fn user(&mut self, key: &str, value: &str) -> Result<Option<()>, BadRow> {
        let Some(user) = User::from_entry(key, value) else { return Ok(None) };
        self.item("users", &user.new.text).map(Some)
    }

    fn election(&mut self, key: &str, value: &str) -> Option<()> {
        let election = Election::from_entry(key, value)?;
        self.held += election.new.text.len() as u64;
        let ballots = Ballots { text: election.new.text.to_string(), votes: String::new() };
        self.elections.insert(key.to_string(), ballots).is_none().then_some(())
    }

    fn token(&mut self, key: &str, value: &str) -> Option<()> {
        let token = value.parse().ok().filter(|token| (1..TOKENS_END).contains(token))?;
        (key == LAST && std::mem::replace(&mut self.token, token) == 0).then_some(())
    }

    fn vote(&mut self, key: &str, value: &str) -> Result<Option<()>, BadRow> {
        let (Some((election, voter)), Some(vote)) = (ballot_parts(key), CastVote::from_entry(value)) else {
            return Ok(None);
        };
        let Some(ballots) = self.elections.get_mut(&election) else { return Ok(None) };
        let votes = &mut ballots.votes;
        let before = votes.len();
        votes.push_str(if votes.is_empty() { "{\"voter_name\":" } else { ",{\"voter_name\":" });
        write_text(votes, &voter).expect("a string takes everything");
        votes.push_str(",\"choice\":");
        write_text(votes, &vote.choice).expect("a string takes everything");
        votes.push('}');
        self.held += (votes.len() - before) as u64;
        match votes.len() > ITEM_BYTES_MOST {
            true => Err(BadDocument::new("elections", Problem::TooLarge { most: ITEM_BYTES_MOST }).into()),
            false => Ok(Some(())),
        }
    }

    /// What has become a part since, as every node will read it.
    fn read_back(&mut self) -> Result<(), BadRow> {
        while let Some(step) = self.parts.steps.get_mut(self.read) {
            let not_json = || BadDocument::new("", Problem::NotJson);
            let part: PartOfRestore<'_> = serde_json::from_str(&step.text).map_err(|_| not_json())?;
            let store = Store::from_document(part.data.get(), Position::ZERO, Stamp::default())?;
            self.bytes += store.bytes();
            if self.only_checks {
                step.text = "".into();
            }
            self.read += 1;
        }
        // What is held meanwhile is bounded by what may be there in the end.
        if self.bytes + self.held > self.most { Err(BadRow::TooLarge { most: self.most }) } else { Ok(()) }
    }
}
