//! The part of the log that is held in memory, and the questions that are asked about it (P5).
//!
//! A log is a base, the position up to which a snapshot covers everything, and the records above it, without
//! a gap. Next to the records it keeps a summary of the whole log: roster, holds, format, vector. That
//! summary includes records that are not committed, because a node goes by the newest record that it has
//! (P43); `meta_at` gives the summary as of any index in memory.

use std::collections::{BTreeSet, VecDeque};

use super::meta::{Holds, Records, Roster, SnapshotMeta, absorb};
use super::mutant::{self, Mutant};
use super::settings::Limits;
use crate::types::{Entry, Epoch, Format, Incarnation, Index, Position, Record, Stamp, Vector};

/// Records above a base that a snapshot covers, and the summary of these records. Indexes are contiguous;
/// epochs never go down.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Log {
    base: SnapshotMeta,
    records: VecDeque<Record>,
    /// The total size of the records.
    bytes: usize,
    /// The roster as of the last record, committed or not.
    roster: Roster,
    holds: Holds,
    format: Format,
    vector: Option<Vector>,
}

/// Whether these records could stand behind `prev` in the log of a leader of that epoch: without a gap, with epochs that never go
/// down and with none above the leader's own epoch. Every real log is like this, so records that break this were invented.
pub fn may_follow(prev: Position, records: &[Record], leader: Epoch) -> bool {
    let mut before = prev;
    records.iter().all(|record| {
        let next = record.index() == before.index + 1 && record.epoch() >= before.epoch;
        before = record.position;
        next && record.epoch() <= leader
    })
}

impl Log {
    pub fn new(base: SnapshotMeta, records: Vec<Record>) -> Log {
        let mut log = Log {
            roster: Roster::default(),
            holds: Holds::default(),
            format: Format::default(),
            vector: None,
            base,
            records: records.into(),
            bytes: 0,
        };
        log.validate();
        log.add_up();
        log
    }

    pub fn base(&self) -> Position {
        self.base.at
    }

    /// The roster of the whole log, committed or not: it names the disks that the log knows.
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// The disks whose place in the roster one of these records has given to another disk.
    pub fn replaced_disks(&self) -> BTreeSet<Incarnation> {
        let mut roster = self.base.roster.clone();
        let mut replaced = BTreeSet::new();
        for record in &self.records {
            if let Entry::Rejoin { node, .. } = &record.entry {
                replaced.extend(roster.seat(*node).map(|seat| seat.incarnation));
            }
            roster.absorb(record);
        }
        replaced
    }

    /// The owners that hold the service down, by the whole log, committed or not.
    pub fn holds_of_service(&self) -> &Holds {
        &self.holds
    }

    /// Available mode: the vector of the whole log, committed or not (P31).
    pub fn vector(&self) -> Option<&Vector> {
        self.vector.as_ref()
    }

    pub fn is_empty(&self) -> bool {
        self.last() == Position::ZERO
    }

    pub fn last(&self) -> Position {
        self.records.back().map_or(self.base.at, |record| record.position)
    }

    pub fn last_stamp(&self) -> Stamp {
        self.records.back().map_or(self.base.stamp, |record| record.stamp)
    }

    /// The newest format of any record: all nodes can read this format (P23).
    pub fn format(&self) -> Format {
        self.format
    }

    /// The part of the protocol's state that a snapshot taken at `index` must carry (P26).
    pub fn meta_at(&self, index: Index) -> SnapshotMeta {
        let mut meta = self.base.clone();
        let upto = index.saturating_sub(self.base.at.index) as usize;
        self.records.iter().take(upto).for_each(|record| meta.absorb(record));
        meta
    }

    /// The position at an index that is in memory, the base included.
    pub fn position(&self, index: Index) -> Option<Position> {
        if index == self.base.at.index {
            return Some(self.base.at);
        }
        self.get(index).map(|record| record.position)
    }

    pub fn get(&self, index: Index) -> Option<&Record> {
        let offset = index.checked_sub(self.base.at.index + 1)?;
        self.records.get(offset as usize)
    }

    pub fn holds(&self, position: Position) -> bool {
        self.position(position.index) == Some(position)
    }

