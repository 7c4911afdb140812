//! The metadata that a merge needs in addition to the tables (P35). It exists only in available mode and, except for the
//! journal, only for entries that are not settled.
//!
//! - tombstones: deleted keys, so that the other side learns of the deletions;
//! - rivals: versions that lost a merge and have not been overwritten since, so that the order in which sides meet does not matter;
//! - the journal of overridden values;
//! - an index by position, from which a difference is taken. It is derived from the tables, and is in no digest and no snapshot.
//!
//! Once every disk of the topology has had every record up to a position, the entries below it are removed from the tombstones,
//! the rivals and the index.

use std::fmt::Write;

use imbl::OrdSet;
use serde::Deserialize;

use super::idempotency::Age;
use super::key::{Key, lost_ids_of, lost_parts};
use super::table::Table;
use super::version::{Conflict, Tombstone, Version};
use crate::store::access::TokenId;
use crate::store::encoding::TOMBSTONES_MOST;
use crate::types::{Epoch, NodeId, Position, Span, Text, Vector};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MergeMetadata {
    pub tombstones: Table<Key, Tombstone>,
    pub rivals: Table<Text, Version>,
    pub conflicts: Table<Text, Conflict>,
    pub bounds: Bounds,
    /// Every write that is not settled, except rivals.
    written: OrdSet<(Position, Key)>,
    /// The tombstones, by age.
    tombstones_by_age: OrdSet<(Position, Key)>,
}

/// The positions that the merge metadata go back to. They are in no digest: a node that comes from safe mode may have a
/// longer past than another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    pub settled: Position,
    /// A side that had no contact with the others began below `settled`, and not every disk has had its records. Until the next
    /// settling nothing counts as settled.
    pub strays: bool,
    /// Up to this position entries were removed without a tombstone, here or on another side. No difference can be computed
    /// until it is settled.
    pub untold: Position,
    /// All calls of this age or older are forgotten.
    pub calls: Age,
}

impl MergeMetadata {
    /// Notes that `key` was written or deleted, and that `before` stood there. The writer knew every version that was there
    /// before.
    pub fn wrote(&mut self, key: &Key, before: Option<Position>, now: KeyChange, changes: &mut Vec<Key>) {
        self.forget(key, before);
        if self.take_tombstone(key) {
            changes.push(Key::Tombstone(key.clone().into()));
        }
        self.remove_rivals(key, changes);
        match now {
            KeyChange::Row(at) => self.note(key.clone(), at),
            KeyChange::Gone(tombstone) => {
                self.add_tombstone(key.clone(), tombstone);
                changes.push(Key::Tombstone(key.clone().into()));
                self.bound_tombstones(changes);
            }
        }
    }

    /// Notes that the row of `key` was removed without a tombstone.
    pub fn lose(&mut self, key: &Key, before: Option<Position>, changes: &mut Vec<Key>) {
        self.forget(key, before);
        self.remove_rivals(key, changes);
        if self.take_tombstone(key) {
            changes.push(Key::Tombstone(key.clone().into()));
        }
    }

    /// Adds an entry to the index.
    pub fn note(&mut self, key: Key, at: Position) {
        // A settled entry is known to every disk, and so belongs to no difference. The index has only the others.
        if at > self.bounds.settled || self.bounds.strays {
            self.written.insert((at, key));
        }
    }

    pub fn forget(&mut self, key: &Key, before: Option<Position>) {
        if let Some(before) = before {
            self.written.remove(&(before, key.clone()));
        }
    }

    pub fn add_tombstone(&mut self, key: Key, tombstone: Tombstone) {
        let at = tombstone.at;
        self.take_tombstone(&key);
        self.tombstones.insert(key.clone(), tombstone);
        self.tombstones_by_age.insert((at, key.clone()));
        self.note(key, at);
    }

    /// Removes a tombstone, and returns whether there was one.
    pub fn take_tombstone(&mut self, key: &Key) -> bool {
        let Some(Tombstone { at, .. }) = self.tombstones.take(key) else {
            return false;
        };
        self.tombstones_by_age.remove(&(at, key.clone()));
        self.forget(key, Some(at));
        true
    }

    fn rivals_of(&self, key: &Key) -> Vec<Text> {
        if self.rivals.len() == 0 {
            return Vec::new();
        }
        let prefix = lost_ids_of(key);
        let ids = self.rivals.starting_with(&prefix).map(|(id, _)| id);
        ids.filter(|id| id[prefix.len()..].parse::<Position>().is_ok()).cloned().collect()
    }

