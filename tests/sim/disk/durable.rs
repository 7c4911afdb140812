//! An onlooker's knowledge of a disk: what its writer has reported as durable, what is under way, and so what
//! a process may find when it starts (P29).

use std::collections::VecDeque;

use eldest::protocol::{Records, Recovered, Seq, SnapshotMeta, Term, Vote};
use eldest::replica::Start;
use eldest::store::Store;
use eldest::types::{Incarnation, Index, Position, Record};

use crate::checks::{Check, Violation, ensure};
use crate::state::State;

const FOUND: &str = "P29 what is found was written";
const STATE: &str = "P26 a snapshot is the state";

/// A state that is written to disk.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    pub meta: SnapshotMeta,
    /// The state that it must come to.
    pub state: State,
}

/// A change that is under way.
#[derive(Clone, Debug)]
pub enum Change {
    Vote(Vote),
    Append(Records),
    Truncate {
        above: Index,
    },
    Trim {
        upto: Index,
    },
    /// A snapshot replaces log and state.
    Replace(Box<Snapshot>),
}

/// The part of a disk that survives a power cut.
#[derive(Clone, Debug, Default)]
pub struct Durable {
    pub incarnation: Incarnation,
    pub vote: Vote,
    pub snapshot: Snapshot,
    /// Records above the snapshot; they may reach below it if they have not been trimmed.
    pub records: Vec<Record>,
    /// Changes given to the writer that it has not reported as durable.
    pending: VecDeque<(Seq, Change)>,
    /// The snapshot under way in the background.
    background: Option<Snapshot>,
    /// The incarnation of the disk before it was damaged or its state was set aside; its next process does
    /// not continue it.
    forgot: Option<Incarnation>,
    /// The first record that no longer passes its checksum.
    damaged: Option<Index>,
    /// The promise is lost, except for what the log proves of it.
    promise_lost: bool,
    /// An operator says that the disk counts.
    trusted: bool,
}

impl Change {
    fn vote(&self) -> Option<Vote> {
        match self {
            Change::Vote(vote) => Some(*vote),
            _ => None,
        }
    }
}

impl Durable {
    pub fn of(state: State) -> Durable {
        let snapshot = Snapshot { state, ..Snapshot::default() };
        Durable { snapshot, ..Durable::default() }
    }

    pub fn last(&self) -> Index {
        let snapshot = self.snapshot.meta.index();
        self.records.last().map_or(snapshot, Record::index).max(snapshot)
    }

    pub fn newest(&self) -> Position {
        self.records.last().map_or(self.snapshot.meta.at, |record| record.position)
    }

