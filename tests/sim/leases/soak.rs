//! Many seeds of roles and processes.

use super::run::run;
use crate::soak::{Seeds, fresh, replay_one, soak};

const LEASES: Seeds = Seeds { run, replay: "scripts/sim --leases --seed" };

/// The seeds that every run repeats.
#[test]
fn fixed_seeds() {
    soak(LEASES, 1, 400);
}

#[test]
fn fresh_seeds() {
    fresh(LEASES);
}

#[test]
fn replay() {
    replay_one(LEASES);
}

/// Same seed, same trace, byte for byte.
#[test]
fn a_seed_is_a_seed() {
    for seed in 1..10 {
        let (first, second) = (run(seed, true), run(seed, true));
        assert_eq!(first, second, "seed {seed} ran differently the second time");
    }
}