    /// Drops the oldest tombstones if there are too many.
    pub fn bound_tombstones(&mut self, changes: &mut Vec<Key>) {
        while self.tombstones.len() > TOMBSTONES_MOST {
            let Some((at, key)) = self.tombstones_by_age.get_min().cloned() else {
                return;
            };
            self.forget_tombstone(key, changes);
            // From here on this state cannot say what it lacks up to `at`, so it transfers the whole of itself until
            // that is settled.
            self.bounds.untold = self.bounds.untold.max(at);
            changes.push(Key::Side);
        }
    }

    /// Drops the oldest rivals if there are more than `most` (P48).
    pub fn bound_rivals(&mut self, most: usize, changes: &mut Vec<Key>) {
        let over = self.rivals.len().saturating_sub(most);
        if over == 0 {
            return;
        }
        let mut by_age: Vec<_> = self.rivals.iter().map(|(id, rival)| (rival.at, id.clone())).collect();
        by_age.sort_unstable();
        for (_, id) in by_age.into_iter().take(over) {
            self.rivals.remove(&id);
            changes.push(Key::Rival(id));
        }
    }

    /// Every disk of the topology has had every record up to here, so no side needs to learn of them.
    /// The journal stays: an entry may be the only place of a value that was acknowledged (I12), and only an operator
    /// drops it.
    pub fn settle(&mut self, upto: Position, changes: &mut Vec<Key>) {
        if upto <= self.bounds.settled {
            return;
        }
        self.bounds.settled = upto;
        self.bounds.strays = false;
        changes.push(Key::Side);
        let old = |at: Position| at <= upto;
        let tombstones =
            self.tombstones_by_age.iter().take_while(|(at, _)| old(*at)).map(|(_, key)| key.clone());
        for key in tombstones.collect::<Vec<_>>() {
            self.forget_tombstone(key, changes);
        }
        let rivals = self.rivals.iter().filter(|(_, rival)| old(rival.at)).map(|(id, _)| id.clone());
        for id in rivals.collect::<Vec<_>>() {
            self.rivals.remove(&id);
            changes.push(Key::Rival(id));
        }
        self.written = self.written_from(after(upto)).cloned().collect();
    }

    /// Whether an entry here lies below the position that another side has settled, and is unknown to that side.
    pub fn strays_below(&self, settled: Position, known: &Vector) -> bool {
        let rows = self.written.iter().map(|(at, _)| *at).take_while(|at| *at <= settled);
        let rivals = self.rivals.iter().map(|(_, rival)| rival.at).filter(|at| *at <= settled);
        let tombstones = self.tombstones_by_age.iter().map(|(at, _)| *at).take_while(|at| *at <= settled);
        rows.chain(rivals).chain(tombstones).any(|at| !known.covers(at))
    }

    /// Drops a tombstone together with the rivals of its key: without the tombstone it would be unknown that those had lost.
    fn forget_tombstone(&mut self, key: Key, changes: &mut Vec<Key>) {
        self.take_tombstone(&key);
        self.remove_rivals(&key, changes);
        changes.push(Key::Tombstone(key.into()));
    }

    pub fn remove_rivals(&mut self, key: &Key, changes: &mut Vec<Key>) {
        for id in self.rivals_of(key) {
            self.rivals.remove(&id);
            changes.push(Key::Rival(id));
        }
    }

    /// Whether the difference to a state with the vector `base` can be computed.
    pub fn can_compute_difference(&self, base: &Vector) -> bool {
        let Bounds { settled, untold, .. } = self.bounds;
        untold <= settled && (settled == Position::ZERO || base.covers(settled))
    }

    /// The keys of the writes that `base` does not cover. The cost follows from their number, because within each epoch a
    /// vector covers everything up to an index.
    pub fn beyond(&self, base: &Vector) -> Vec<Key> {
        let mut keys = Vec::new();
        let mut from = Some(Position::ZERO);
        while let Some((first, _)) = from.and_then(|from| self.written_from(from).next()) {
            let epoch = first.epoch;
            let start = first_uncovered(epoch, base);
            let entries = start.into_iter().flat_map(|start| self.written_from(start));
            keys.extend(entries.take_while(|(at, _)| at.epoch == epoch).map(|(_, key)| key.clone()));
            from = next_epoch(epoch).map(|epoch| Position::new(epoch, 0));
        }
        keys
    }

    fn written_from(&self, from: Position) -> impl Iterator<Item = &(Position, Key)> {
        self.written.range((from, Key::Access(TokenId(0)))..)
    }

