//! Many seeds of available mode.

use super::plan;
use super::run::{live, run};
use crate::soak::{Seeds, fresh, replay_one, soak};

const AVAILABLE: Seeds = Seeds { run, replay: "scripts/sim --available --seed" };

/// The seeds that every run repeats.
#[test]
fn fixed_seeds() {
    soak(AVAILABLE, 1, 300);
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
