//! Runs a history once for each of its operations, with a power failure at that operation, and judges the disk after that.

use std::io;

use super::life::{Life, State, Told};
use crate::files::Simulated;
use crate::files::simulated::{Fault, Loss, Operation};
use crate::meta::Boundary;
use crate::protocol::Recovered;
use crate::recover::{Opened, open};
use crate::testing::{is_doubtful, rows, rows_at, simulated};
use crate::types::{Index, Record};

/// The number of attempts.
#[derive(Clone, Copy, Debug)]
pub struct Seeds {
    /// The random losses that are tried at each operation.
    pub losses: u64,
    /// The minimal number of operations in the history.
    pub crashes: u64,
}

/// The history, with a power failure at every operation from the first start on.
pub fn every_crash(seeds: Seeds, history: impl Fn(&mut Life)) {
    every(seeds, Fault::Power, |life| {
        history(life);
        life.told.clone()
    });
}

/// The history, with each operation failing once. The process then ends.
pub fn every_refusal(seeds: Seeds, kind: io::ErrorKind, history: impl Fn(&mut Life)) {
    every(seeds, Fault::Refuse(kind), |life| {
        history(life);
        life.told.clone()
    });
}

fn every(seeds: Seeds, fault: Fault, live: impl Fn(&mut Life) -> Told) {
    for at in 0.. {
        let machine = Simulated::new(at);
        machine.schedule(at, fault);
        let told = Life::start(&machine, 1).map_or_else(Told::nothing, |mut life| live(&mut life));
        let struck = machine.struck();
        // A power failure at a read leaves the same disk as one at the change before, so it is not judged again.
        if struck != Some(Operation::Read) || fault != Fault::Power {
            judge(&machine, &told, seeds.losses, &format!("{fault:?} at operation {at}"));
        }
        if struck.is_none() {
            assert!(at > seeds.crashes, "only {at} operations");
            return;
        }
    }
}

/// Judges the disk for several losses of unsynced data.
fn judge(machine: &Simulated, told: &Told, losses: u64, what: &str) {
    for seed in 0..losses + 2 {
        let fork = machine.fork(seed);
        let how = match seed {
            0 => {
                fork.kill();
                "killed"
            }
            1 => cut(&fork, Loss::Everything),
            _ => cut(&fork, Loss::Some),
        };
        judge_found(&fork, told, seed, &format!("{what}, {how} {seed}"));
    }
}

fn cut(machine: &Simulated, loss: Loss) -> &'static str {
    machine.cut_power(loss);
    if loss == Loss::Everything { "nothing kept" } else { "some kept" }
}

fn judge_found(machine: &Simulated, told: &Told, seed: u64, what: &str) {
    // There is another failure while the directory is opened. The disk after that is judged in the same way.
    let again = machine.fork(seed);
    again.schedule(seed * 7 + told.durable as u64 % 40, Fault::Power);
    let cut_short = open(&simulated(&again)).is_err();
    again.cut_power(Loss::Some);
    if cut_short {
        expect(&again, told, &format!("{what}, twice"));
    }
    let opened = expect(machine, told, what);
    let settled = Told::settled(&opened);
    let before = opened.recovered.clone();
    // A node has seen this state, so it must stay.
    for loss in [Loss::Everything, Loss::Some] {
        let fork = machine.fork(seed);
        fork.cut_power(loss);
        let again = open(&simulated(&fork)).unwrap();
        assert_eq!((&again.findings, &again.recovered), (&Vec::new(), &before), "{what}, then {loss:?}");
        assert_eq!(Told::settled(&again).snapshot, settled.snapshot, "{what}, then {loss:?}");
    }
    go_on(machine, opened, (seed + machine.operations()).is_multiple_of(2), what);
}

