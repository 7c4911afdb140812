//! Many seeds of available mode.

use super::plan;
use super::run::{live, run};
use crate::soak::{Seeds, fixed, fresh, replay_one};

const AVAILABLE: Seeds = Seeds { run, replay: "scripts/sim --available --seed" };

/// The seeds that every run repeats.
pub const FIXED: u64 = 800;

#[test]
fn fixed_seeds() {
    let drawn = [
        "3 nodes",
        "5 nodes",
        "elders take over",
        "timings of several sites",
        "timings of the seed",
        "snapshots fail",
        "calls gather",
        "messages are late",
        "tokens",
        "roles",
        "readers",
        "no secret",
        "settings change",
        "timings change",
    ];
    fixed(AVAILABLE, FIXED, drawn.map(String::from).into_iter().chain(plan::kinds_of_harm()));
}

#[test]
fn fresh_seeds() {
    fresh(AVAILABLE);
}

#[test]
fn replay() {
    replay_one(AVAILABLE);
}

/// Same seed, same trace, byte for byte.
#[test]
fn a_seed_is_a_seed() {
    for seed in 1..10 {
        let (first, second) = (run(seed, true), run(seed, true));
        assert_eq!(first, second, "seed {seed} ran differently the second time");
    }
}

/// Holders that never believe in anything prove nothing.
#[test]
fn roles_are_held() {
    let beliefs = (1..=30).map(|seed| {
        let (mut world, mut plan) = plan::world(seed);
        live(&mut world, &mut plan).expect("a seed that holds");
        world.holders.map_or(0, |holders| holders.beliefs)
    });
    let beliefs: usize = beliefs.sum();
    println!("{beliefs} beliefs");
    assert!(beliefs > 200);
}
