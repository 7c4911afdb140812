//! The state consists of eight tables, the position of the last applied record, and in available mode the merge metadata.

use std::sync::Arc;

use crate::store::access::TokenId;
use crate::store::encoding::{Hash, Mix};
use crate::store::tables::{
    Docs, Election, IdempotencyKeys, MergeMetadata, Process, Role, Row, Table, Token, User, Votes, Weight,
};
use crate::types::{History, Position, Stamp, Text};

/// The replicated state. A clone costs a few pointers and never changes: it serves as a view to read from, as a snapshot in
/// progress, or as a version that may yet be discarded.
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
    /// The last token of leases. Zero before the first one.
    pub(in crate::store) last_token: u64,
    pub(in crate::store) history: History,
    pub(in crate::store) idempotency_keys: IdempotencyKeys,
    /// Present only in available mode.
    pub(in crate::store) merging: Option<Arc<MergeMetadata>>,
    /// Parts of a document that is to replace all data, or to be added to it.
    pub(in crate::store) staged: Option<Arc<Staged>>,
}

/// The parts of a document that have arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Staged {
    pub(in crate::store) restore: u64,
    pub(in crate::store) parts: u32,
    pub(in crate::store) store: Store,
}

impl Store {
    /// An empty state with merge metadata, as available mode needs it.
    pub fn mergeable() -> Store {
        Store { merging: Some(Arc::default()), ..Store::default() }
    }

    /// Flips a bit, for the tests which prove that damage is detected (P25).
    #[cfg(feature = "mutants")]
    pub fn damage(&mut self) {
        self.last_token ^= 1 << 40;
    }

    /// Settles the rows that the first of these states has written since they were last settled. The other states are
    /// successors of the first. No state changes, but rows that stood in several states are again stored in one place.
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

    /// The merge metadata to update, in available mode.
    pub(in crate::store) fn merging_mut(&mut self) -> Option<&mut MergeMetadata> {
        self.merging.as_mut().map(Arc::make_mut)
    }

    /// The revision of a value that was written at a position. It has more than the index where an index alone is ambiguous:
    /// the epoch, because two sides may have written at the same index, or the history, because the cluster that this data
    /// came from may have done so.
    pub(in crate::store) fn rev(&self, at: Position) -> String {
        match &self.merging {
            None if self.history.is_first() => at.index.to_string(),
            None => format!("{}-{}", at.index, self.history),
            Some(_) => at.to_string(),
        }
    }

    /// The history that its indexes belong to.
    pub fn history(&self) -> History {
        self.history
    }

    /// The position of the last record that is applied.
    pub fn applied(&self) -> Position {
        self.applied
    }

    /// The stamp of the last record that is applied.
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// Equal states have equal digests, no matter how they came about (P25). The digest covers the entries, which are all
    /// that is replicated; position and stamp belong to the log.
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

    /// The number of entries in each table.
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

    /// The number of entries of clients' data, leases and calls.
    pub fn len(&self) -> usize {
        self.rows().iter().map(|(_, rows)| rows).sum()
    }

    /// The size of the state (P55): clients' data, leases, and remembered calls. The merge metadata of available mode has
    /// separate bounds.
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

    /// The size of the documents in an area, in bytes. An area is the part of a key up to and including its first slash.
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

/// The digest of a table with the last token as its one entry.
pub fn token_digest(last: u64) -> u64 {
    if last == 0 {
        return 0;
    }
    let mut hash = Hash::new();
    "token".mix(&mut hash);
    hash.word(last);
    hash.finish()
}

/// The digest of a table with the history as its one entry.
pub fn history_digest(history: History) -> u64 {
    if history.is_first() {
        return 0;
    }
    let mut hash = Hash::new();
    "history".mix(&mut hash);
    history.to_string().mix(&mut hash);
    hash.finish()
}