/// Later writes are still durable.
fn go_on(machine: &Simulated, opened: Opened, snapshot: bool, what: &str) {
    let mut life = Life::go_on(machine, opened, 2);
    let epoch = 1 + life.state().vote.promise.epoch.counter.max(life.state().last().epoch.counter);
    life.vote(epoch);
    life.append(epoch, 4);
    life.run();
    if snapshot {
        life.snapshot(1);
    }
    // The log drops the records in the snapshot, so the snapshot must be there.
    life.trim();
    life.run();
    assert_eq!(life.told.durable + 1, life.told.states.len(), "{what}");
    machine.cut_power(Loss::Everything);
    expect(machine, &life.told, &format!("{what}, and went on"));
}

/// Opens the disk. Every reported job must be there, and nothing that was never submitted.
pub fn expect(machine: &Simulated, told: &Told, what: &str) -> Opened {
    let opened = match open(&simulated(machine)) {
        Ok(opened) => opened,
        Err(error) => panic!("{what}: {error}"),
    };
    assert!(!is_doubtful(&opened), "{what}: {:?}", opened.findings);
    let life = opened.recovered.incarnation;
    assert!(told.incarnation.is_none_or(|told| told == life), "{what}: another incarnation");
    let possible = &told.states[told.durable..];
    let next = |at: usize| &possible[(at + 1).min(possible.len() - 1)];
    // A promise does not wait for records that have no room: it may be the one of a later job (P29).
    let promised = |at: usize| possible[at..].iter().any(|state| state.vote == opened.recovered.vote);
    let there = |(at, state): (usize, &State)| promised(at) && is_between(&opened, state, next(at));
    let fits = possible.iter().enumerate().any(there);
    assert!(fits, "{what}: {}", describe(possible, &opened));
    expect_snapshot(&opened, told, what);
    opened
}

/// Whether the log is one between the states before and after a job.
fn is_between(opened: &Opened, before: &State, after: &State) -> bool {
    let least = before.last().index.min(after.last().index);
    last(opened) >= least && (is_part_of(opened, before) || is_part_of(opened, after))
}

/// Whether the log is a prefix of that state's log. Records below an installed snapshot do not matter.
fn is_part_of(opened: &Opened, state: &State) -> bool {
    let Recovered { base, records, .. } = &opened.recovered;
    let known = base.index().max(state.base.index());
    let found = records.iter().filter(|record| record.index() > known);
    let expected = state.records.iter().filter(|record| record.index() > known);
    let same_base = base.index() < state.base.index() || state.holds(base.at);
    let within = (state.base.index()..=state.last().index).contains(&last(opened));
    within && same_base && found.zip(expected).all(|(found, expected)| found == expected)
}

fn expect_snapshot(opened: &Opened, told: &Told, what: &str) {
    let snapshots = opened.snapshots.lock().unwrap();
    let newest = snapshots.newest().cloned().unwrap_or_default();
    assert!(newest.index() >= told.snapshot, "{what}: the snapshot of {} is gone", told.snapshot);
    assert!(newest.index() <= last(opened), "{what}: the snapshot is ahead of the log");
    assert!(newest.index() >= opened.recovered.base.index(), "{what}: a gap between snapshot and log");
    if newest != Boundary::default() {
        assert_eq!(rows(&snapshots), rows_at(newest.index()), "{what}");
        assert!(told.states.iter().any(|state| state.holds(newest.meta.at)), "{what}: {:?}", newest.meta.at);
    }
}

fn last(opened: &Opened) -> Index {
    let Recovered { base, records, .. } = &opened.recovered;
    records.last().map_or(base.index(), Record::index)
}

fn describe(possible: &[State], opened: &Opened) -> String {
    let tell =
        |state: &State| format!("{} {}..{}", state.vote.promise.epoch, state.base.meta.at, state.last());
    let states: Vec<String> = possible.iter().map(tell).collect();
    let Recovered { base, vote, .. } = &opened.recovered;
    let (promise, base) = (vote.promise.epoch, base.at);
    format!("{promise} {base}..{} is not one of {states:?}: {:?}", last(opened), opened.findings)
}
