//! The repair at an opening and a restart without data are interrupted, too: no promise is forgotten, no disk that has lost
//! something keeps its incarnation, and bad files are kept while they are bad.

use std::path::{Path, PathBuf};

use super::judge::expect;
use super::life::{Life, Told};
use crate::files::Simulated;
use crate::files::simulated::{Fault, Loss};
use crate::recover::{Opened, open};
use crate::start_over;
use crate::testing::{is_doubtful, simulated, vote};
use crate::types::Incarnation;

const LOSSES: u64 = 6;

/// Several segments, and a snapshot in the middle.
fn sound() -> (Simulated, Told) {
    let machine = Simulated::new(1);
    let mut life = Life::start(&machine, 1).unwrap();
    life.vote(3);
    for round in 0..9 {
        life.append(3, 3);
        life.run();
        if round == 3 {
            life.snapshot(1);
            life.trim();
        }
    }
    life.run();
    let told = life.told.clone();
    drop(life);
    machine.cut_power(Loss::Everything);
    (machine, told)
}

fn is_segment(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "log")
}

fn paths(machine: &Simulated, folder: &str) -> Vec<PathBuf> {
    let image = machine.image();
    image.into_keys().filter(|path| path.starts_with(Path::new("/node").join(folder))).collect()
}

/// Opens the disk, or does something else, with a power failure at every operation, and judges the disk after each.
fn every_cut(machine: &Simulated, act: impl Fn(&Simulated), judge: impl Fn(&Simulated, &str)) {
    for at in 0.. {
        let fork = machine.fork(2000 + at);
        fork.schedule(at, Fault::Power);
        act(&fork);
        let dead = fork.is_dead();
        for seed in 0..LOSSES {
            // Other seeds than the sound disk's, so that no incarnation is drawn twice.
            let found = fork.fork(1000 + seed);
            let loss = [Loss::Everything, Loss::Nothing, Loss::Some][seed.min(2) as usize];
            found.cut_power(loss);
            judge(&found, &format!("operation {at}, {loss:?} {seed}"));
        }
        if !dead {
            assert!(at > 20, "only {at} operations");
            return;
        }
    }
}

fn open_as_far_as_possible(machine: &Simulated) {
    let opened = open(&simulated(machine));
    assert!(opened.is_ok() || machine.is_dead(), "{opened:?}");
}

/// The disk keeps its promises, but has a new incarnation.
fn expect_new_life(opened: &Opened, sound: Option<Incarnation>, what: &str) {
    let found = &opened.recovered;
    assert!(!found.vote.admitted && Some(found.incarnation) != sound, "{what}: {:?}", opened.findings);
    assert!(found.vote.formed, "{what}");
}

#[test]
fn doubt_is_not_forgotten() {
    let (machine, told) = sound();
    let mut doubtful = 0;
    for path in paths(&machine, "log").into_iter().filter(|path| is_segment(path)) {
        let damaged = machine.fork(1);
        let flip = |bytes: &mut Vec<u8>| {
            let head = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(0);
            bytes[head + 30] ^= 1;
        };
        damaged.damage(&path, flip).unwrap();
        let whole = damaged.fork(1);
        if !is_doubtful(&open(&simulated(&whole)).unwrap()) {
            continue;
        }
        doubtful += 1;
        let before = damaged.image();
        every_cut(&damaged, open_as_far_as_possible, |found, what| {
            let what = format!("{}, {what}", path.display());
            let opened = open(&simulated(found)).unwrap();
            expect_new_life(&opened, told.incarnation, &what);
            assert_eq!(opened.recovered.vote.promise, vote(3).promise, "{what}");
            let after = found.image();
            let lost = before
                .iter()
                .find(|(path, bytes)| is_segment(path) && after.values().all(|found| found != *bytes));
            assert_eq!(lost, None, "{what}: neither in the log nor in quarantine");
        });
    }
    assert!(doubtful > 2, "{doubtful}");
}

#[test]
fn a_lost_promise_is_not_forgotten() {
    let (machine, told) = sound();
    machine.damage(Path::new("/node/vote"), |bytes| bytes.fill(b'x')).unwrap();
    every_cut(&machine, open_as_far_as_possible, |found, what| {
        let opened = open(&simulated(found)).unwrap();
        expect_new_life(&opened, told.incarnation, what);
        assert_eq!(opened.recovered.vote.promise.epoch, vote(3).promise.epoch, "{what}: the log proves it");
        let kept = found.image().values().any(|bytes| bytes.starts_with(b"xxx"));
        assert!(kept, "{what}: the bad file is kept");
    });
}

/// A log that ends below its snapshot is replaced by the snapshot, and a bad snapshot by the log.
#[test]
fn what_replaces_the_other_is_there_first() {
    let (machine, told) = sound();
    let snapshot = paths(&machine, "snapshots").pop().unwrap();
    let damaged = machine.fork(1);
    damaged.damage(&snapshot, |bytes| bytes.truncate(20)).unwrap();
    every_cut(&damaged, open_as_far_as_possible, |found, what| {
        let opened = open(&simulated(found)).unwrap();
        // The log was trimmed up to the snapshot, so this is a loss.
        expect_new_life(&opened, told.incarnation, what);
        assert!(found.image().values().any(|bytes| bytes.len() == 20), "{what}: the bad file is kept");
    });
    let behind = machine.fork(1);
    let mut life = Life::start(&behind, 2).unwrap();
    life.install(3, 40);
    life.run();
    let told = life.told.clone();
    for path in paths(&machine, "log") {
        // The newest segment alone remains, as if the crash came before the log followed the snapshot.
        let bytes = machine.image()[&path].clone();
        behind.damage(&path, |now| *now = bytes);
    }
    behind.cut_power(Loss::Everything);
    every_cut(&behind, open_as_far_as_possible, |found, what| drop(expect(found, &told, what)));
}

#[test]
fn starting_over() {
    let (machine, told) = sound();
    let act = |machine: &Simulated| {
        let done = start_over(&simulated(machine), "the state is odd");
        assert!(done.is_ok() || machine.is_dead(), "{done:?}");
    };
    let before = machine.image();
    every_cut(&machine, act, |found, what| {
        let again = found.fork(1);
        let opened = open(&simulated(found)).unwrap();
        if Some(opened.recovered.incarnation) == told.incarnation {
            drop(opened);
            expect(&again, &told, what);
        } else {
            expect_new_life(&opened, told.incarnation, what);
            assert_eq!(opened.recovered.vote.promise, vote(3).promise, "{what}");
            assert_eq!(opened.recovered.base.index(), 0, "{what}: the odd state is there under a new name");
        }
        let finished = found.fork(2);
        finished.kill();
        act(&finished);
        finished.cut_power(Loss::Everything);
        let opened = open(&simulated(&finished)).unwrap();
        expect_new_life(&opened, told.incarnation, what);
        let empty = opened.recovered.records.is_empty() && opened.recovered.base.index() == 0;
        assert!(empty, "{what}");
        let after = finished.image();
        let kept = |bytes: &Vec<u8>| after.values().any(|found| found == bytes);
        let theirs = |path: &Path| is_segment(path) || path.starts_with("/node/snapshots");
        let lost = before.iter().find(|(path, bytes)| theirs(path) && !kept(bytes));
        assert_eq!(lost.map(|(path, _)| path), None, "{what}");
    });
}
