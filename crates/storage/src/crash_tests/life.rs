//! A node's use of its disk, step by step, until the power fails, and the reports that it received.

use std::sync::{Arc, Mutex};

use crate::files::Simulated;
use crate::lines::Lines;
use crate::meta::Boundary;
use crate::protocol::{Seq, Vote};
use crate::recover::{Opened, open};
use crate::snapshot::{Change, SnapshotError, Snapshots};
use crate::step::DiskWriter;
use crate::testing::{Dice, incoming, rebase, rows_at, simulated, some_records, vote};
use crate::types::{Incarnation, Index, Position, Record, Vector};
use crate::writer::{Job, Report};

/// The expected content of a disk after some number of jobs.
#[derive(Clone, Debug)]
pub struct State {
    pub vote: Vote,
    pub base: Boundary,
    pub records: Vec<Record>,
}

impl State {
    pub fn blank() -> State {
        State { vote: Vote::default(), base: Boundary::default(), records: Vec::new() }
    }

    pub fn last(&self) -> Position {
        self.records.last().map_or(self.base.meta.at, |record| record.position)
    }

    pub fn holds(&self, position: Position) -> bool {
        position == self.base.meta.at || self.records.iter().any(|record| record.position == position)
    }
}

/// The reported state that a node may rely on, and the other possible states.
#[derive(Clone, Debug)]
pub struct Told {
    /// The state after each job; the first one is before any job.
    pub states: Vec<State>,
    /// The number of jobs that were reported.
    pub durable: usize,
    /// The newest snapshot includes at least this record.
    pub snapshot: Index,
    /// The incarnation, once the directory has been opened.
    pub incarnation: Option<Incarnation>,
}

impl Told {
    /// The disk is empty.
    pub fn nothing() -> Told {
        Told { states: vec![State::blank()], durable: 0, snapshot: 0, incarnation: None }
    }

    /// From now on, exactly the state that was found.
    pub fn settled(opened: &Opened) -> Told {
        let recovered = &opened.recovered;
        let base = Boundary { meta: recovered.base.clone(), ..Boundary::default() };
        let state = State { vote: recovered.vote, base, records: recovered.records.clone() };
        let snapshot = opened.snapshots.lock().unwrap().newest().map_or(0, Boundary::index);
        Told { states: vec![state], durable: 0, snapshot, incarnation: Some(recovered.incarnation) }
    }
}

/// A node's disk in use. After a power failure or a disk failure, the steps do nothing.
#[derive(Debug)]
pub struct Life {
    pub machine: Simulated,
    pub told: Told,
    pub snapshots: Arc<Mutex<Snapshots>>,
    writer: DiskWriter,
    lines: Lines,
    /// The boundary below the records of the newest job's state.
    base: Boundary,
    rng: Dice,
    jobs: Vec<(Seq, Job)>,
    /// The disk has had an error that stops a node.
    ended: bool,
}

impl Life {
    /// Returns `None` if the power failed meanwhile.
    pub fn start(machine: &Simulated, seed: u64) -> Option<Life> {
        let opened = open(&simulated(machine)).ok()?;
        Some(Life::go_on(machine, opened, seed))
    }

    pub fn go_on(machine: &Simulated, opened: Opened, seed: u64) -> Life {
        let told = Told::settled(&opened);
        let Opened { disk, lines, snapshots, recovered, .. } = opened;
        let chain = lines.chain_at(recovered.base.index()).expect("it begins there");
        let base = Boundary { meta: recovered.base, chain, origin: 0 };
        let (machine, writer) = (machine.clone(), disk.into_writer());
        Life {
            machine,
            told,
            snapshots,
            writer,
            lines,
            base,
            rng: Dice::new(seed),
            jobs: Vec::new(),
            ended: false,
        }
    }

    pub fn state(&self) -> &State {
        &self.told.states[self.told.states.len() - 1]
    }

    fn give(&mut self, job: Job, change: impl FnOnce(&mut State)) {
        let mut state = self.state().clone();
        change(&mut state);
        self.jobs.push((Seq(self.told.states.len() as u64), job));
        self.told.states.push(state);
    }

    pub fn vote(&mut self, epoch: u64) {
        self.give(Job::Vote(vote(epoch)), |state| state.vote = vote(epoch));
    }

    pub fn append(&mut self, epoch: u64, count: u64) {
        let after = self.state().last();
        let records = some_records(&mut self.rng, after, epoch, count);
        let lines = self.lines.append(&records);
        let job = Job::Append { records: records.clone().into(), lines };
        self.give(job, |state| state.records.extend(records));
    }

    pub fn truncate(&mut self, by: u64) {
        let above = self.lines.last() - by;
        self.lines.truncate(above);
        self.give(Job::Truncate { above }, |state| state.records.retain(|record| record.index() <= above));
    }