    pub fn positions(&self) -> impl Iterator<Item = Position> + '_ {
        let pending = self.pending.iter().flat_map(|(_, change)| match change {
            Change::Append(records) => &records[..],
            _ => &[],
        });
        self.records.iter().chain(pending).map(|record| record.position)
    }

    pub fn push(&mut self, seq: Seq, change: Change) {
        self.pending.push_back((seq, change));
    }

    /// The writer reports everything up to here as durable. Returns the snapshots that have become the disk's
    /// state by it.
    pub fn reached(&mut self, seq: Seq) -> Vec<Snapshot> {
        let mut states = Vec::new();
        while self.pending.front().is_some_and(|(at, _)| *at <= seq) {
            let (_, change) = self.pending.pop_front().expect("looked at");
            if let Change::Replace(snapshot) = &change {
                states.push((**snapshot).clone());
            }
            self.apply(change);
        }
        states
    }

    /// The writer reports that the promise of every vote up to this one is on disk, although earlier writes
    /// wait for room.
    pub fn promised(&mut self, seq: Seq) {
        let votes = self.pending.iter().filter(|(at, _)| *at <= seq);
        if let Some(vote) = votes.filter_map(|(_, change)| change.vote()).next_back() {
            self.promise_ahead(vote, seq);
        }
    }

    /// Sets this promise ahead; no vote up to `upto` takes it back.
    fn promise_ahead(&mut self, ahead: Vote, upto: Seq) {
        self.vote = self.vote.bound_by(ahead);
        for (_, change) in self.pending.iter_mut().filter(|(at, _)| *at <= upto) {
            if let Change::Vote(vote) = change {
                *vote = vote.bound_by(ahead);
            }
        }
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::Vote(vote) => self.vote = vote,
            Change::Append(records) => {
                let good = |record: &&Record| self.damaged.is_none_or(|bad| record.index() < bad);
                self.records.extend(records.iter().filter(good).cloned());
            }
            Change::Truncate { above } => self.records.retain(|record| record.index() <= above),
            Change::Trim { upto } => {
                assert!(self.snapshot.meta.index() >= upto, "trimmed what no snapshot holds");
                self.records.retain(|record| record.index() > upto);
            }
            Change::Replace(snapshot) => {
                self.snapshot = *snapshot;
                self.records.clear();
            }
        }
    }

    pub fn begin_snapshot(&mut self, snapshot: Snapshot) {
        self.background = Some(snapshot);
    }

    /// The snapshot has ended. If one was installed meanwhile, that is the newer one.
    pub fn end_snapshot(&mut self, written: bool) {
        let taken = self.background.take().filter(|_| written);
        if let Some(snapshot) = taken.filter(|new| new.meta.index() > self.snapshot.meta.index()) {
            self.snapshot = snapshot;
        }
    }

    /// The snapshot with this position, whether it is on the disk or under way.
    pub fn knows(&self, meta: &SnapshotMeta) -> Option<&Snapshot> {
        let replaced = self.pending.iter().filter_map(|(_, change)| match change {
            Change::Replace(snapshot) => Some(&**snapshot),
            _ => None,
        });
        let all = [&self.snapshot].into_iter().chain(&self.background).chain(replaced);
        all.into_iter().find(|snapshot| snapshot.meta == *meta)
    }

    /// The record at this index no longer passes its checksum, and what follows it is worth nothing either.
    pub fn is_damaged_at(&mut self, index: Index) {
        self.forgets();
        self.damaged = Some(index);
        self.records.retain(|record| record.index() < index);
    }

    pub fn loses_promise(&mut self) {
        self.forgets();
        self.promise_lost = true;
    }

    pub fn is_trusted(&mut self) {
        self.trusted = true;
    }

    /// Log and state were set aside.
    pub fn starts_over(&mut self) {
        self.forgets();
        self.settle();
        self.snapshot = Snapshot { state: self.snapshot.state.blank(), ..Snapshot::default() };
        self.records.clear();
    }

    fn forgets(&mut self) {
        self.forgot = self.forgot.or(Some(self.incarnation));
        self.vote.admitted = false;
        self.incarnation = Incarnation::default();
    }

    /// The index up to which a snapshot may stand on the disk.
    pub fn covered(&self) -> Index {
        let replaced = self.pending.iter().filter_map(|(_, change)| match change {
            Change::Replace(snapshot) => Some(&**snapshot),
            _ => None,
        });
        let all = [&self.snapshot].into_iter().chain(&self.background).chain(replaced);
        all.map(|snapshot| snapshot.meta.index()).max().unwrap_or(0)
    }

    /// No change is under way any more: all that has come is on the disk.
    fn settle(&mut self) {
        self.pending.clear();
        self.background = None;
    }

    /// A process has opened the disk: what it found must be what some prefix of the changes made.
    pub fn found(
        &mut self,
        recovered: &Recovered,
        start: &Start,
        doubtful: bool,
        findings: impl Fn() -> String,
    ) -> Check {
        ensure(!doubtful || self.forgot.is_some(), "P10 a disk that lost nothing is not doubted", &findings)?;
        let goes_on = self.forgot == Some(recovered.incarnation) || recovered.vote.admitted;
        let admits = self.forgot.is_none() || !goes_on;
        ensure(admits || self.trusted, "P27 a disk admits what it lost", &findings)?;
        let mut written = self.explain(recovered, &start.store).ok_or_else(|| Violation {
            checker: FOUND,
            what: format!("{}; {}", findings(), self.differs_from(recovered, &start.store)),
        })?;
        let digest = written.snapshot.state.store.digest();
        ensure(start.store.digest() == digest, STATE, || {
            format!("{} at {} is not what was written down", findings(), written.snapshot.meta.at)
        })?;
        written.settle();
        written.incarnation = recovered.incarnation;
        (written.forgot, written.damaged) = (None, None);
        (written.promise_lost, written.trusted) = (false, false);
        written.vote = recovered.vote;
        *self = written;
        Ok(())
    }

    /// The disk as it was found, explained by the changes that were to be written to it.
    fn explain(&self, recovered: &Recovered, store: &Store) -> Option<Durable> {
        let mut disk = self.clone();
        let mut pending = std::mem::take(&mut disk.pending);
        loop {
            if let Some(found) = disk.with_promise_ahead(&pending, recovered, store) {
                return Some(found);
            }
            let (_, change) = pending.pop_front()?;
            for part in disk.parts(&change) {
                let mut disk = disk.clone();
                disk.apply(part);
                if let Some(found) = disk.with_promise_ahead(&pending, recovered, store) {
                    return Some(found);
                }
            }
            disk.apply(change);
        }
    }

    /// The possible remains of a change that breaks off: some of the records, or a log whose last segments
    /// are cut.
    fn parts(&self, change: &Change) -> Vec<Change> {
        match change {
            Change::Append(records) => {
                (1..records.len()).map(|torn| Change::Append(records[..torn].to_vec().into())).collect()
            }
            Change::Truncate { above } => {
                (above + 1..self.last()).map(|above| Change::Truncate { above }).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The disk as it is, or with the promise of a vote that went ahead of writes that found no room.
    fn with_promise_ahead(
        &self,
        pending: &VecDeque<(Seq, Change)>,
        recovered: &Recovered,
        store: &Store,
    ) -> Option<Durable> {
        let votes = pending.iter().filter_map(|(_, change)| change.vote());
        let ahead = [self.vote].into_iter().chain(votes);
        ahead.filter(|vote| self.has_promised(vote.promise, recovered)).find_map(|ahead| {
            let vote = self.vote.bound_by(ahead);
            Durable { vote, ..self.clone() }.with_background(recovered, store)
        })
    }

    /// The disk as it is, or with the snapshot that was under way.
    fn with_background(&self, recovered: &Recovered, store: &Store) -> Option<Durable> {
        let mut disk = self.clone();
        if disk.is(recovered, store) {
            return Some(disk);
        }
        disk.end_snapshot(true);
        disk.is(recovered, store).then_some(disk)
    }

    fn is(&self, recovered: &Recovered, store: &Store) -> bool {
        let above = self.snapshot.meta.index();
        // A log may reach farther down than it has to.
        let [written, found] = [&self.records, &recovered.records]
            .map(|records| records.iter().filter(move |record| record.index() > above));
        let same_disk = self.incarnation == recovered.incarnation
            || self.incarnation == Incarnation::default()
            || self.trusted;
        same_disk
            && self.has_promised(self.vote.promise, recovered)
            && (self.trusted || recovered.vote.admitted == (self.vote.admitted && self.forgot.is_none()))
            && store.applied() == self.snapshot.meta.at
            && store.digest() == self.snapshot.state.store.digest()
            && recovered.base.index() <= above
            && written.eq(found)
    }

    fn has_promised(&self, promise: Term, recovered: &Recovered) -> bool {
        promise == recovered.vote.promise
            || (self.promise_lost && recovered.vote.promise.epoch <= promise.epoch)
    }

    fn differs_from(&self, recovered: &Recovered, store: &Store) -> String {
        let positions = |records: &[Record]| records.last().map(|record| record.position);
        format!(
            "written: {} {:?} {} {:x} up to {:?}, then {:?}; found: {} {:?} {} {:x} up to {:?}",
            self.incarnation,
            self.vote,
            self.snapshot.meta.at,
            self.snapshot.state.store.digest(),
            positions(&self.records),
            self.pending,
            recovered.incarnation,
            recovered.vote,
            store.applied(),
            store.digest(),
            positions(&recovered.records),
        )
    }
}
