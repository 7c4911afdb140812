//! The state that a node must not forget: its promise and its log, how much of them is on its disk, and how much is committed. Only this
//! module changes that state. A change that must last returns the write that makes it last.

use std::collections::BTreeMap;

use super::durability::{After, Durability, Seq};
use super::log::Log;
use super::messages::{Fault, Output, Recovered, Term, Vote, Write};
use super::meta::{Records, SnapshotMeta};
use super::mutant::{self, Mutant};
use super::settings::{Limits, Settings};
use crate::types::{ClaimId, Epoch, Index, Position, Record, RequestId, Span, Time, Vector};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Journal {
    vote: Vote,
    log: Log,
    disk: Durability,
    commit: Index,
    /// The disk has no room for records (P24).
    full: bool,
    /// The time at which this process added the newest record. `None`: the record was there when the process started.
    stamped_at: Option<Time>,
    /// The size of the records that are not committed.
    uncommitted_bytes: usize,
}

impl Journal {
    pub fn new(settings: &Settings, recovered: Recovered) -> Journal {
        let Recovered { mut base, records, mut vote, .. } = recovered;
        // A log without a vector was written in safe mode, or is new: it is one history, up to here (P31).
        base.vector = settings.is_available().then(|| base.vector.unwrap_or(Vector::linear(base.at)));
        let log = Log::new(base, records);
        // An earlier leader may rely on either lease: the stored one, or the configured one. Earlier versions stored no lease.
        vote.lease = vote.lease.max(settings.timing.lease);
        // A founder may have crashed after its first record was stored and before its vote was. It is not
        // blank (P9).
        vote.formed |= !log.is_empty();
        if vote.promise.epoch < log.last().epoch {
            // The promise file is lost: the log shows the least promise that the file must have held (P27).
            vote.promise = Term { epoch: log.last().epoch, claim: ClaimId::default() };
        }
        // The commit index is not stored. After a start it is the base, which may be below the snapshot:
        // records are kept for followers that lag. It rises from there when this node leads, or hears a
        // leader.
        let (disk, commit) = (Durability::starting_at(log.last().index), log.base().index);
        let uncommitted_bytes = log.bytes_above(commit);
        Journal { vote, log, disk, commit, full: false, stamped_at: None, uncommitted_bytes }
    }

    pub fn vote(&self) -> Vote {
        self.vote
    }

    pub fn promise(&self) -> Term {
        self.vote.promise
    }

    pub fn log(&self) -> &Log {
        &self.log
    }

    pub fn disk(&self) -> &Durability {
        &self.disk
    }

    pub fn commit(&self) -> Index {
        self.commit
    }

    pub fn uncommitted_bytes(&self) -> usize {
        self.uncommitted_bytes
    }

    pub fn is_full(&self) -> bool {
        self.full
    }

    pub fn stamped_at(&self) -> Option<Time> {
        self.stamped_at
    }

    /// The end of the log that this node may report with a promise or with the answer to a beat, and what must be on disk first. While the
    /// disk is full, records wait for room. In that case the message waits only for the promise, and reports the end of the records on disk
    /// (P24). In available mode it reports the end of the log, because such a message also says what the whole log includes.
    pub fn reported_end(&self, settings: &Settings) -> (Position, After) {
        let stuck = self.full && self.disk.awaits_only_records() && !settings.is_available();
        if !stuck || mutant::is_on(Mutant::FullWaitsForRoom) {
            return (self.log.last(), self.disk.vote_and_log());
        }
        // A snapshot, which is durable, holds everything below the base.
        let there = self.log.position(self.disk.upto()).unwrap_or(self.log.base());
        let named = if mutant::is_on(Mutant::FullTellsAll) { self.log.last() } else { there };
        (named, self.disk.vote())
    }

    /// Every write up to this one is on disk.
    pub fn done(&mut self, seq: Seq) {
        self.disk.done(seq);
    }

    /// The promise of every vote up to this one is on disk, even if earlier writes still wait for room.
    pub fn promised(&mut self, seq: Seq) {
        self.disk.promised(seq);
    }

    pub fn set_full(&mut self, full: bool) {
        self.full = full;
    }

    /// The write of the current vote.
    pub fn write_vote(&mut self) -> Output {
        Output::Write { seq: self.disk.vote_written(), write: Write::Vote(self.vote) }
    }

    /// Raises the promise: from now on nothing below it is accepted (P2).
    pub fn raise_promise(&mut self, term: Term) -> Output {
        debug_assert!(
            term.epoch > self.vote.promise.epoch || mutant::is_on(Mutant::SameEpochTwice),
            "a promise only rises (P2)"
        );
        self.vote.promise = term;
        self.write_vote()
    }

