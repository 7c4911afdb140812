//! The store as it will be once everything in the leader's log is committed (`src/driver/states.rs`).

use std::collections::VecDeque;

use eldest::protocol::Log;
use eldest::store::{Applied, Store};
use eldest::types::{Index, Position, Record};

#[derive(Debug, Default)]
pub struct Ahead {
    versions: VecDeque<Version>,
}

#[derive(Debug)]
struct Version {
    position: Position,
    store: Store,
    applied: Applied,
}

impl Ahead {
    /// The newest version: what the next call is judged by.
    pub fn newest<'a>(&'a self, committed: &'a Store) -> &'a Store {
        self.versions.back().map_or(committed, |version| &version.store)
    }

    /// What a record brought about that is not committed yet.
    pub fn brought_about(&self, index: Index) -> Option<&Applied> {
        let version = self.versions.iter().rev().find(|version| version.position.index == index);
        version.map(|version| &version.applied)
    }

    /// Applies what the leader's log holds beyond the newest version.
    pub fn follow(&mut self, committed: &Store, log: &Log) {
        if self.versions.back().is_some_and(|version| !log.holds(version.position)) {
            self.versions.clear();
        }
        let from = self.newest(committed).applied().index;
        for index in from + 1..=log.last().index {
            let Some(record) = log.get(index) else { continue };
            let mut store = self.newest(committed).clone();
            let applied = store.apply(record).expect("a record that this test wrote");
            self.versions.push_back(Version { position: record.position, store, applied });
        }
    }

    /// The committed state after the next committed record, and what that changed.
    pub fn commit(&mut self, committed: &Store, record: &Record) -> (Store, Applied) {
        if let Some(version) = self.versions.pop_front() {
            if version.position == record.position {
                return (version.store, version.applied);
            }
            self.versions.clear();
        }
        let mut store = committed.clone();
        let applied = store.apply(record).expect("a record that this test wrote");
        (store, applied)
    }
}
