//! The process dies, or the power fails, between any two changes of any file: every time the directory opens, holds
//! what was reported durable, and is not doubtful.

use std::cell::RefCell;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::rc::Rc;

use super::lines::Lines;
use super::meta::Boundary;
use super::recover::Opened;
use super::testing::{
    Hand, Rng, TempDir, incoming, is_doubtful, make_original, rebase, reopen, rows, rows_at, some_records,
    vote,
};
use super::watch::{self, Image, image, restore};
use super::writer::Job;
use crate::protocol::{Recovered, Vote};
use crate::types::{Index, Position, Record, Vector};

/// What a disk should hold after so many jobs.
#[derive(Clone, Debug)]
struct State {
    vote: Vote,
    base: Boundary,
    records: Vec<Record>,
}

impl State {
    fn last(&self) -> Position {
        self.records.last().map_or(self.base.meta.at, |record| record.position)
    }

    fn holds(&self, position: Position) -> bool {
        position == self.base.meta.at || self.records.iter().any(|record| record.position == position)
    }
}

/// A directory as a crash left it, with how many jobs were reported and how many given by then.
struct Crash {
    image: Image,
    durable: usize,
    given: usize,
    what: String,
}

/// Runs jobs by hand and gathers the images.
struct Run {
    hand: Hand,
    lines: Lines,
    rng: Rng,
    /// After each job; the first is before any.
    states: Vec<State>,
    /// Jobs reported and given, for the images.
    progress: Rc<RefCell<(usize, usize)>>,
    crashes: Rc<RefCell<Vec<Crash>>>,
}

impl Run {
    fn start(dir: &Path, seed: u64) -> Run {
        let Opened { disk, lines, recovered, .. } = reopen(dir);
        let mut hand = Hand::new(disk);
        hand.make_room();
        let first = State { vote: recovered.vote, base: Boundary::default(), records: Vec::new() };
        let progress = Rc::new(RefCell::new((0, 0)));
        let crashes = Rc::new(RefCell::new(Vec::new()));
        watch_into(dir, seed, &progress, &crashes);
        Run { hand, lines, rng: Rng(seed), states: vec![first], progress, crashes }
    }

    fn give(&mut self, job: Job, change: impl FnOnce(&mut State)) {
        let mut state = self.states[self.states.len() - 1].clone();
        change(&mut state);
        self.states.push(state);
        self.progress.borrow_mut().1 = self.states.len() - 1;
        self.hand.queue(job);
    }

    fn vote(&mut self, epoch: u64) {
        self.give(Job::Vote(vote(epoch)), |state| state.vote = vote(epoch));
    }

    fn append(&mut self, epoch: u64, count: u64) {
        let after = self.states[self.states.len() - 1].last();
        let records = some_records(&mut self.rng, after, epoch, count);
        let lines = self.lines.append(&records);
        let job = Job::Append { records: records.clone().into(), lines };
        self.give(job, |state| state.records.extend(records));
    }

    fn truncate(&mut self, by: u64) {
        let above = self.lines.last() - by;
        self.lines.truncate(above);
        self.give(Job::Truncate { above }, |state| {
            state.records.retain(|record| record.index() <= above);
        });
    }

    fn install(&mut self, opened: &super::snapshot::Snapshots, epoch: u64, ahead: u64) {
        let mut base = Boundary { chain: self.rng.next() as u32, ..Boundary::default() };
        base.meta.at = Position::new(vote(epoch).promise.epoch, self.lines.last() + ahead);
        self.lines.reset(&base);
        let job = Job::Install(incoming(opened, &base));
        self.give(job, |state| *state = State { vote: state.vote, base, records: Vec::new() });
    }

    /// The state goes on from another history, some records farther.
    fn rebase(&mut self, epoch: u64, ahead: u64, whole: bool) {
        let mut boundary = Boundary { chain: self.rng.next() as u32, ..Boundary::default() };
        boundary.meta.at = Position::new(vote(epoch).promise.epoch, self.lines.last() + ahead);
        boundary.meta.vector = Some(Vector::linear(boundary.meta.at));
        boundary.origin = boundary.index();
        self.lines.reset(&boundary);
        let job = Job::Rebase(rebase(&boundary, whole));
        self.give(job, |state| *state = State { vote: state.vote, base: boundary, records: Vec::new() });
    }

    fn run(&mut self) {
        self.hand.run();
        self.progress.borrow_mut().0 = self.states.len() - 1;
    }

    fn finish(self) -> (Vec<State>, Vec<Crash>) {
        watch::stop();
        let crashes = std::mem::take(&mut *self.crashes.borrow_mut());
        (self.states, crashes)
    }
}

