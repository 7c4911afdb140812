//! The process's end of a disk: the product's writer and snapshots, and what waits for them.

use std::sync::{Arc, Mutex};

use eldest::protocol::Seq;
use eldest::replica::SnapshotOrder;
use eldest::types::Index;
use eldest_storage::node::{DiskState, Encoder, lock, take};
use eldest_storage::snapshot::{Incoming, Merged, SnapshotError, Snapshots};
use eldest_storage::{Boundary, DiskWriter, Idle, Job, Lines};

use crate::rng::Rng;

/// The outcome of a snapshot.
pub type Taken = Result<Index, SnapshotError>;

#[derive(Debug)]
pub struct Mounted {
    writer: DiskWriter,
    pub encoder: Encoder,
    snapshots: Arc<Mutex<Snapshots>>,
    /// Jobs given to the writer that it has not begun.
    jobs: Vec<(Seq, Job)>,
    /// The number of jobs in the round under way.
    syncing: usize,
    /// The writer's reports so far.
    pub heard: DiskState,
    /// The snapshot under way.
    snapshot: Option<(Boundary, SnapshotOrder)>,
    /// A merge that is done, but for its place in the chain.
    merged: Option<Merged>,
    /// There may be something to merge.
    grown: bool,
    /// A task is scheduled that makes room, or tries to.
    pub asked: bool,
    /// A task is scheduled that looks whether the log can say what is durable.
    pub watched: bool,
    /// Counts the rounds.
    pub stepped: u64,
}

impl Mounted {
    pub fn new(idle: Idle, lines: Lines, snapshots: Arc<Mutex<Snapshots>>) -> Mounted {
        Mounted {
            writer: idle.into_writer(),
            encoder: Encoder::new(lines),
            snapshots,
            jobs: Vec::new(),
            syncing: 0,
            heard: DiskState::default(),
            snapshot: None,
            merged: None,
            grown: false,
            asked: false,
            watched: false,
            stepped: 0,
        }
    }

    pub fn push(&mut self, seq: Seq, job: Job) {
        self.jobs.push((seq, job));
    }

    /// Starts a round if none is under way and there is something to do.
    pub fn start_sync(&mut self) -> bool {
        let start = self.syncing == 0 && !self.jobs.is_empty();
        if start {
            self.syncing = self.jobs.len();
        }
        start
    }

    /// The round has ended: its jobs take effect now.
    pub fn finish_sync(&mut self) {
        let jobs: Vec<_> = self.jobs.drain(..self.syncing).collect();
        self.syncing = 0;
        self.stepped += 1;
        self.writer.step(jobs, &mut |report| self.heard.note(report));
    }

    /// Marks in the log how far it is durable, if nothing has come since then.
    pub fn mark(&mut self, stepped: u64) {
        self.watched = false;
        if stepped == self.stepped {
            self.step_idle();
        }
    }

    fn step_idle(&mut self) {
        if self.syncing == 0 && self.jobs.is_empty() {
            self.writer.step([], &mut |report| self.heard.note(report));
        }
    }

    pub fn make_room(&mut self) {
        self.asked = false;
        if self.writer.is_starved() {
            self.step_idle();
        }
        self.writer.make_room(&mut |report| self.heard.note(report));
    }

    pub fn wants_room(&self) -> bool {
        !self.asked && (self.writer.wanted().is_some() || self.writer.is_starved())
    }

    pub fn is_unmarked(&self) -> bool {
        self.writer.is_unmarked()
    }

    /// Whether anything is being done to files.
    pub fn is_busy(&self) -> bool {
        !self.jobs.is_empty() || self.snapshot.is_some() || self.merged.is_some() || self.asked
    }

    /// Goes on with the open work in any order, until the process dies of it.
    pub fn go_on_a_little(&mut self, rng: &mut Rng) {
        for part in 0..4 {
            match (part + rng.below(4)) % 4 {
                0 => {
                    let begun = rng.below(self.jobs.len() as u64 + 1) as usize;
                    self.syncing = begun;
                    self.finish_sync();
                }
                1 => drop(self.write_snapshot()),
                2 => self.merge(),
                _ => self.make_room(),
            }
        }
    }

    pub fn begin_snapshot(&mut self, boundary: Boundary, order: SnapshotOrder) {
        self.snapshot = Some((boundary, order));
    }

    pub fn write_snapshot(&mut self) -> Option<Taken> {
        let (boundary, order) = self.snapshot.take()?;
        self.grown = true;
        Some(take(&self.snapshots, boundary, order))
    }

    /// Takes the next merge up to its last step. Returns whether there is one.
    pub fn begin_merge(&mut self) -> bool {
        if self.merged.is_none() && std::mem::take(&mut self.grown) {
            let plan = lock(&self.snapshots).plan_merge();
            // A merge that fails leaves a chain that is longer, and as good as before.
            self.merged = plan.ok().flatten().and_then(|plan| plan.run().ok());
            return self.merged.is_some();
        }
        false
    }

    pub fn merge(&mut self) {
        if let Some(merged) = self.merged.take() {
            self.grown = true;
            let _ = lock(&self.snapshots).commit_merge(merged);
        }
    }

    /// The newest state in the form in which it is sent.
    pub fn export(&self) -> Result<Option<(Boundary, Vec<u8>)>, SnapshotError> {
        let Some(mut export) = lock(&self.snapshots).export()? else {
            return Ok(None);
        };
        let (boundary, mut bytes) = (export.boundary().clone(), Vec::new());
        let read = std::io::Read::read_to_end(&mut export, &mut bytes);
        Ok(read.is_ok().then_some((boundary, bytes)))
    }

    /// A state from a peer, kept next to the chain until it is installed.
    pub fn import(&self, files: &[u8]) -> Result<Incoming, SnapshotError> {
        let mut importer = lock(&self.snapshots).importer()?;
        importer.write(files)?;
        importer.finish()
    }
}