    /// The greatest position in this log that another log may hold, too, if all that both hold is at or below `limit`: its index
    /// is not above that of `limit`, and its epoch is not later. `None` if that position is below the base. Each refusal that
    /// names it skips at least one epoch. Between sides only `limit` itself counts: two logs that agree further down may still
    /// have diverged (P33).
    pub fn common_candidate(&self, limit: Position) -> Option<Position> {
        if self.vector.is_some() && !mutant::is_on(Mutant::CutInAvailable) {
            return Some(limit).filter(|limit| self.holds(*limit));
        }
        let fits = |position: &Position| position.index <= limit.index && position.epoch <= limit.epoch;
        let above = self.records.iter().rev().map(|record| record.position).find(fits);
        above.or(Some(self.base.at).filter(fits))
    }

    /// The records above `index`, as many as one message may hold, as one shared batch. The batch is empty if they are gone or do
    /// not exist yet.
    pub fn above(&self, index: Index, limits: &Limits) -> Records {
        let skip = index.saturating_sub(self.base.at.index) as usize;
        if index < self.base.at.index || skip >= self.records.len() {
            return Records::from([]);
        }
        let mut room = limits.batch_bytes;
        let mut first = true;
        let fits = |record: &&Record| {
            let size = record.entry.size();
            // A record that is larger than the bound is sent alone: otherwise a follower could never get past
            // it.
            let fits = first || size <= room;
            (first, room) = (false, room.saturating_sub(size));
            fits
        };
        self.records.iter().skip(skip).take(limits.batch).take_while(fits).cloned().collect()
    }

    /// The size in bytes of the records above `index`.
    pub fn bytes_above(&self, index: Index) -> usize {
        let skip = index.saturating_sub(self.base.at.index) as usize;
        self.records.iter().skip(skip).map(|record| record.entry.size()).sum()
    }

    /// The index above which records are kept, because lagging followers may still need them.
    pub fn kept_above(&self, limits: &Limits) -> Index {
        let by_count = self.last().index.saturating_sub(limits.keep);
        let mut too_many = self.bytes.saturating_sub(limits.keep_bytes);
        let beyond = self.records.iter().take_while(|record| {
            let drop = too_many > 0;
            too_many = too_many.saturating_sub(record.entry.size());
            drop
        });
        by_count.max(self.base.at.index + beyond.count() as Index)
    }

    /// The records above `above` and up to `upto`. `above` must not be below the base; the commit index never
    /// is.
    pub fn range(&self, above: Index, upto: Index) -> Vec<Record> {
        let skip = (above - self.base.at.index) as usize;
        let take = (upto - above) as usize;
        self.records.iter().skip(skip).take(take).cloned().collect()
    }

    /// Both conditions below hold for every caller. A batch from another node has passed `may_follow`, `Core::continues`, and the
    /// check of the record before it in `Core::merge`. A leader's own record is of its promise's epoch, which no record here
    /// exceeds (I11).
    pub fn push(&mut self, record: Record) {
        let last = self.last();
        assert_eq!(record.index(), last.index + 1, "a log has no gap");
        assert!(record.epoch() >= last.epoch, "epochs never go down in a log");
        self.absorb(&record);
        self.records.push_back(record);
    }

    /// The summary is added up again from the base, because the effect of a single record on a roster or on
    /// holds cannot be taken back.
    pub fn truncate(&mut self, above: Index) {
        let keep = above.saturating_sub(self.base.at.index) as usize;
        self.records.truncate(keep);
        self.add_up();
    }

    /// Drops the records up to `index`, which a snapshot holds.
    pub fn trim(&mut self, index: Index) {
        while self.base.at.index < index {
            let Some(record) = self.records.pop_front() else {
                return;
            };
            self.bytes -= record.entry.size();
            self.base.absorb(&record);
        }
    }

    pub fn reset(&mut self, base: SnapshotMeta) {
        *self = Log::new(base, Vec::new());
    }

    fn add_up(&mut self) {
        self.roster = self.base.roster.clone();
        self.holds = self.base.holds.clone();
        self.format = self.base.format;
        self.vector = self.base.vector.clone();
        self.bytes = 0;
        let records = std::mem::take(&mut self.records);
        records.iter().for_each(|record| self.absorb(record));
        self.records = records;
    }

