//! What the one writer does, without its thread: jobs in, durability out.
//!
//! Jobs are done in order, and a job of another file waits for the sync of the one before, so that whatever a
//! crash leaves is what some prefix of the jobs made (P29). One sync covers everything that was queued. Promises alone go ahead
//! of jobs that find no room (P24).

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

/// A change of what is on disk: `protocol::Write` with what its lines and states are made of.
#[derive(Debug)]
pub enum Job {
    Vote(Vote),
    Append {
        records: Records,
        /// One a record, from `Lines::append`.
        lines: Bytes,
    },
    Truncate {
        above: Index,
    },
    Install(Incoming),
    /// The state goes on from another history.
    Rebase(Rebase),
    Trim {
        upto: Index,
    },
}

/// What has become of the jobs.
#[derive(Debug)]
pub enum Report {
    /// Every job up to this one is on disk.
    Durable(Seq),
    /// The promise of every vote up to this one is on disk, ahead of jobs that wait for room.
    Promised(Seq),
    /// There is no room for another segment, or there is again (P24).
    Full(bool),
    /// A disk that refuses once may have lost anything: nothing is written ever after.
    Failed(StorageError),
}

#[derive(Debug)]
enum Task {
    Vote(Vote),
    Append(Appending),
    Truncate(Index),
    Install(Incoming),
    Rebase(Rebase),
    /// The snapshot is durable; the log is yet to follow it.
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
    /// A snapshot found no room: nobody makes any, it can only be tried again.
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

    /// Does everything queued, as far as there is room, with one sync at the end.
    pub fn run(&mut self, report: &mut dyn FnMut(Report)) -> Result<(), StorageError> {
        let mut done = None;
        let starved = std::mem::take(&mut self.starved);
        while let Some((seq, task)) = self.tasks.pop_front() {
            // Of votes in a row only the last one can be found on disk.
            let superseded = matches!((&task, self.tasks.front()), (Task::Vote(_), Some((_, Task::Vote(_)))));
            let rest = if superseded { None } else { self.perform(self.no_older_promise(seq, task))? };
            if let Some(rest) = rest {
                self.tasks.push_front((seq, rest));
                break;
            }
            done = Some(seq);
        }
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
        self.vote.finish()
    }

    /// A promise does not wait for room: on disk it does no harm to have promised before the records that came first (P24).
    /// What else a vote says tells of the log, and keeps its place.
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

    /// A vote whose turn comes takes back no promise that was written ahead of it.
    fn no_older_promise(&self, seq: Seq, task: Task) -> Task {
        match (task, self.promised) {
            (Task::Vote(vote), Some((upto, ahead))) if seq <= upto => Task::Vote(vote.bound_by(ahead)),
            (task, _) => task,
        }
    }

    /// Gives back what there is no room for.
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

    /// Whether there is something to be tried again after a while.
    pub fn is_starved(&self) -> bool {
        self.starved
    }

    /// How much room to make, if any is waited for.
    pub fn wanted(&self) -> Option<u64> {
        self.log.wanted()
    }

    pub fn give(&mut self, spare: Spare, report: &mut dyn FnMut(Report)) {
        self.log.give(spare);
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

    /// Whether something is worth doing when nothing comes for a while.
    pub fn is_unmarked(&self) -> bool {
        self.log.is_unmarked()
    }

    pub fn mark(&mut self) -> Result<(), StorageError> {
        self.log.mark_when_idle()
    }
}
