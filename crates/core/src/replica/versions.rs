//! The committed state, and, on a leader, the versions ahead of it: the state as it will be once everything in its log is
//! committed.
//!
//! A leader judges a call by the newest version. A version ends with its round, at a boundary, or where a restore replaces
//! everything; it keeps what each of its records came to, as that stood when the record was applied. So a record is applied
//! once: when the last record of a version commits, the version becomes the committed state.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

use super::feed::Draft;
use crate::protocol::{Log, SnapshotMeta};
use crate::replica::feed;
use crate::store::{Applied, Command, Key, Store, Unreadable};
use crate::types::{History, Index, Lease, LeaseName, Position, Record};

#[derive(Clone, Debug)]
pub struct Versions {
    committed: Store,
    /// The protocol's part of the committed state.
    meta: SnapshotMeta,
    /// The index of the newest override: snapshots are numbered from there.
    origin: Index,
    /// Records from one boundary to the next.
    every: u64,
    ahead: VecDeque<Version>,
}

/// The state after some records that are not committed yet.
#[derive(Clone, Debug)]
struct Version {
    store: Store,
    effects: VecDeque<Effect>,
    last: Position,
    /// The origin after it.
    origin: Index,
    /// The next record of the same round belongs to it.
    grows: bool,
}

/// What one record came to.
#[derive(Clone, Debug)]
pub struct Effect {
    pub at: Position,
    pub applied: Applied,
    /// Each lease that it touched, as it left it.
    pub leases: Vec<(LeaseName, Option<Lease>)>,
    /// What readers of the feed are told of it, and of which history it is.
    pub drafts: Vec<Draft>,
    pub history: History,
}

/// A record has been committed.
#[derive(Clone, Debug)]
pub struct Committed {
    pub effect: Effect,
    /// It stands at a boundary: the state there.
    pub boundary: Option<Store>,
}

impl Versions {
    pub fn new(committed: Store, meta: SnapshotMeta, origin: Index, every: u64) -> Versions {
        Versions { committed, meta, origin, every, ahead: VecDeque::new() }
    }

    pub fn committed(&self) -> &Store {
        &self.committed
    }

    pub fn meta(&self) -> &SnapshotMeta {
        &self.meta
    }

    pub fn origin(&self) -> Index {
        self.origin
    }

    /// How many boundaries lie between the origin and an index.
    pub fn snapshot_id(&self, index: Index) -> u64 {
        index.saturating_sub(self.origin) / self.every
    }

    pub fn every(&self) -> u64 {
        self.every
    }

    /// What the next call is judged by.
    pub fn newest(&self) -> &Store {
        self.ahead.back().map_or(&self.committed, |version| &version.store)
    }

    /// What this record brings about, if it is not committed yet.
    pub fn effect(&self, index: Index) -> Option<&Effect> {
        let effects = self.ahead.iter().rev().flat_map(|version| version.effects.iter().rev());
        effects.take_while(|effect| effect.at.index >= index).find(|effect| effect.at.index == index)
    }

    /// Applies the record that is to follow the newest version. `command` is what it says, where that is at hand.
    pub fn push(&mut self, record: &Record, command: Option<&Command>) -> Result<&Effect, Unreadable> {
        if !self.ahead.back().is_some_and(|version| version.grows) {
            let (store, last) = (self.newest().clone(), self.newest().applied());
            let origin = self.ahead.back().map_or(self.origin, |version| version.origin);
            self.ahead.push_back(Version { store, effects: VecDeque::new(), last, origin, grows: true });
        }
        let version = self.ahead.back_mut().expect("there is one that grows");
        let effect = apply(&mut version.store, record, command)?;
        version.last = record.position;
        if effect.applied.restored {
            version.origin = record.index();
        }
        version.grows = !(record.index() - version.origin).is_multiple_of(self.every);
        version.effects.push_back(effect);
        Ok(version.effects.back().expect("it has just been added"))
    }

    /// Ends the round: the next record begins a version of its own.
    pub fn seal(&mut self) {
        if let Some(version) = self.ahead.back_mut() {
            version.grows = false;
        }
    }

