//! The work of the single writer, without its thread: jobs in, durability out.
//!
//! Jobs are done in order, and a job on another file waits for the sync of the job before. So after a crash the disk is in
//! the state after some prefix of the jobs (P29). One sync covers all queued jobs. Only promises overtake jobs that wait for
//! room (P24).
//!
//! ```text
//!  queue:  Vote ─► Append ─► Append ─► Vote ─► Append              one call of `run`
//!            │       └────────┴─ one write   │       └─ gathered
//!            sync of `vote`                sync of the log, then of `vote`      sync of the log at the end ─► Durable(5)
//! ```
//!
//! The core queues a vote before the records of its epoch, and the vote is durable before they are written. So no log on disk
//! has a record above the promise of its node (I11), and a start that finds one knows that the promise file has lost
//! something.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use super::error::StorageError;
use super::log::{Appending, Log};
use super::meta::Boundary;
use super::segment::Spare;
use super::snapshot::{Incoming, Rebase, Snapshots};
use super::vote::VoteFile;
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::{Records, Seq, Vote};
use crate::types::Index;

/// A change of the disk: `protocol::Write` with the bytes of its lines and states.
#[derive(Debug)]
pub enum Job {
    Vote(Vote),
    Append {
        records: Records,
        /// One line per record, from `Lines::append`.
        lines: Bytes,
    },
    Truncate {
        above: Index,
    },
    Install(Incoming),
    /// The state continues from another history.
    Rebase(Rebase),
    /// Trimming frees space and nothing depends on it: after a crash, old segments may still be there.
    Trim {
        upto: Index,
    },
}

/// The progress of the jobs.
#[derive(Debug)]
pub enum Report {
    /// Every job up to this one is on disk.
    /// Reports rise, and one report may stand for many jobs.
    Durable(Seq),
    /// The promise of every vote up to this one is on disk, ahead of jobs that wait for room.
    Promised(Seq),
    /// True: there is no room for another segment. False: there is room again (P24).
    Full(bool),
    /// A disk operation failed. The disk may have lost anything, so nothing is written any more.
    /// This is the last report.
    Failed(StorageError),
}

#[derive(Debug)]
enum Task {
    Vote(Vote),
    Append(Appending),
    Truncate(Index),
    Install(Incoming),
    Rebase(Rebase),
    /// The snapshot is durable; the log still has to follow it.
    Restart(Boundary),
    Trim(Index),
}

#[derive(Debug)]
pub struct Writer {
    log: Log,
    vote: VoteFile,
    snapshots: Arc<Mutex<Snapshots>>,
    tasks: VecDeque<(Seq, Task)>,
    full: bool,
    /// A snapshot found no room. No allocated segment helps it, so it can only be retried.
    starved: bool,
    /// The newest promise on disk, written ahead of the votes up to this one.
    promised: Option<(Seq, Vote)>,
}

impl Writer {
    pub fn new(log: Log, vote: VoteFile, snapshots: Arc<Mutex<Snapshots>>) -> Writer {
        Writer { log, vote, snapshots, tasks: VecDeque::new(), full: false, starved: false, promised: None }
    }

    pub fn log(&self) -> &Log {
        &self.log
    }

    pub fn queue(&mut self, seq: Seq, job: Job) {
        let task = match job {
            Job::Vote(vote) => Task::Vote(vote),
            Job::Append { records, lines } => Task::Append(Appending::new(records, lines)),
            Job::Truncate { above } => Task::Truncate(above),
            Job::Install(incoming) => Task::Install(incoming),
            Job::Rebase(rebase) => Task::Rebase(rebase),
            Job::Trim { upto } => Task::Trim(upto),
        };
        self.tasks.push_back((seq, task));
    }

    /// Does all queued jobs, as far as there is room, with one sync at the end.
    pub fn run(&mut self, report: &mut dyn FnMut(Report)) -> Result<(), StorageError> {
        let mut done = None;
        let starved = std::mem::take(&mut self.starved);
        while let Some((seq, task)) = self.tasks.pop_front() {
            // If votes follow each other directly, only the last must be on disk: there is no job between them that an
            // earlier vote would have to precede.
            let superseded = matches!((&task, self.tasks.front()), (Task::Vote(_), Some((_, Task::Vote(_)))));
            let rest = if superseded { None } else { self.perform(self.no_older_promise(seq, task))? };
            if let Some(rest) = rest {
                self.tasks.push_front((seq, rest));
                break;
            }
            done = Some(seq);
        }
        // The jobs that found room are made durable and reported, even if the rest has to wait.
        self.log.sync()?;
        match (starved, self.starved) {
            (false, true) => self.no_room(report),
            (true, false) => self.has_room(report),
            _ => {}
        }
        if let Some(seq) = done {
            report(Report::Durable(seq));
        }
        self.promise_ahead(report)?;
        // After the reports: the second slot protects the vote against later damage, and no message needs to wait for its
        // sync.
        self.vote.finish()
    }

