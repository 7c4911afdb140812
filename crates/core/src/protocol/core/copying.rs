//! A node sends and accepts what another log lacks: as records (P5), or as a snapshot (P6, P26).

use super::Core;
use crate::protocol::messages::{Fault, Message, Output, Term, Write};
use crate::protocol::meta::{Records, SnapshotMeta};
use crate::protocol::mutant::{self, Mutant};
use crate::types::{Index, NodeId, Position, Record};

// Records.
impl Core {
    /// Whether the records that follow `prev` in the sender's log may follow `prev` here (P5). Committed records are
    /// the same everywhere, so below the base there is nothing to compare.
    pub fn continues(&self, prev: Position) -> bool {
        let below = prev.index < self.log().base().index && !self.settings.is_available();
        below || self.log().holds(prev)
    }

    /// The greatest position here that could stand in the sender's log. Between sides only the end of the log
    /// counts: two logs that agree further down may still have diverged (P33).
    pub fn could_match(&self, prev: Position) -> Position {
        match self.settings.is_available() {
            true => self.last(),
            false => self.log().common_candidate(prev).unwrap_or(self.log().base()),
        }
    }

    /// Merges records of another log into this one: records that agree stay, records that conflict are cut (P5). Returns the index up to
    /// which this log was kept.
    pub fn merge(&mut self, records: &Records) -> Result<Index, Fault> {
        let fresh = records.iter().position(|record| !self.has(record));
        let Some(first) = fresh else {
            return self.cut_always(records);
        };
        let fresh: Records = match first {
            0 => records.clone(),
            _ => records[first..].iter().cloned().collect(),
        };
        // This is checked before anything is cut, so a batch that this binary cannot read leaves the log as
        // it is.
        if let Some(record) = fresh.iter().find(|r| r.entry.format() > self.settings.format) {
            let fault = Fault::UnknownFormat { index: record.index() };
            self.stop_if_proven(fault);
            return Err(fault);
        }
        let before = fresh[0].index() - 1;
        if self.log().position(before).is_some_and(|before| before.epoch > fresh[0].epoch()) {
            // The record before them is committed here and of a later epoch: these records belong to no log that this one has followed.
            return Err(Fault::CommittedConflict { index: before });
        }
        let stayed = self.cut_above(before)?;
        self.append(fresh);
        Ok(stayed)
    }

    fn has(&self, record: &Record) -> bool {
        record.index() <= self.log().base().index || self.log().holds(record.position)
    }

    fn cut_always(&mut self, records: &Records) -> Result<Index, Fault> {
        match (mutant::is_on(Mutant::TruncateAlways), records.last()) {
            (true, Some(last)) => self.cut_above(last.index()),
            _ => Ok(self.last().index),
        }
    }

    fn cut_above(&mut self, index: Index) -> Result<Index, Fault> {
        if index >= self.last().index {
            return Ok(self.last().index);
        }
        if self.settings.is_available() && !mutant::is_on(Mutant::CutInAvailable) {
            // The conflicting part is kept, and a later merge takes it in (P31).
            return Err(Fault::CommittedConflict { index: index + 1 });
        }
        match self.journal.cut_above(index) {
            Ok(write) => {
                self.out.push(write);
                Ok(index)
            }
            Err(fault) => {
                self.stop_if_proven(fault);
                Err(fault)
            }
        }
    }

    /// Answers the pull of a candidate if this node's promise is for that very claim, even if this node waits for the candidate
    /// no longer. After a later promise this log may hold records of a later epoch, which that candidate must not take (I11).
    pub fn on_pull(&mut self, from: NodeId, term: Term, after: Position) {
        if term != self.journal.promise() || term.epoch.leader != from {
            return;
        }
        let Some(prev) = self.log().common_candidate(after) else {
            return self.send_snapshot(from, term);
        };
        let (end, after) = self.journal.reported_end(&self.settings);
        // While the disk is full, the approval named only what is on disk, and no more is sent for it (P24,
        // C32).
        if prev.index > end.index {
            return;
        }
        let mut records = self.log().above(prev.index, &self.settings.limits);
        if records.last().is_some_and(|last| last.index() > end.index) {
            records = records.iter().filter(|record| record.index() <= end.index).cloned().collect();
        }
        self.send_after(from, Message::Pulled { term, prev, records }, after);
    }
}

// Snapshots.
impl Core {
    pub fn send_snapshot(&mut self, to: NodeId, term: Term) {
        let after = self.journal.disk().vote_and_log();
        self.out.push(Output::SendSnapshot { to, term, after });
    }

    /// Accepts a snapshot. A snapshot holds only what is committed, so it never takes back what is committed here (I7).
    /// If the log holds the snapshot's last record, the log stays: the records behind the snapshot may have been acknowledged,
    /// and the leader would find that a shorter log has forgotten them (P27).
    pub fn take_snapshot(&mut self, meta: SnapshotMeta) {
        let index = meta.index();
        if index <= self.journal.commit() && !mutant::is_on(Mutant::SnapshotGoesBack) {
            return;
        }
        if self.log().holds(meta.at) {
            return self.commit_to_leaders_index(index);
        }
        self.go_on_from(meta.clone(), Write::Install);
        self.out.push(Output::Restore(meta));
        self.note_formed();
        self.answer_committed_by_leader(index);
    }

    /// A state that includes this log and state replaces both.
    pub fn go_on_from(&mut self, meta: SnapshotMeta, write: fn(SnapshotMeta) -> Write) {
        if self.settings.is_available() {
            // Digests of another history say nothing about this one (P25).
            self.checkpoints = Default::default();
        }
        let write = self.journal.go_on_from(meta, write, self.mono());
        self.out.push(write);
    }

    pub fn on_snapshot_taken(&mut self, index: Index) {
        let write = self.journal.trim(index, &self.settings.limits);
        self.out.extend(write);
    }
}
