//! The rows of a backup: which rows of a state belong to it, and the restore steps that they become.
//!
//! ```text
//!  doc "greeting" {"at":"7.1@12","value":"hello"}      clients' data, as a snapshot writes it
//!  token "last" 1763737161000007                       the last token; later tokens must be greater (I6)
//! ```
//!
//! A backup has no leases: a restore into another cluster would grant them to strangers, and in this cluster they still exist.
//! It also has no remembered calls and no merge metadata: a restore rewrites everything, in a new history.

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

/// The reason why a backup's rows are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadRow {
    /// The row does not belong in a backup, or is damaged.
    Unreadable(Unreadable),
    /// A value that no client could have written.
    Document(BadDocument),
    /// The rows exceed the size that the state may have.
    TooLarge { most: u64 },
}

impl fmt::Display for BadRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadRow::Unreadable(error) => error.fmt(f),
            BadRow::Document(error) => error.fmt(f),
            BadRow::TooLarge { most } => write!(f, "the rows have more than {most} bytes"),
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

    /// The number of rows in a backup.
    pub fn backup_rows_count(&self) -> u64 {
        let data =
            [self.docs.table().len(), self.elections.len(), self.users.len(), self.votes.table().len()];
        data.into_iter().map(|rows| rows as u64).sum::<u64>() + u64::from(self.last_token > 0)
    }

    /// Whether the state has no data of clients.
    pub fn has_no_data(&self) -> bool {
        self.docs.table().len() + self.elections.len() + self.users.len() + self.votes.table().len() == 0
    }
}

/// Takes a backup's rows in their order, and checks all of them. Each part is read back as every node will read it. Only the
/// parts stay in memory, not the text and not a second state.
#[derive(Debug)]
pub struct RowSteps {
    restore: u64,
    parts: Parts,
    /// The number of parts that have been read back.
    read: usize,
    bytes: u64,
    /// The size limit of the state.
    most: u64,
    /// Documents that end with a lease are left out: in another cluster, the lease of that name belongs to another holder.
    unbound: bool,
    /// Checks whether the rows can be restored, and does nothing else.
    only_checks: bool,
    /// Elections with the votes cast in them so far: these come last.
    elections: BTreeMap<String, Ballots>,
    /// The minimal size of these elections so far.
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
    /// `restore` is the number that identifies this restore.
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

    /// From now on leaves out documents that end with a lease: this cluster is not the one of the backup.
    pub fn leave_bound_docs(&mut self) {
        self.unbound = true;
    }

    /// Keeps nothing, for callers that only want to check the rows.
    pub fn only_checking() -> RowSteps {
        RowSteps { only_checks: true, ..RowSteps::new(1, u64::MAX) }
    }

    pub fn add(&mut self, table: &str, key: &str, value: &str) -> Result<(), BadRow> {
        let added = match table {
            "doc" => self.doc(key, value)?,
            "election" => self.election(key, value),
            "token" => self.token(key, value),
            "user" => self.user(key, value)?,
            // Votes come last in the order of tables, and an item has an election with all its votes. So elections wait
            // for `finish`.
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

    /// The records of the restore, under this guard. The last token does not come from the guard but from the rows.
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
        write_text(&mut text, key).expect("writing to a String cannot fail");
        text.push_str(",\"value\":");
        text.push_str(&doc.value);
        if let Some(lifetime) = &doc.lifetime {
            lifetime.write(&mut text).expect("writing to a String cannot fail");
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
        write_text(votes, &voter).expect("writing to a String cannot fail");
        votes.push_str(",\"choice\":");
        write_text(votes, &vote.choice).expect("writing to a String cannot fail");
        votes.push('}');
        self.held += (votes.len() - before) as u64;
        match votes.len() > ITEM_BYTES_MOST {
            true => Err(BadDocument::new("elections", Problem::TooLarge { most: ITEM_BYTES_MOST }).into()),
            false => Ok(Some(())),
        }
    }

    /// Reads back the parts that are new since the last call, as every node will read them.
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
        // Memory use during the restore is bounded by the size limit of the result.
        if self.bytes + self.held > self.most { Err(BadRow::TooLarge { most: self.most }) } else { Ok(()) }
    }
}
