//! The disk without its threads: jobs in, reports out, one round per call.
//!
//! The threads of `disk.rs` call this, and so does a simulation, which then decides when a round is done and when space is
//! allocated. All file operations happen in these calls.

use std::path::PathBuf;
use std::sync::Arc;

use super::counters::{Counted, Counters};
use super::error::StorageError;
use super::files::{Files, Lock};
use super::segment::{self, Spare};
use super::writer::{Job, Report, Writer};
use crate::protocol::Seq;

/// A spare file for a segment, or the reason why there is none.
pub type Room = Result<Spare, StorageError>;

/// Does jobs, in order. Dropping it releases the directory; queued jobs are not done.
#[derive(Debug)]
pub struct DiskWriter {
    writer: Writer,
    counters: Arc<Counters>,
    lock: Arc<dyn Lock>,
    failed: bool,
}

impl DiskWriter {
    pub(super) fn new(writer: Writer, lock: Box<dyn Lock>, counters: Arc<Counters>) -> DiskWriter {
        DiskWriter { writer, counters, lock: lock.into(), failed: false }
    }

    /// Does these jobs after those that are still queued, as far as there is room, with one sync at the end. Without jobs, it
    /// writes a marker of the log's durable part. After a failure jobs are neither done nor reported.
    pub fn step(&mut self, jobs: impl IntoIterator<Item = (Seq, Job)>, report: &mut dyn FnMut(Report)) {
        self.round(None, jobs, report);
    }

    /// Tries once to allocate the segment that the log waits for, and continues with the queue. Does nothing if the log waits
    /// for none.
    pub fn make_room(&mut self, report: &mut dyn FnMut(Report)) {
        if let Some(size) = self.wanted().filter(|_| !self.failed) {
            let (files, dir) = self.place();
            self.round(Some(segment::allocate(&files, &dir, size)), [], report);
        }
    }

    /// The size of the segment to allocate, if the log waits for one.
    pub fn wanted(&self) -> Option<u64> {
        self.writer.wanted()
    }

    /// Whether a job must be retried after a while. No spare segment helps it.
    pub fn is_starved(&self) -> bool {
        self.writer.is_starved()
    }

    /// Whether a step without jobs has work to do.
    pub fn is_unmarked(&self) -> bool {
        self.writer.is_unmarked()
    }

    pub fn has_failed(&self) -> bool {
        self.failed
    }

    pub fn counted(&self) -> Counted {
        self.counters.now()
    }

    pub(super) fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.counters)
    }

    pub(super) fn lock(&self) -> Arc<dyn Lock> {
        Arc::clone(&self.lock)
    }

    /// The directory in which segments are allocated.
    pub(super) fn place(&self) -> (Files, PathBuf) {
        let log = self.writer.log();
        (log.files().clone(), log.dir().to_path_buf())
    }

    /// One round of the thread: takes an allocated segment, and jobs.
    pub(super) fn round(
        &mut self,
        room: Option<Room>,
        jobs: impl IntoIterator<Item = (Seq, Job)>,
        report: &mut dyn FnMut(Report),
    ) {
        if self.failed {
            return;
        }
        // No operation is tried again. After a failed sync the system may have dropped the data, and a second sync would succeed
        // without it. A process that ends here loses only what it has not reported.
        if let Err(error) = self.work(room, jobs, report) {
            self.failed = true;
            report(Report::Failed(error));
        }
    }

    fn work(
        &mut self,
        room: Option<Room>,
        jobs: impl IntoIterator<Item = (Seq, Job)>,
        report: &mut dyn FnMut(Report),
    ) -> Result<(), StorageError> {
        let mut jobs = jobs.into_iter().peekable();
        match room {
            Some(Ok(spare)) => self.writer.give(spare, report),
            // The queue goes on all the same: promises need no room (P24).
            Some(Err(error)) if error.is_full() => self.writer.no_room(report),
            Some(Err(error)) => return Err(error),
            // The round has nothing else to do: the log has been quiet, so it gets a marker of how far it is durable (P27).
            None if jobs.peek().is_none() => self.writer.mark()?,
            None => {}
        }
        jobs.for_each(|(seq, job)| self.writer.queue(seq, job));
        self.writer.run(report)
    }
}
