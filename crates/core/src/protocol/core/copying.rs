//! A node gives and takes what another log lacks: by records (P5), or by a snapshot (P6, P26).

use super::Core;
use crate::protocol::messages::{Fault, Message, Output, Term, Write};
use crate::protocol::meta::{Records, SnapshotMeta};
use crate::protocol::mutant::{self, Mutant};
use crate::types::{Index, NodeId, Position, Record};

// Records.
impl Core {
    /// Whether what follows `prev` in its sender's log may follow it here (P5). Committed records are
    /// the same everywhere, so below the base there is nothing to compare.
    pub fn continues(&self, prev: Position) -> bool {
        let below = prev.index < self.log().base().index && !self.settings.is_available();
        below || self.log().holds(prev)
    }

    /// The greatest position here that could stand in the sender's log. Among sides only the end of the log tells
    /// anything: what agrees further down may have gone different ways (P33).
    pub fn could_match(&self, prev: Position) -> Position {
        match self.settings.is_available() {
            true => self.last(),
            false => self.log().common_candidate(prev).unwrap_or(self.log().base()),
        }
    }

    /// Takes records of another log into this one: what agrees stays, what conflicts is cut (P5). Says up to where this log has stayed.
    pub fn merge(&mut self, records: &Records) -> Result<Index, Fault> {
        let fresh = records.iter().position(|record| !self.has(record));
        let Some(first) = fresh else {
            return self.cut_always(records);
        };
        let fresh: Records = match first {
            0 => records.clone(),
            _ => records[first..].iter().cloned().collect(),
        };
        if let Some(record) = fresh.iter().find(|r| r.entry.format() > self.settings.format) {
            let fault = Fault::UnknownFormat { index: record.index() };
            self.stop_on_word(fault);
            return Err(fault);
        }
        let before = fresh[0].index() - 1;
        if self.log().position(before).is_some_and(|before| before.epoch > fresh[0].epoch()) {
            // What stands before them is committed here, and of a later epoch: they are of no log that this one has followed.
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
            // It is kept, and merged when its time comes (P31).
            return Err(Fault::CommittedConflict { index: index + 1 });
        }
        match self.journal.cut_above(index) {
            Ok(write) => {
                self.out.push(write);
                Ok(index)
            }
            Err(fault) => {
                self.stop_on_word(fault);
                Err(fault)
            }
        }
    }

    /// A candidate pulls. Whoever promised that very claim answers, leader or not; nobody else does.
    pub fn on_pull(&mut self, from: NodeId, term: Term, after: Position) {
        if term != self.journal.promise() || term.epoch.leader != from {
            return;
        }
        let Some(prev) = self.log().common_candidate(after) else {
            return self.send_snapshot(from, term);
        };
        let (end, after) = self.journal.told_end(&self.settings);
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

    /// A snapshot holds only what is committed, so it never takes back what is committed here (I7).
    pub fn take_snapshot(&mut self, meta: SnapshotMeta) {
        let index = meta.index();
        if index <= self.journal.commit() && !mutant::is_on(Mutant::SnapshotGoesBack) {
            return;
        }
        if self.log().holds(meta.at) {
            return self.commit_as_told(index);
        }
        self.go_on_from(meta.clone(), Write::Install);
        self.out.push(Output::Restore(meta));
        self.note_formed();
        self.decide_as_told(index);
    }

    /// Log and state are replaced by a state that includes them.
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