    /// A disk that lost its promise file knows the epoch from its log, but not the claim that the promise was for (P27).
    pub fn learn_claim(&mut self, term: Term) -> Option<Output> {
        let promise = self.vote.promise;
        if promise.epoch != term.epoch || promise.claim != ClaimId::default() {
            return None;
        }
        self.vote.promise.claim = term.claim;
        Some(self.write_vote())
    }

    /// Stores how long a leader may rely on this node: the node's next process must know it (P11).
    pub fn note_lease(&mut self, lease: Span) -> Output {
        self.vote.lease = lease;
        self.write_vote()
    }

    /// From now on this disk belongs to a cluster. `admitted`: its log says that the disk counts.
    pub fn note_formed(&mut self, admitted: bool) -> Option<Output> {
        let admitted = self.vote.admitted || admitted;
        if self.vote.formed && admitted == self.vote.admitted {
            return None;
        }
        (self.vote.formed, self.vote.admitted) = (true, admitted);
        Some(self.write_vote())
    }

    /// Notes that the log says that this disk counts. The next write of the vote stores this.
    pub fn note_admitted(&mut self) {
        self.vote.admitted = true;
    }

    /// This is the one place where records enter the log.
    pub fn append(&mut self, records: Records, now: Time) -> Output {
        debug_assert!(!self.full || mutant::is_on(Mutant::AckWhenFull), "wrote to a full disk (P24)");
        for record in records.iter() {
            self.uncommitted_bytes += record.entry.size();
            self.log.push(record.clone());
        }
        self.stamped_at = Some(now);
        Output::Write { seq: self.disk.appended(self.log.last().index), write: Write::Append(records) }
    }

    /// This is the one place where records leave the log at its end. Committed records are never cut.
    pub fn cut_above(&mut self, index: Index) -> Result<Output, Fault> {
        if index < self.commit {
            return Err(Fault::CommittedConflict { index: index + 1 });
        }
        self.log.truncate(index);
        self.uncommitted_bytes = self.log.bytes_above(self.commit);
        Ok(Output::Write { seq: self.disk.truncated(index), write: Write::Truncate { above: index } })
    }

    /// A state that includes this log and state replaces both.
    pub fn go_on_from(&mut self, meta: SnapshotMeta, write: fn(SnapshotMeta) -> Write, now: Time) -> Output {
        let index = meta.index();
        self.log.reset(meta.clone());
        self.commit = index;
        self.uncommitted_bytes = 0;
        self.stamped_at = Some(now);
        Output::Write { seq: self.disk.installed(index), write: write(meta) }
    }

    /// The snapshot is durable: the records below it are dropped, except those that lagging followers may need (P26).
    pub fn trim(&mut self, index: Index, limits: &Limits) -> Option<Output> {
        let upto = index.min(self.commit).min(self.log.kept_above(limits));
        (upto > self.log.base().index).then(|| {
            self.log.trim(upto);
            Output::Write { seq: self.disk.trimmed(), write: Write::Trim { upto } }
        })
    }

    /// This is the one place where the commit index rises, apart from a state that replaces the log. Returns the records that are newly
    /// committed.
    pub fn commit_to(&mut self, index: Index) -> Vec<Record> {
        let index = index.min(self.log.last().index);
        if index <= self.commit {
            return Vec::new();
        }
        let records = self.log.range(self.commit, index);
        let bytes: usize = records.iter().map(|record| record.entry.size()).sum();
        self.uncommitted_bytes = self.uncommitted_bytes.saturating_sub(bytes);
        self.commit = index;
        records
    }

    /// Checks what must be true at all times (I11).
    pub fn validate(&self) {
        let last = self.log.last();
        assert!(self.commit <= last.index, "commit beyond the log");
        assert!(self.log.base().index <= self.commit, "trimmed what is not committed");
        assert!(self.disk.upto() <= last.index, "durable beyond the log");
        assert!(
            last.epoch <= self.vote.promise.epoch || mutant::is_on(Mutant::AppendKeepsPromise),
            "a record above the promise (I11)"
        );
    }
}

/// Clients' writes in this node's log, by index. The record that is committed at that index decides the answer: refused must mean never
/// applied (P15, I8).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Undecided {
    writes: BTreeMap<Index, (Epoch, RequestId)>,
}

impl Undecided {
    pub fn add(&mut self, position: Position, request: RequestId) -> Option<RequestId> {
        self.writes.insert(position.index, (position.epoch, request)).map(|(_, before)| before)
    }

    /// Removes the first write at or below `upto`, and returns its position.
    pub fn take(&mut self, upto: Index) -> Option<(Position, RequestId)> {
        let entry = self.writes.first_entry().filter(|entry| *entry.key() <= upto)?;
        let (index, (epoch, request)) = entry.remove_entry();
        Some((Position::new(epoch, index), request))
    }

    pub fn drain(&mut self) -> impl Iterator<Item = RequestId> {
        std::mem::take(&mut self.writes).into_values().map(|(_, request)| request)
    }
}