    /// Drops what the leader's log does not hold, and applies what it holds beyond the newest version.
    pub fn follow(&mut self, log: &Log) -> Result<(), Unreadable> {
        if self.ahead.back().is_some_and(|version| !log.holds(version.last)) {
            self.ahead.clear();
        }
        let from = self.newest().applied().index;
        for index in from + 1..=log.last().index {
            // Below the base everything is committed and comes by `commit`.
            if let Some(record) = log.get(index) {
                self.push(record, None)?;
            }
        }
        self.seal();
        Ok(())
    }

    /// Takes in the next committed record, which is one of `batch`: all that is committed with it.
    pub fn commit(&mut self, record: &Record, batch: &[Record]) -> Result<Committed, Unreadable> {
        let effect = match self.version_of(record) {
            // Its last record, too: another leader's may stand in the place of some.
            Some(version) if holds(batch, version.last) => {
                let effect = version.effects.pop_front().expect("it begins with this record");
                if version.effects.is_empty() {
                    self.become_first();
                }
                effect
            }
            // A part of its version only: the rest may never come.
            Some(version) => {
                version.effects.pop_front();
                apply(&mut self.committed, record, None)?
            }
            None => apply(&mut self.committed, record, None)?,
        };
        self.meta.absorb(record);
        if effect.applied.restored {
            self.origin = record.index();
        }
        let boundary = self.boundary_at(record.index());
        Ok(Committed { effect, boundary })
    }

    /// Settles the rows of all states that have grown out of `oldest`.
    pub fn settle(&mut self, oldest: &mut Store) {
        let ahead = self.ahead.iter_mut().map(|version| &mut version.store);
        let mut states: Vec<_> = [oldest, &mut self.committed].into_iter().chain(ahead).collect();
        Store::settle(&mut states);
    }

    /// The state is replaced by another, which stands at `meta`. Gives back the one before.
    pub fn replace(&mut self, store: Store, meta: SnapshotMeta, origin: Index) -> Store {
        self.ahead.clear();
        self.meta = meta;
        self.origin = origin;
        std::mem::replace(&mut self.committed, store)
    }

    /// Each state by its digest, and what its records came to by where they stand.
    pub fn fingerprint(&self, state: &mut impl Hasher) {
        fingerprint(&self.committed, state);
        self.origin.hash(state);
        self.ahead.len().hash(state);
        for version in &self.ahead {
            fingerprint(&version.store, state);
            (version.last, version.origin, version.grows).hash(state);
            version.effects.len().hash(state);
            version.effects.iter().for_each(|effect| effect.at.hash(state));
        }
    }

    /// A bit flips in memory: for the tests that prove that it is noticed (P25).
    #[cfg(feature = "mutants")]
    pub fn damage(&mut self) {
        self.committed.damage();
        self.ahead.iter_mut().for_each(|version| version.store.damage());
    }

    /// The first version, if it goes on with this record; if it does not, none holds any more.
    fn version_of(&mut self, record: &Record) -> Option<&mut Version> {
        let goes_on =
            |version: &Version| version.effects.front().is_some_and(|effect| effect.at == record.position);
        if !self.ahead.front().is_some_and(goes_on) {
            self.ahead.clear();
        }
        self.ahead.front_mut()
    }

    fn become_first(&mut self) {
        if let Some(version) = self.ahead.pop_front() {
            self.committed = version.store;
        }
    }

    /// What is staged for a restore is in no snapshot: there is no boundary until that is over.
    fn boundary_at(&self, index: Index) -> Option<Store> {
        let at_boundary = (index - self.origin).is_multiple_of(self.every);
        let whole = self.committed.applied().index == index && !self.committed.is_restoring();
        (at_boundary && whole).then(|| self.committed.clone())
    }
}

/// Whether a run of records holds the one at this position.
fn holds(batch: &[Record], at: Position) -> bool {
    let first = batch.first().map_or(0, Record::index);
    let there = at.index.checked_sub(first).and_then(|number| batch.get(number as usize));
    there.is_some_and(|record| record.position == at)
}

fn fingerprint(store: &Store, state: &mut impl Hasher) {
    (store.applied(), store.stamp(), store.digest()).hash(state);
}

fn apply(store: &mut Store, record: &Record, command: Option<&Command>) -> Result<Effect, Unreadable> {
    let applied = store.apply_read(record, command)?;
    let names = applied.changes.iter().filter_map(Key::counted);
    let leases = names.map(|name| (name.clone(), store.lease(&name))).collect();
    let drafts = feed::of_record(store, record, &applied);
    Ok(Effect { at: record.position, applied, leases, drafts, history: store.history() })
}
