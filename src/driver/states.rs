//! The store as committed, and, on a leader, as it will be once everything in its log is.
//!
//! A leader judges a call by the state after every record before it, committed or not. Each version is a frozen clone
//! of the one before with one record applied, so a record is applied once: when it commits, its version becomes
//! the committed state.

use std::collections::VecDeque;

use crate::protocol::Log;
use crate::store::{Applied, Store, Unreadable};
use crate::types::{Index, Position, Record};

#[derive(Debug)]
pub struct States {
    committed: Store,
    ahead: VecDeque<Version>,
}

#[derive(Debug)]
struct Version {
    position: Position,
    store: Store,
    applied: Applied,
}

impl States {
    pub fn new(committed: Store) -> States {
        States { committed, ahead: VecDeque::new() }
    }

    pub fn committed(&self) -> &Store {
        &self.committed
    }

    /// The newest version: what the next call is judged by.
    pub fn newest(&self) -> &Store {
        self.ahead.back().map_or(&self.committed, |version| &version.store)
    }

    /// What a record brought about that is not committed yet.
    pub fn brought_about(&self, index: Index) -> Option<&Applied> {
        let version = self.ahead.iter().rev().find(|version| version.position.index == index);
        version.map(|version| &version.applied)
    }

    /// Applies what the leader's log holds beyond the newest version.
    pub fn follow(&mut self, log: &Log) -> Result<(), Unreadable> {
        if self.ahead.back().is_some_and(|version| !log.holds(version.position)) {
            self.ahead.clear();
        }
        let from = self.newest().applied().index;
        for index in from + 1..=log.last().index {
            let Some(record) = log.get(index) else {
                // Below the base everything is committed and comes by `commit`.
                continue;
            };
            let mut store = self.newest().clone();
            let applied = store.apply(record)?;
            self.ahead.push_back(Version { position: record.position, store, applied });
        }
        Ok(())
    }

    /// Takes in the next committed record and says what it changed.
    pub fn commit(&mut self, record: &Record) -> Result<Applied, Unreadable> {
        if let Some(version) = self.ahead.pop_front() {
            if version.position == record.position {
                self.committed = version.store;
                return Ok(version.applied);
            }
            self.ahead.clear();
        }
        self.committed.apply(record)
    }

    pub fn restore(&mut self, store: Store) {
        self.ahead.clear();
        self.committed = store;
    }
}
