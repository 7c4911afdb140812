//! The committed state and, on a leader, the versions ahead of it: the state as it will be once everything in its log is
//! committed.
//!
//! A leader judges a call by the newest version. A version ends with its round, at a boundary, or where a restore replaces
//! everything. It keeps the effect of each of its records, as it was when the record was applied. So a record is applied
//! once: when the last record of a version commits, the version becomes the committed state.
//!
//! ```text
//!  committed   ahead
//!    @40       [@41 @42]  [@43 @44]         two rounds in the log; the next call is judged by the state after @44
//!    @42                  [@43 @44]         @41 and @42 were committed in one batch: the version became the state
//!    @43                  [@44]             only @43 was committed: it was applied to the committed state as well
//! ```

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
    /// The index of the newest restore or merge: snapshots are numbered from there.
    origin: Index,
    /// The number of records from one boundary to the next.
    every: u64,
    ahead: VecDeque<Version>,
}

/// The state after some records that are not committed yet.
#[derive(Clone, Debug)]
struct Version {
    store: Store,
    effects: VecDeque<Effect>,
    last: Position,
    /// The origin after these records.
    origin: Index,
    /// The next record of the same round belongs to this version.
    grows: bool,
}

/// The effect of one record.
#[derive(Clone, Debug)]
pub struct Effect {
    pub at: Position,
    pub applied: Applied,
    /// Each lease that the record touched, as the record left it.
    pub leases: Vec<(LeaseName, Option<Lease>)>,
    /// The feed events of the record, and the history that they belong to.
    pub drafts: Vec<Draft>,
    pub history: History,
}

/// A record has been committed.
#[derive(Clone, Debug)]
pub struct Committed {
    pub effect: Effect,
    /// The state at the record's index, if that is a boundary.
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

    /// The number of boundaries between the origin and an index.
    pub fn snapshot_id(&self, index: Index) -> u64 {
        index.saturating_sub(self.origin) / self.every
    }

    pub fn every(&self) -> u64 {
        self.every
    }

    /// The state that the next call is judged by.
    pub fn newest(&self) -> &Store {
        self.ahead.back().map_or(&self.committed, |version| &version.store)
    }

    /// The effect of this record, if it is not committed yet.
    pub fn effect(&self, index: Index) -> Option<&Effect> {
        let effects = self.ahead.iter().rev().flat_map(|version| version.effects.iter().rev());
        effects.take_while(|effect| effect.at.index >= index).find(|effect| effect.at.index == index)
    }

    /// Applies the record behind the newest version. `command` is the record's content, if the caller has it.
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
        // A version ends at a boundary, because the committed state must stop there for its digest and its snapshot.
        version.grows = !(record.index() - version.origin).is_multiple_of(self.every);
        version.effects.push_back(effect);
        Ok(version.effects.back().expect("it has just been added"))
    }

    /// Ends the round, so that the next record begins a new version.
    pub fn seal(&mut self) {
        if let Some(version) = self.ahead.back_mut() {
            version.grows = false;
        }
    }

    /// Drops versions that the leader's log does not hold, and applies the records beyond the newest version.
    pub fn follow(&mut self, log: &Log) -> Result<(), Unreadable> {
        if self.ahead.back().is_some_and(|version| !log.holds(version.last)) {
            self.ahead.clear();
        }
        let from = self.newest().applied().index;
        for index in from + 1..=log.last().index {
            // Records below the base are committed, and arrive by `commit`.
            if let Some(record) = log.get(index) {
                self.push(record, None)?;
            }
        }
        self.seal();
        Ok(())
    }

    /// Takes in the next committed record. `batch` is all records that are committed with it.
    /// Within a version the committed state stays where it was, and moves with the version's last record. So the caller
    /// takes in the whole batch before it looks at the state.
    pub fn commit(&mut self, record: &Record, batch: &[Record]) -> Result<Committed, Unreadable> {
        let effect = match self.version_of(record) {
            // The last record of the version is in the batch, too. Otherwise another leader's records may yet take the place
            // of some of the version's records.
            Some(version) if holds(batch, version.last) => {
                let effect = version.effects.pop_front().expect("it begins with this record");
                if version.effects.is_empty() {
                    self.become_first();
                }
                effect
            }
            // The batch has only a part of the version. The rest may never be committed.
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

    /// Replaces the state by another one, which stands at `meta`. Returns the state before.
    pub fn replace(&mut self, store: Store, meta: SnapshotMeta, origin: Index) -> Store {
        self.ahead.clear();
        self.meta = meta;
        self.origin = origin;
        std::mem::replace(&mut self.committed, store)
    }

    /// Hashes each state by its digest, and each effect by its position.
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

    /// Flips a bit in memory, for the tests that prove that divergence is noticed (P25).
    #[cfg(feature = "mutants")]
    pub fn damage(&mut self) {
        self.committed.damage();
        self.ahead.iter_mut().for_each(|version| version.store.damage());
    }

    /// The first version, if this record is its next one. Otherwise no version is valid any longer.
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

    /// The state, if this index is a boundary. Parts that are staged for a restore are in no snapshot, so there is no boundary until the
    /// restore is over.
    fn boundary_at(&self, index: Index) -> Option<Store> {
        let at_boundary = (index - self.origin).is_multiple_of(self.every);
        let whole = self.committed.applied().index == index && !self.committed.is_restoring();
        (at_boundary && whole).then(|| self.committed.clone())
    }
}

/// Whether a run of records holds the record at this position.
fn holds(batch: &[Record], at: Position) -> bool {
    let first = batch.first().map_or(0, Record::index);
    let there = at.index.checked_sub(first).and_then(|number| batch.get(number as usize));
    there.is_some_and(|record| record.position == at)
}

fn fingerprint(store: &Store, state: &mut impl Hasher) {
    (store.applied(), store.stamp(), store.digest()).hash(state);
}

fn apply(store: &mut Store, record: &Record, command: Option<&Command>) -> Result<Effect, Unreadable> {
    let before = store.applied().epoch;
    let applied = store.apply_read(record, command)?;
    let names = applied.changes.iter().filter_map(Key::counted);
    let leases = names.map(|name| (name.clone(), store.lease(&name))).collect();
    let drafts = feed::of_record(store, record, &applied, before);
    Ok(Effect { at: record.position, applied, leases, drafts, history: store.history() })
}
