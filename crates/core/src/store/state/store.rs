//! The state itself is eight tables, the record that they stand at, and in available mode the merge metadata.

use std::sync::Arc;

use crate::store::access::TokenId;
use crate::store::encoding::{Hash, Mix};
use crate::store::tables::{
    Docs, Election, IdempotencyKeys, MergeMetadata, Process, Role, Row, Table, Token, User, Votes, Weight,
};
use crate::types::{History, Position, Stamp, Text};

/// The replicated state. A clone costs a few pointers and never changes: a view to read from, a snapshot under way, a
/// version that may yet be given up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Store {
    pub(in crate::store) applied: Position,
    pub(in crate::store) stamp: Stamp,
    pub(in crate::store) users: Table<Text, User>,
    pub(in crate::store) elections: Table<Text, Election>,
    pub(in crate::store) votes: Votes,
    pub(in crate::store) docs: Docs,
    pub(in crate::store) roles: Table<Text, Role>,
    pub(in crate::store) processes: Table<Text, Process>,
    pub(in crate::store) access: Table<TokenId, Token>,
    /// Of leases. Zero before the first one.
    pub(in crate::store) last_token: u64,
    pub(in crate::store) history: History,
    pub(in crate::store) idempotency_keys: IdempotencyKeys,
    /// Only in available mode.
    pub(in crate::store) merging: Option<Arc<MergeMetadata>>,
    /// Parts of a document that is to replace all this.
    pub(in crate::store) staged: Option<Arc<Staged>>,
}

/// What has arrived of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Staged {
    pub(in crate::store) restore: u64,
    pub(in crate::store) parts: u32,
    pub(in crate::store) store: Store,
}

impl Store {
    /// An empty state that keeps merge metadata, as available mode needs.
    pub fn mergeable() -> Store {
        Store { merging: Some(Arc::default()), ..Store::default() }
    }

    /// A bit flips: for the tests that prove that it is noticed (P25).
    #[cfg(feature = "mutants")]
    pub fn damage(&mut self) {
        self.last_token ^= 1 << 40;
    }

    /// Settles the rows that the first of these states has written since it did so last: the others have grown out of it. No
    /// state changes, but what stood in several of them stands in one place again.
    pub fn settle(states: &mut [&mut Store]) {
        settle(states, |state| &mut state.users);
        settle(states, |state| &mut state.elections);
        settle(states, |state| state.votes.table_mut());
        settle(states, |state| state.docs.table_mut());
        settle(states, |state| &mut state.roles);
        settle(states, |state| &mut state.processes);
        settle(states, |state| &mut state.access);
        settle(states, |state| state.idempotency_keys.table_mut());
    }

    pub fn is_mergeable(&self) -> bool {
        self.merging.is_some()
    }

    /// What is to be kept up, in available mode.
    pub(in crate::store) fn merging_mut(&mut self) -> Option<&mut MergeMetadata> {
        self.merging.as_mut().map(Arc::make_mut)
    }

    /// The revision of what was written at a position: two sides, or another cluster whose data this was, may have written at the same
    /// index.
    pub(in crate::store) fn rev(&self, at: Position) -> String {
        match &self.merging {
            None if self.history.is_first() => at.index.to_string(),
            None => format!("{}-{}", at.index, self.history),
            Some(_) => at.to_string(),
        }
    }

    /// Which history its indexes are of.
    pub fn history(&self) -> History {
        self.history
    }

    /// The last record that is in here.
    pub fn applied(&self) -> Position {
        self.applied
    }

    /// The stamp of the last record that is in here.
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// Equal states have equal digests, however they came about (P25). It covers the entries, which are all that is
    /// replicated; position and stamp are the log's.
    pub fn digest(&self) -> u64 {
        let tables = [
            self.users.digest(),
            self.elections.digest(),
            self.votes.table().digest(),
            self.docs.table().digest(),
            self.roles.digest(),
            self.processes.digest(),
            self.access.digest(),
            token_digest(self.last_token),
            history_digest(self.history),
            self.idempotency_keys.table().digest(),
            self.merging.as_ref().map_or(0, |merging| merging.digest()),
        ];
        tables.into_iter().fold(0, u64::wrapping_add)
    }

    /// How many entries each table has.
    pub fn rows(&self) -> [(&'static str, usize); 8] {
        [
            ("users", self.users.len()),
            ("elections", self.elections.len()),
            ("votes", self.votes.table().len()),
            ("docs", self.docs.table().len()),
            ("roles", self.roles.len()),
            ("processes", self.processes.len()),
            ("tokens", self.access.len()),
            ("idempotency_keys", self.idempotency_keys.table().len()),
        ]
    }

    /// How many entries there are, of clients' data, leases and calls.
    pub fn len(&self) -> usize {
        self.rows().iter().map(|(_, rows)| rows).sum()
    }

    /// How large it is (P55): what clients have written, what they hold, and the calls that are remembered. What available mode
    /// keeps besides has bounds of its own.
    pub fn bytes(&self) -> u64 {
        let data = [
            self.users.bytes(),
            self.elections.bytes(),
            self.votes.table().bytes(),
            self.docs.table().bytes(),
            self.roles.bytes(),
            self.processes.bytes(),
            self.access.bytes(),
            self.idempotency_keys.table().bytes(),
        ];
        data.into_iter().sum()
    }

    /// How many bytes of documents stand under an area: a key up to its first slash, and with it.
    pub fn bytes_in(&self, area: &str) -> u64 {
        self.docs.bytes_in(area)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn settle<K: Ord + Clone + Mix + Weight, V: Row>(
    states: &mut [&mut Store],
    table: impl Fn(&mut Store) -> &mut Table<K, V>,
) {
    if states.first_mut().is_some_and(|oldest| !table(oldest).is_settled()) {
        let mut tables: Vec<_> = states.iter_mut().map(|state| table(state)).collect();
        Table::settle(&mut tables);
    }
}

/// As of a table with one entry.
pub fn token_digest(last: u64) -> u64 {
    if last == 0 {
        return 0;
    }
    let mut hash = Hash::new();
    "token".mix(&mut hash);
    hash.word(last);
    hash.finish()
}

/// The same.
pub fn history_digest(history: History) -> u64 {
    if history.is_first() {
        return 0;
    }
    let mut hash = Hash::new();
    "history".mix(&mut hash);
    history.to_string().mix(&mut hash);
    hash.finish()
}