    /// Every key that still has rivals, once for each of them.
    pub fn contested(&self) -> impl Iterator<Item = Key> + '_ {
        self.rivals.iter().filter_map(|(id, _)| lost_parts(id)).map(|(key, _)| key)
    }

    /// The tables' share of the state's digest.
    pub fn digest(&self) -> u64 {
        let tables = [self.tombstones.digest(), self.rivals.digest(), self.conflicts.digest()];
        tables.into_iter().fold(0, u64::wrapping_add)
    }

    /// The record at `at` has replaced all other data: the journal stays, and the removed rows have left no tombstones.
    pub fn restored_over(&mut self, before: &MergeMetadata, at: Position) {
        self.conflicts = before.conflicts.clone();
        // Rows that the restore removed left no tombstones. So no difference can be computed until everything
        // up to here is settled.
        self.bounds = Bounds { untold: at, ..before.bounds };
        for (id, conflict) in before.conflicts.iter() {
            self.note(Key::Conflict(id.clone()), conflict.at);
        }
    }

    /// The metadata for a difference, without the journal and the index. Entries of the journal are transferred one by
    /// one, as far as the other state lacks them.
    pub fn for_difference(&self) -> MergeMetadata {
        let (tombstones, rivals) = (self.tombstones.clone(), self.rivals.clone());
        MergeMetadata { tombstones, rivals, bounds: self.bounds, ..MergeMetadata::default() }
    }

    /// Clears the index, which is rebuilt afterwards.
    pub fn clear_index(&mut self) {
        self.written = OrdSet::new();
        self.tombstones_by_age = OrdSet::new();
    }

    /// Adds the entries of the metadata's tables to the index.
    pub fn index_own(&mut self) {
        self.tombstones_by_age =
            self.tombstones.iter().map(|(key, tombstone)| (tombstone.at, key.clone())).collect();
        let tombstones = self.tombstones.iter().map(|(key, tombstone)| (tombstone.at, key.clone()));
        let conflicts = self.conflicts.iter().map(|(id, row)| (row.at, Key::Conflict(id.clone())));
        for (at, key) in tombstones.chain(conflicts).collect::<Vec<_>>() {
            self.note(key, at);
        }
    }
}

/// The change of a key by a record.
#[derive(Clone, Copy, Debug)]
pub enum KeyChange {
    Row(Position),
    Gone(Tombstone),
}

impl KeyChange {
    /// A deletion by a command.
    pub fn deleted(at: Position) -> KeyChange {
        KeyChange::Gone(Tombstone::deleted(at))
    }
}

fn after(position: Position) -> Position {
    Position::new(position.epoch, position.index.saturating_add(1))
}

/// The position of the first index in an epoch that `base` does not cover.
fn first_uncovered(epoch: Epoch, base: &Vector) -> Option<Position> {
    let covered = |index: u64| base.covers(Position::new(epoch, index));
    if covered(u64::MAX) {
        return None;
    }
    // Within an epoch a vector covers everything up to an index, so the edge can be found by bisection.
    let (mut low, mut high) = (0, u64::MAX);
    while low < high {
        let middle = low + (high - low) / 2;
        (low, high) = if covered(middle) { (middle + 1, high) } else { (low, middle) };
    }
    Some(Position::new(epoch, low))
}

/// The next greater epoch: within one counter the younger leader's epoch is the smaller one.
fn next_epoch(epoch: Epoch) -> Option<Epoch> {
    match epoch.leader.0.checked_sub(1) {
        Some(leader) => Some(Epoch::new(epoch.counter, NodeId(leader))),
        None => epoch.counter.checked_add(1).map(|counter| Epoch::new(counter, NodeId(u32::MAX))),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry<'a> {
    settled: &'a str,
    untold: &'a str,
    #[serde(default)]
    strays: bool,
    calls_us: u64,
    calls_at: &'a str,
}

impl Bounds {
    pub fn entry(&self) -> String {
        let Bounds { settled, strays, untold, calls: (since, at) } = self;
        let mut text = format!("{{\"settled\":\"{settled}\",\"untold\":\"{untold}\"");
        if *strays {
            text.push_str(",\"strays\":true");
        }
        write!(text, ",\"calls_us\":{},\"calls_at\":\"{at}\"}}", since.0)
            .expect("writing to a String cannot fail");
        text
    }

    pub fn from_entry(json: &str) -> Option<Bounds> {
        let Entry { settled, untold, strays, calls_us, calls_at } = serde_json::from_str(json).ok()?;
        let calls = (Span(calls_us), calls_at.parse().ok()?);
        Some(Bounds { settled: settled.parse().ok()?, strays, untold: untold.parse().ok()?, calls })
    }

    /// Joins the bounds of two histories that have been merged, except for `settled`: `settle` raises that one, and
    /// removes what falls below it.
    pub fn join(&mut self, other: Bounds) {
        self.untold = self.untold.max(other.untold);
        self.strays |= other.strays;
        self.calls = self.calls.max(other.calls);
    }
}