fn watch_into(
    dir: &Path,
    seed: u64,
    progress: &Rc<RefCell<(usize, usize)>>,
    crashes: &Rc<RefCell<Vec<Crash>>>,
) {
    let (progress, crashes) = (Rc::clone(progress), Rc::clone(crashes));
    let mut rng = Rng(seed ^ 0xc4a5);
    let mut seen = HashSet::new();
    watch::start(dir, move |dying, powerless| {
        let (durable, given) = *progress.borrow();
        let mixed = mix(&mut rng, dying, powerless);
        for (image, what) in [(dying, "process"), (powerless, "power"), (&mixed, "some of it")] {
            let mut hasher = DefaultHasher::new();
            (image, durable, given).hash(&mut hasher);
            if seen.insert(hasher.finish()) {
                let what = format!("{what}, event {}", crashes.borrow().len());
                crashes.borrow_mut().push(Crash { image: image.clone(), durable, given, what });
            }
        }
    });
}

/// Of what was not synced, some files have arrived and some have not.
fn mix(rng: &mut Rng, dying: &Image, powerless: &Image) -> Image {
    let mut mixed = powerless.clone();
    for (path, bytes) in &mut mixed {
        if let Some(newer) = dying.get(path).filter(|_| rng.one_in(2)) {
            bytes.clone_from(newer);
        }
    }
    mixed
}

/// What was reported is there, and nothing else than what was given.
fn check(states: &[State], crash: &Crash, dir: &Path) {
    restore(&crash.image, dir);
    make_original(dir);
    let opened = reopen(dir);
    let what = &crash.what;
    assert!(!is_doubtful(&opened), "{what}: {:?}", opened.findings);
    let possible = &states[crash.durable..=crash.given];
    assert!(
        possible.iter().any(|state| state.vote == opened.recovered.vote),
        "{what}: {:?}",
        opened.recovered.vote
    );
    assert!(possible.iter().any(|state| is_part_of(&opened, state)), "{what}: {}", told(possible, &opened));
    let least = possible.iter().map(|state| state.last().index).min().unwrap_or(0);
    assert!(last(&opened) >= least, "{what}: {}", told(possible, &opened));
    check_rows(&opened, what);
    let before = opened.recovered.clone();
    drop(opened);
    let again = reopen(dir);
    assert_eq!((again.findings, again.recovered), (Vec::new(), before), "{what}");
}

/// A state that a rebase made has the rows of just that one.
fn check_rows(opened: &Opened, what: &str) {
    let snapshots = opened.snapshots.lock().unwrap();
    let newest = snapshots.newest().cloned().unwrap_or_default();
    if newest.meta.vector.is_some() {
        assert_eq!(rows(&snapshots), rows_at(newest.index()), "{what}");
        assert_eq!(newest.meta.vector, Some(Vector::linear(newest.meta.at)), "{what}");
        assert!(opened.recovered.base.vector.is_some(), "{what}");
    }
}

fn last(opened: &Opened) -> Index {
    let Recovered { base, records, .. } = &opened.recovered;
    records.last().map_or(base.index(), Record::index)
}

/// It is a prefix of that state. What lies below an installed one is nobody's business.
fn is_part_of(opened: &Opened, state: &State) -> bool {
    let Recovered { base, records, .. } = &opened.recovered;
    let known = base.index().max(state.base.index());
    let found = records.iter().filter(|record| record.index() > known);
    let expected = state.records.iter().filter(|record| record.index() > known);
    let same_base = base.index() < state.base.index() || state.holds(base.at);
    let within = (state.base.index()..=state.last().index).contains(&last(opened));
    within && same_base && found.zip(expected).all(|(found, expected)| found == expected)
}

fn told(possible: &[State], opened: &Opened) -> String {
    let states: Vec<String> =
        possible.iter().map(|state| format!("{}..{}", state.base.meta.at, state.last())).collect();
    let base = opened.recovered.base.at;
    format!("{base}..{} is none of {states:?}: {:?}", last(opened), opened.findings)
}

fn check_all(states: &[State], crashes: &[Crash], least: usize) {
    let dir = TempDir::new();
    assert!(crashes.len() > least, "only {} images", crashes.len());
    crashes.iter().for_each(|crash| check(states, crash, dir.path()));
}

#[test]
fn appends_votes_and_rotations() {
    let dir = TempDir::new();
    let mut run = Run::start(dir.path(), 1);
    for epoch in 3..8 {
        run.vote(epoch);
        run.append(epoch, 2);
        run.run();
        run.append(epoch, 3);
        run.append(epoch, 1);
        run.vote(epoch);
        run.run();
        run.hand.writer.mark().unwrap();
    }
    let (states, crashes) = run.finish();
    check_all(&states, &crashes, 120);
}

