//! A disk that forgets what was not synced, tears the last write, and can lose everything.

use std::collections::VecDeque;

use eldest::protocol::{BadLine, Recovered, Seq, SnapshotMeta, Tail, Vote, Write, judge};
use eldest::types::{Boot, Incarnation, Index, Position, Record};

use crate::rng::Rng;
use crate::store::Store;

/// What survives a power cut.
#[derive(Clone, Debug, Default)]
pub struct Durable {
    pub incarnation: Incarnation,
    pub vote: Vote,
    pub snapshot: SnapshotMeta,
    pub store: Store,
    /// Above the snapshot, or reaching below it if they have not been trimmed.
    pub records: Vec<Record>,
    /// How far the log itself says that it is synced (P27). Written lazily, so it may lag.
    pub synced: Index,
}

#[derive(Clone, Debug)]
pub enum Op {
    Protocol(Seq, Write),
    Install(Seq, SnapshotMeta, Store),
    Snapshot(SnapshotMeta, Store),
}

#[derive(Clone, Debug, Default)]
pub struct Disk {
    pub durable: Durable,
    queue: VecDeque<Op>,
    /// How many of the queue the sync under way covers.
    syncing: usize,
    pub full: bool,
}

impl Disk {
    pub fn new(incarnation: Incarnation) -> Disk {
        let durable = Durable { incarnation, ..Durable::default() };
        Disk { durable, ..Disk::default() }
    }

    /// A full disk takes no records. A node that knows it does not try; one that tries learns nothing.
    pub fn push(&mut self, op: Op) {
        let op = match op {
            Op::Protocol(seq, Write::Append(_)) if self.full => Op::Protocol(seq, Write::Append([].into())),
            op => op,
        };
        self.queue.push_back(op);
    }

    /// Starts a sync if none is under way and there is something to sync.
    pub fn start_sync(&mut self) -> bool {
        let start = self.syncing == 0 && !self.queue.is_empty();
        if start {
            self.syncing = self.queue.len();
        }
        start
    }

    /// The sync has ended: what it covered is safe. Returns the last write's number.
    pub fn finish_sync(&mut self) -> Vec<Op> {
        let done: Vec<Op> = self.queue.drain(..self.syncing).collect();
        self.syncing = 0;
        for op in &done {
            self.durable.apply(op);
        }
        done
    }

    /// Power is cut: some of what was on its way arrived, in order, the last one perhaps in part.
    pub fn lose_power(&mut self, rng: &mut Rng) {
        let kept = rng.below(self.queue.len() as u64 + 1) as usize;
        for op in self.queue.drain(..kept).collect::<Vec<_>>() {
            self.durable.apply(&op);
        }
        if let Some(Op::Protocol(seq, Write::Append(records))) = self.queue.pop_front() {
            let torn = rng.below(records.len() as u64 + 1) as usize;
            let part = Write::Append(records[..torn].to_vec().into());
            self.durable.apply(&Op::Protocol(seq, part));
        }
        self.queue.clear();
        self.syncing = 0;
    }

    /// Every record that is on the disk or on its way there.
    pub fn positions(&self) -> impl Iterator<Item = Position> + '_ {
        let queued = self.queue.iter().flat_map(|op| match op {
            Op::Protocol(_, Write::Append(records)) => &records[..],
            _ => &[],
        });
        self.durable.records.iter().chain(queued).map(|record| record.position)
    }

    pub fn wipe(&mut self, incarnation: Incarnation) {
        let store = self.durable.store.blank();
        *self = Disk::new(incarnation);
        self.durable.store = store;
    }

    /// A bit flips in a record that is synced. The node finds it when it starts (P27).
    pub fn damage(&mut self, rng: &mut Rng, incarnation: Incarnation) -> bool {
        let durable = &mut self.durable;
        let above = durable.snapshot.index();
        let candidates: Vec<Index> =
            durable.records.iter().map(Record::index).filter(|index| *index > above).collect();
        if candidates.is_empty() {
            return false;
        }
        let bad = BadLine { index: *rng.pick(&candidates), synced: durable.synced };
        // The last batch has no marker yet: damage there cannot be told from a torn write.
        if bad.index > durable.synced {
            return false;
        }
        durable.records.retain(|record| record.index() < bad.index);
        durable.synced = bad.index - 1;
        if judge(bad) == Tail::Doubtful {
            durable.incarnation = incarnation;
            durable.vote.admitted = false;
        }
        true
    }

    pub fn recover(&self, boot: Boot) -> (Recovered, Store) {
        let above = self.durable.snapshot.index();
        let records = self.durable.records.iter().filter(|record| record.index() > above);
        let recovered = Recovered {
            boot,
            incarnation: self.durable.incarnation,
            vote: self.durable.vote,
            base: self.durable.snapshot.clone(),
            records: records.cloned().collect(),
        };
        (recovered, self.durable.store.clone())
    }
}

impl Durable {
    pub fn last(&self) -> Index {
        self.records.last().map_or(self.snapshot.index(), Record::index).max(self.snapshot.index())
    }

    fn apply(&mut self, op: &Op) {
        match op {
            Op::Protocol(_, Write::Vote(vote)) => self.vote = *vote,
            Op::Protocol(_, Write::Append(records)) => {
                // The marker rides in the next batch: it vouches for what was there before.
                self.synced = self.last();
                self.records.extend(records.iter().cloned());
            }
            Op::Protocol(_, Write::Truncate { above }) => {
                self.records.retain(|record| record.index() <= *above);
                self.synced = self.synced.min(*above);
            }
            Op::Protocol(_, Write::Trim { upto }) => {
                assert!(self.snapshot.index() >= *upto, "trimmed what no snapshot holds");
                self.records.retain(|record| record.index() > *upto);
            }
            Op::Protocol(_, Write::Install(_) | Write::Rebase(_)) => {}
            Op::Install(_, meta, store) => {
                self.snapshot = meta.clone();
                self.store = store.clone();
                self.records.clear();
                self.synced = meta.index();
            }
            Op::Snapshot(meta, store) => {
                if meta.index() > self.snapshot.index() {
                    self.snapshot = meta.clone();
                    self.store = store.clone();
                }
            }
        }
    }
}
