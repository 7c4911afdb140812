//! The writes that were given to the disk, and those that the disk has reported as durable (P29).
//!
//! A message names the last vote and the last log write that it relies on, and not every write so far. So an
//! answer to a beat can leave while records are still being written: if disks stall for a second, the beats
//! are still answered, and a leader that no other node could replace does not step down (P29,
//! `Mutant::BeatsWaitForRecords`).

use std::collections::VecDeque;

use crate::types::Index;

/// The number of a write. A write is durable only if all earlier writes are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(pub u64);

/// The writes that must be on disk before a message leaves: this promise, and the log up to this write. A promise may be on disk ahead of
/// records that were written before it and find no room; no other write overtakes another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct After {
    pub promise: Seq,
    pub log: Seq,
}

impl After {
    /// `durable`: every write up to this one is on disk. `promised`: the promise of every vote up to this one is on disk.
    pub fn is_met(self, durable: Seq, promised: Seq) -> bool {
        self.log <= durable && self.promise <= durable.max(promised)
    }
}

/// Writes are numbered in order. The last write of each kind is kept, so that a message can name
/// the durability that it needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Durability {
    issued: Seq,
    done: Seq,
    promised: Seq,
    vote: Seq,
    log: Seq,
    /// The last write that replaces log and state by a snapshot.
    install: Seq,
    /// Appends under way, each with its write and the index that it reaches.
    appends: VecDeque<(Seq, Index)>,
    /// Every record up to this index is on this node's own disk.
    upto: Index,
}

impl Durability {
    pub fn starting_at(upto: Index) -> Durability {
        Durability { upto, ..Durability::default() }
    }

    fn next(&mut self) -> Seq {
        self.issued.0 += 1;
        self.issued
    }

    pub fn vote_written(&mut self) -> Seq {
        self.vote = self.next();
        self.vote
    }

    pub fn appended(&mut self, upto: Index) -> Seq {
        self.log = self.next();
        self.appends.push_back((self.log, upto));
        self.log
    }

    /// Records above `index` are removed: those that were still being written no longer count. An
    /// acknowledgement waits for the removal as for an append: after a crash the removed records could be
    /// back.
    pub fn truncated(&mut self, index: Index) -> Seq {
        for (_, upto) in &mut self.appends {
            *upto = (*upto).min(index);
        }
        self.upto = self.upto.min(index);
        self.log = self.next();
        self.log
    }

    /// The snapshot replaces the log. Until that is durable, only the records on disk up to `index` count.
    pub fn installed(&mut self, index: Index) -> Seq {
        self.install = self.truncated(index);
        self.appends.push_back((self.log, index));
        self.log
    }

    /// No message waits for a trim: a durable snapshot holds what it removes.
    pub fn trimmed(&mut self) -> Seq {
        self.next()
    }

    pub fn done(&mut self, seq: Seq) {
        self.done = self.done.max(seq);
        while let Some((append, upto)) = self.appends.front().copied() {
            if append > self.done {
                break;
            }
            self.upto = self.upto.max(upto);
            self.appends.pop_front();
        }
    }

    /// The promise of every vote up to this one is on disk, ahead of writes that find no room.
    pub fn promised(&mut self, seq: Seq) {
        self.promised = self.promised.max(seq);
    }

    /// The durability that a message needs if it binds this node to its promise (P2).
    pub fn vote(&self) -> After {
        After { promise: self.vote, log: Seq::default() }
    }

    /// The durability that an acknowledgement needs: promise and records.
    pub fn vote_and_log(&self) -> After {
        After { promise: self.vote, log: self.log }
    }

    pub fn is_met(&self, after: After) -> bool {
        after.is_met(self.done, self.promised)
    }

    /// Whether records are still being written to disk, but no snapshot that replaces the log.
    pub fn awaits_only_records(&self) -> bool {
        self.log > self.done && !self.is_installing()
    }

    pub fn is_installing(&self) -> bool {
        self.install > self.done
    }

    pub fn upto(&self) -> Index {
        self.upto
    }
}