#[test]
fn truncations() {
    for seed in 2..6 {
        let dir = TempDir::new();
        let mut run = Run::start(dir.path(), seed);
        for epoch in 3..6 {
            run.vote(epoch);
            run.append(epoch, 5);
            run.run();
            run.append(epoch, 4);
            run.run();
            run.append(epoch, 1);
            run.run();
            // Within a segment, and back over several.
            run.truncate(if epoch == 4 { 9 } else { 3 + seed % 3 });
            run.vote(epoch + 1);
            run.append(epoch + 1, 2);
            run.run();
        }
        let (states, crashes) = run.finish();
        check_all(&states, &crashes, 100);
    }
}

#[test]
fn installations_and_trims() {
    for seed in 6..10 {
        let dir = TempDir::new();
        let opened = reopen(dir.path());
        let snapshots = std::sync::Arc::clone(&opened.snapshots);
        drop(opened);
        let mut run = Run::start(dir.path(), seed);
        for epoch in 3..6 {
            run.vote(epoch);
            run.append(epoch, 9);
            run.run();
            run.install(&snapshots.lock().unwrap(), epoch, 1 + seed * 10);
            run.append(epoch, 3);
            run.run();
        }
        let (states, crashes) = run.finish();
        check_all(&states, &crashes, 60);
    }
}

#[test]
fn rebases() {
    for seed in 16..20 {
        let dir = TempDir::new();
        let mut run = Run::start(dir.path(), seed);
        for epoch in 3..8 {
            run.vote(epoch);
            run.append(epoch, 9);
            run.run();
            // Some follow what is not synced yet, or each other.
            run.append(epoch, seed % 3);
            run.vote(epoch + 1);
            run.rebase(epoch + 1, 1 + seed % 2 * 20, epoch == 5);
            if epoch == 6 {
                run.rebase(epoch + 1, 1, false);
            }
            run.append(epoch + 1, 3);
            run.run();
        }
        let (states, crashes) = run.finish();
        check_all(&states, &crashes, 100);
    }
}

/// Opening a directory may be cut short too, sound or torn.
#[test]
fn openings() {
    let dir = TempDir::new();
    let mut run = Run::start(dir.path(), 11);
    run.vote(3);
    for _ in 0..6 {
        run.append(3, 3);
        run.run();
    }
    let states = run.states.clone();
    drop(run.finish());
    let sound = image(dir.path());
    let last = sound.keys().rfind(|path| path.extension().is_some_and(|end| end == "log")).unwrap();
    let written = super::text::written(&sound[last]);
    for cut in [0, 20, 50] {
        let mut torn = sound.clone();
        torn.get_mut(last).unwrap()[written - cut..].fill(b'\n');
        restore(&torn, dir.path());
        make_original(dir.path());
        let progress = Rc::new(RefCell::new((states.len() - 2, states.len() - 1)));
        let crashes = Rc::new(RefCell::new(Vec::new()));
        watch_into(dir.path(), 12, &progress, &crashes);
        reopen(dir.path());
        watch::stop();
        check_all(&states, &crashes.borrow(), if cut == 0 { 0 } else { 2 });
    }
}

/// A directory that is being made is not one that has lost something.
#[test]
fn first_starts() {
    let dir = TempDir::new();
    let progress = Rc::new(RefCell::new((0, 0)));
    let crashes = Rc::new(RefCell::new(Vec::new()));
    watch_into(dir.path(), 13, &progress, &crashes);
    reopen(dir.path());
    watch::stop();
    let blank = State { vote: Vote::default(), base: Boundary::default(), records: Vec::new() };
    check_all(&[blank], &crashes.borrow(), 10);
}

/// Whenever a disk that has lost something dies while this is found out, it never passes for its old self.
#[test]
fn doubt_is_not_forgotten() {
    let dir = TempDir::new();
    let mut run = Run::start(dir.path(), 14);
    run.vote(3);
    for _ in 0..8 {
        run.append(3, 3);
        run.run();
    }
    drop(run.finish());
    let sound = image(dir.path());
    let sound_life = reopen(dir.path()).recovered.incarnation;
    for path in sound.keys().filter(|path| path.extension().is_some_and(|end| end == "log")) {
        let mut damaged = sound.clone();
        let bytes = damaged.get_mut(path).unwrap();
        let line = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 30;
        bytes[line] ^= 1;
        restore(&damaged, dir.path());
        make_original(dir.path());
        let progress = Rc::new(RefCell::new((0, 0)));
        let crashes = Rc::new(RefCell::new(Vec::new()));
        watch_into(dir.path(), 15, &progress, &crashes);
        let doubtful = is_doubtful(&reopen(dir.path()));
        watch::stop();
        let again = TempDir::new();
        for crash in crashes.borrow().iter().filter(|_| doubtful) {
            restore(&crash.image, again.path());
            make_original(again.path());
            let opened = reopen(again.path());
            let admitted = opened.recovered.vote.admitted || opened.recovered.incarnation == sound_life;
            assert!(!admitted, "{}: {:?}", crash.what, opened.findings);
        }
    }
}