    /// A state from a peer replaces this one, this many records ahead.
    pub fn install(&mut self, epoch: u64, ahead: u64) {
        let base = self.boundary_ahead(epoch, ahead);
        let received = incoming(&self.snapshots.lock().unwrap(), &base);
        match received {
            Ok(received) => self.start_after_snapshot(base, Job::Install(received)),
            // The peer may send it again.
            Err(error) => assert!(self.machine.struck().is_some(), "{error}"),
        }
    }

    /// The state continues from another history, some records farther.
    pub fn rebase(&mut self, epoch: u64, ahead: u64, whole: bool) {
        let mut base = self.boundary_ahead(epoch, ahead);
        base.meta.vector = Some(Vector::linear(base.meta.at));
        base.origin = base.index();
        let job = Job::Rebase(rebase(&base, whole));
        self.start_after_snapshot(base, job);
    }

    fn boundary_ahead(&mut self, epoch: u64, ahead: u64) -> Boundary {
        let mut base = Boundary { chain: self.rng.roll() as u32, ..Boundary::default() };
        base.meta.at = Position::new(vote(epoch).promise.epoch, self.lines.last() + ahead);
        base
    }

    fn start_after_snapshot(&mut self, base: Boundary, job: Job) {
        self.lines.reset(&base);
        self.base = base.clone();
        self.give(job, |state| *state = State { vote: state.vote, base, records: Vec::new() });
    }

    /// Drops the records in the newest snapshot, as far as whole segments allow.
    pub fn trim(&mut self) {
        let upto = self.told.snapshot;
        self.give(Job::Trim { upto }, |_| {});
    }

    /// Does all jobs.
    pub fn run(&mut self) {
        let jobs = std::mem::take(&mut self.jobs);
        self.step(jobs);
        while self.writer.is_starved() && !self.ended {
            self.step(Vec::new());
        }
        while self.writer.wanted().is_some() && !self.ended {
            let (told, machine) = (&mut self.told, &self.machine);
            self.writer.make_room(&mut |report| note(told, machine, report));
            self.ended |= self.writer.has_failed();
        }
    }

    fn step(&mut self, jobs: Vec<(Seq, Job)>) {
        let (told, machine) = (&mut self.told, &self.machine);
        if !self.ended {
            self.writer.step(jobs, &mut |report| note(told, machine, report));
            self.ended = self.writer.has_failed();
        }
    }

    /// No new job arrives for a while.
    pub fn rest(&mut self) {
        self.run();
        self.step(Vec::new());
    }

    /// Writes a snapshot that leaves out the last few records.
    pub fn snapshot(&mut self, but: u64) {
        self.run();
        let index = self.lines.last() - but;
        let mut boundary = self.base.clone();
        for record in self.state().records.iter().take_while(|record| record.index() <= index) {
            boundary.meta.absorb(record);
        }
        boundary.chain = self.lines.chain_at(index).expect("it is in the log");
        let rows = rows_at(index);
        let mut snapshots = self.snapshots.lock().unwrap();
        let since = snapshots.newest().map_or(0, Boundary::index);
        let changes = rows.iter().skip(usize::from(since > 0)).map(|(key, value)| Change {
            table: "doc",
            key: key.into(),
            value: Some(value.into()),
        });
        if index > since && !self.ended {
            match snapshots.add(since, boundary, changes) {
                Ok(()) => self.told.snapshot = index,
                Err(error) => {
                    assert!(self.machine.struck().is_some(), "{error}");
                    // A snapshot without room is retried with the next boundary.
                    self.ended |= !error.is_full();
                }
            }
        }
    }

    /// Does all merges that are due.
    pub fn merge(&mut self) {
        let merged = if self.ended { Ok(()) } else { self.merge_all() };
        // The chain is as good as before, only longer.
        assert!(merged.is_ok() || self.machine.struck().is_some(), "{merged:?}");
    }

    fn merge_all(&mut self) -> Result<(), SnapshotError> {
        let mut snapshots = self.snapshots.lock().unwrap();
        while let Some(merge) = snapshots.plan_merge()? {
            snapshots.commit_merge(merge.run()?)?;
        }
        Ok(())
    }
}

fn note(told: &mut Told, machine: &Simulated, report: Report) {
    match report {
        Report::Durable(Seq(seq)) => told.durable = told.durable.max(seq as usize),
        // A promise may be reported ahead while the next segment is allocated.
        Report::Promised(_) => {}
        Report::Full(full) => assert!(!full || machine.struck().is_some(), "there is room"),
        Report::Failed(error) => assert!(machine.struck().is_some(), "{error}"),
    }
}
