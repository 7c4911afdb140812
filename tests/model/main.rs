//! Exhaustive exploration at small bounds: the product's replica on three nodes, with a network that reorders
//! and loses messages, disks that lose unsynced writes, and deadlines that come at any moment.
//!
//! A case is a start and a budget of misfortunes; its whole space is explored, breadth first. Between
//! two actions no time passes: a clock moves only when its node's deadline comes, and then to that
//! deadline. Each case prints its numbers. `MODEL_LARGE=1` gives every case its larger budget,
//! `MODEL_DEPTH=n` bounds the actions.
//!
//! Caveats: leases are not judged here (clocks of different nodes do not compare; the simulator checks I4);
//! no snapshots; messages of the kinds that a case calls noise are always lost.

extern crate eldest_core as eldest;

mod cases;
mod cluster;
mod disk;
mod history;
mod host;
mod model;
mod mutants;
mod shared;

use std::io::Write;
use std::time::Instant;

use stateright::{Checker, Expectation, HasDiscoveries, Model, Path};

use crate::cases::{
    ABSENT_ELDER, Case, DEPOSED, HAND_OVER, RESTARTED, RIVALS, RIVALS_CRASH, RIVALS_LATE, TWO_SUFFIXES,
};
use crate::cluster::{Action, Cluster};
use crate::model::Cases;

type Paths = Vec<(&'static str, Path<Cluster, Action>)>;

/// Explores a case until something fails or nothing is left; returns the failed
/// properties and the reached ones.
fn explore(model: &Cases) -> (Paths, Paths) {
    let begun = Instant::now();
    let depth = number("MODEL_DEPTH").unwrap_or(0);
    let mut checker = model.clone().checker().finish_when(HasDiscoveries::AnyFailures);
    if depth > 0 {
        // A start counts as depth one, and the last layer is counted but not judged.
        checker = checker.target_max_depth(depth + 2);
    }
    let done = checker.spawn_bfs().join();
    let (unique, steps) = (done.unique_state_count(), done.max_depth() - 1);
    let seconds = begun.elapsed().as_secs_f64();
    let bug = model.mutant.map_or(String::new(), |mutant| format!(" with {mutant:?}"));
    let name = model.case.name;
    let line = format!("{name}{bug}: {unique} states, {steps} actions deep, {seconds:.1} s\n");
    // The print macros would not do: the numbers are also wanted from tests that pass.
    let _ = std::io::stderr().write_all(line.as_bytes());
    let reached = |name: &&'static str| {
        model
            .properties()
            .iter()
            .any(|property| property.name == *name && property.expectation == Expectation::Sometimes)
    };
    done.discoveries().into_iter().partition(|(name, _)| !reached(name))
}

fn number(variable: &str) -> Option<usize> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Explores the whole space of a case, and checks that it reaches the events that the case is about.
fn holds(mut case: Case, reached: &[&str]) {
    if number("MODEL_LARGE").is_some() {
        case.budget = case.large;
    }
    let model = Cases { case, mutant: None };
    let (failed, found) = explore(&model);
    if let Some((name, path)) = failed.into_iter().next() {
        panic!("{}: not \"{name}\":\n{}", case.name, told(path));
    }
    for name in reached {
        let seen = found.iter().any(|(found, _)| found == name);
        assert!(seen, "{}: never \"{name}\"", case.name);
    }
}

fn told(path: Path<Cluster, Action>) -> String {
    let last = path.last_state().clone();
    let actions = path.into_actions().into_iter().map(|action| format!("  {action}\n"));
    format!("{}{last:?}", actions.collect::<String>())
}

const OPENS: &str = "a leader opens";
const WRITES: &str = "a write commits";
const OPENS_AGAIN: &str = "a second epoch opens";

#[test]
fn rivals_elect_one_leader() {
    holds(RIVALS, &[OPENS, WRITES]);
}

#[test]
fn rivals_survive_a_crash() {
    holds(RIVALS_CRASH, &[OPENS, WRITES]);
}

#[test]
fn rivals_survive_a_deadline() {
    holds(RIVALS_LATE, &[OPENS, OPENS_AGAIN]);
}

#[test]
fn a_restarted_claimant_claims_a_greater_epoch() {
    holds(RESTARTED, &[OPENS, OPENS_AGAIN]);
}

#[test]
fn an_absent_elder_pulls_before_it_leads() {
    holds(ABSENT_ELDER, &[OPENS]);
}

#[test]
fn a_deposed_leader_commits_nothing_more() {
    holds(DEPOSED, &[WRITES, OPENS_AGAIN]);
}

#[test]
fn a_counted_suffix_is_not_committed() {
    holds(TWO_SUFFIXES, &[OPENS, OPENS_AGAIN]);
}

#[test]
fn a_hand_over_ends_its_epoch() {
    holds(HAND_OVER, &[WRITES, OPENS_AGAIN]);
}