    fn absorb(&mut self, record: &Record) {
        self.bytes += record.entry.size();
        self.roster.absorb(record);
        self.holds.absorb(record);
        self.format = self.format.max(record.entry.format());
        absorb(&mut self.vector, record);
    }

    pub fn records(&self) -> impl Iterator<Item = &Record> + '_ {
        self.records.iter()
    }

    pub fn validate(&self) {
        let mut before = self.base.at;
        for record in &self.records {
            assert_eq!(record.index(), before.index + 1, "a log has no gap");
            assert!(record.epoch() >= before.epoch, "epochs never go down in a log");
            before = record.position;
        }
    }
}

/// A line with a bad checksum, and the index up to which the log was known to be synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadLine {
    pub index: Index,
    /// The greatest index that a marker in the log says is synced.
    pub synced: Index,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// No marker says that the line was synced, so it counts as a write that a power loss cut short. The line is cut, and the
    /// node goes on.
    Torn,
    /// A record was lost that this node may have acknowledged: the disk comes back as a new one (P10).
    Doubtful,
}

/// The marker that vouches for a batch is written with the next batch, or once the log is quiet. Until then, damage to the batch
/// counts as a torn write, even if the batch was acknowledged; only this disk's copy is lost (P27).
pub fn judge(bad: BadLine) -> Tail {
    if bad.index > bad.synced || mutant::is_on(Mutant::CutDoubtfulTail) { Tail::Torn } else { Tail::Doubtful }
}

#[cfg(test)]
mod tail_tests {
    use super::*;
    use crate::types::NodeId;

    fn log(epochs: &[u64]) -> Log {
        let records = epochs.iter().zip(1..).map(|(counter, index)| Record {
            position: Position::new(Epoch::new(*counter, NodeId(1)), index),
            stamp: Stamp::default(),
            entry: Entry::Lead { founding: None },
        });
        Log::new(SnapshotMeta::default(), records.collect())
    }

    fn at(counter: u64, index: Index) -> Position {
        Position::new(Epoch::new(counter, NodeId(1)), index)
    }

    #[test]
    fn the_common_candidate_skips_later_epochs() {
        let log = log(&[1, 1, 3, 3, 5]);
        assert_eq!(log.common_candidate(at(3, 9)), Some(at(3, 4)));
        assert_eq!(log.common_candidate(at(2, 4)), Some(at(1, 2)));
        assert_eq!(log.common_candidate(at(9, 3)), Some(at(3, 3)));
    }

    #[test]
    fn what_is_sent_and_kept_is_bounded_in_bytes() {
        let log = log(&[1, 1, 1, 1]);
        let size = log.bytes_above(3);
        let two = Limits { batch_bytes: 2 * size, keep_bytes: 3 * size, ..Limits::default() };
        assert_eq!(log.above(0, &two).len(), 2);
        assert_eq!(log.kept_above(&two), 1);
        let none = Limits { batch_bytes: 0, keep_bytes: 0, ..Limits::default() };
        assert_eq!(log.above(0, &none).len(), 1, "one record always fits");
        assert_eq!(log.kept_above(&none), 4);
    }

    #[test]
    fn trimming_keeps_every_question_answerable_above_the_base() {
        let mut log = log(&[1, 1, 3, 3, 5]);
        log.trim(2);
        assert_eq!(log.base(), at(1, 2));
        assert!(log.holds(at(1, 2)) && log.holds(at(3, 3)) && !log.holds(at(1, 1)));
        assert_eq!(log.common_candidate(at(1, 1)), None);
        let limits = Limits::default();
        assert_eq!(log.above(2, &limits).len(), 3);
        assert_eq!(log.above(1, &limits).len(), 0);
        log.truncate(3);
        assert_eq!(log.last(), at(3, 3));
    }
}

#[cfg(test)]
mod recovery_tests {
    use super::*;

    #[test]
    fn only_what_was_never_vouched_for_is_torn() {
        assert_eq!(judge(BadLine { index: 21, synced: 20 }), Tail::Torn);
        assert_eq!(judge(BadLine { index: 20, synced: 20 }), Tail::Doubtful);
    }
}