    /// A promise does not wait for room: it is harmless if it is on disk before records that were queued earlier (P24). The
    /// other parts of a vote describe the log, and keep their order.
    fn promise_ahead(&mut self, report: &mut dyn FnMut(Report)) -> Result<(), StorageError> {
        let votes = self.tasks.iter().rev().find_map(|(seq, task)| match task {
            Task::Vote(vote) => Some((*seq, *vote)),
            _ => None,
        });
        let news = votes.filter(|(seq, _)| self.promised.is_none_or(|(upto, _)| upto < *seq));
        if let Some((seq, vote)) = news.filter(|_| !mutant::is_on(Mutant::PromiseWaitsForRoom)) {
            self.vote.write(&self.vote.last().bound_by(vote))?;
            self.promised = Some((seq, vote));
            report(Report::Promised(seq));
        }
        Ok(())
    }

    /// A queued vote never undoes a promise that was written ahead of it. Otherwise, after a crash, the node would have
    /// forgotten a promise that `Report::Promised` has reported (P29).
    fn no_older_promise(&self, seq: Seq, task: Task) -> Task {
        match (task, self.promised) {
            (Task::Vote(vote), Some((upto, ahead))) if seq <= upto => Task::Vote(vote.bound_by(ahead)),
            (task, _) => task,
        }
    }

    /// Returns the task if there is no room for it: all of it, or what is left of it. It is then tried again before any later
    /// task.
    fn perform(&mut self, task: Task) -> Result<Option<Task>, StorageError> {
        match task {
            Task::Vote(vote) => {
                self.log.sync()?;
                self.vote.write(&vote)?;
            }
            Task::Append(mut batch) => {
                if !self.log.append(&mut batch)? {
                    return Ok(Some(Task::Append(batch)));
                }
            }
            Task::Truncate(above) => self.log.truncate(above)?,
            Task::Install(incoming) => {
                // The snapshot is installed once. If the log finds no room after that, only `Restart` is left to do: a start
                // after a crash here replaces the log in the same way.
                let boundary = incoming.boundary().clone();
                self.log.sync()?;
                self.snapshots.lock().unwrap_or_else(PoisonError::into_inner).install(incoming)?;
                return self.perform(Task::Restart(boundary));
            }
            Task::Rebase(rebase) => return self.rebase(rebase),
            Task::Restart(boundary) => {
                if !self.log.restart(&boundary)? {
                    return Ok(Some(Task::Restart(boundary)));
                }
            }
            Task::Trim(upto) => self.log.trim(upto)?,
        }
        Ok(None)
    }

    /// Adds the state, then begins the log again after it. A crash between the two leaves a log that does not lead to the
    /// newest snapshot, and a start replaces it. The rows are read again if there was no room for them.
    fn rebase(&mut self, rebase: Rebase) -> Result<Option<Task>, StorageError> {
        self.log.sync()?;
        let added = self.snapshots.lock().unwrap_or_else(PoisonError::into_inner).rebase(&rebase);
        match added {
            Ok(()) => self.perform(Task::Restart(rebase.boundary)),
            Err(error) if error.is_full() => {
                self.starved = true;
                Ok(Some(Task::Rebase(rebase)))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Whether a task must be retried after a while.
    pub fn is_starved(&self) -> bool {
        self.starved
    }

    /// The size of the segment to allocate, if the log waits for one.
    pub fn wanted(&self) -> Option<u64> {
        self.log.wanted()
    }

    pub fn give(&mut self, spare: Spare, report: &mut dyn FnMut(Report)) {
        self.log.give(spare);
        // A spare segment is no room for a snapshot, so the disk is still full.
        if !self.starved {
            self.has_room(report);
        }
    }

    fn has_room(&mut self, report: &mut dyn FnMut(Report)) {
        if std::mem::take(&mut self.full) {
            report(Report::Full(false));
        }
    }

    pub fn no_room(&mut self, report: &mut dyn FnMut(Report)) {
        if !std::mem::replace(&mut self.full, true) {
            report(Report::Full(true));
        }
    }

    /// Whether there is work to do in a quiet period.
    pub fn is_unmarked(&self) -> bool {
        self.log.is_unmarked()
    }

    pub fn mark(&mut self) -> Result<(), StorageError> {
        self.log.mark_when_idle()
    }
}
