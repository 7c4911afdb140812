//! Exhaustive exploration at small bounds: the production core, three nodes, and a network and disks
//! that do their worst.

mod cases;
mod cluster;
mod disk;
mod history;
mod host;
mod model;
mod shared;

use crate::cases::{ALL, Case};
use crate::model::Cases;
use eldest::protocol::mutant::Mutant;
use stateright::{Checker, HasDiscoveries, Model};
use std::time::Instant;

fn run(case: Case, mutant: Option<Mutant>, depth: usize) {
    let begun = Instant::now();
    let model = Cases { case, mutant };
    let checker = model
        .checker()
        .threads(1)
        .target_max_depth(depth)
        .target_state_count(3_000_000)
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join();
    eprintln!(
        "{} {mutant:?}: unique {} total {} depth {} in {:?}",
        case.name,
        checker.unique_state_count(),
        checker.state_count(),
        checker.max_depth(),
        begun.elapsed()
    );
    for (name, path) in checker.discoveries() {
        let fails = !["a leader opens", "a second epoch opens", "a write commits"].contains(&name);
        eprintln!("   {name}: {} steps", path.clone().into_actions().len());
        if fails {
            for a in path.clone().into_actions() {
                eprintln!("      {a}");
            }
            eprintln!("{:?}", path.last_state());
        }
    }
}

#[test]
fn explore() {
    let depth: usize = std::env::var("MODEL_DEPTH")
        .ok()
        .and_then(|d| d.parse().ok())
        .unwrap_or(9);
    let only = std::env::var("CASE").unwrap_or_default();
    for case in ALL.into_iter().filter(|c| c.name.contains(&only)) {
        eprintln!("{:?}", case.start());
        let mut actions = Vec::new();
        case.start().actions(&mut actions);
        eprintln!("{actions:#?}");
        for (refusals, crashes, writes, ticks) in [
            (0, 0, 1, 0),
            (1, 0, 1, 0),
            (0, 1, 1, 0),
            (0, 0, 1, 1),
            (1, 1, 1, 0),
        ] {
            let mut case = case;
            case.budget = crate::cluster::Budget {
                refusals,
                crashes,
                writes,
                ticks,
                ..case.budget
            };
            eprintln!("{:?}", case.budget);
            run(case, None, depth);
        }
    }
}
