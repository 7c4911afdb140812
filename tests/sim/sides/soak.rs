//! Many seeds of available mode.

use super::run::run;
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
