//! Many seeds of roles and processes.

use super::run::{run, seen};
use crate::plan;
use crate::soak::{Seeds, fixed, fresh, replay_one};

const LEASES: Seeds = Seeds { run, replay: "scripts/sim --leases --seed" };

/// The seeds that every run repeats.
pub const FIXED: u64 = 900;

#[test]
fn fixed_seeds() {
    let drawn = [
        "3 nodes",
        "5 nodes",
        "acknowledged by all",
        "snapshots fail",
        "calls gather",
        "messages are late",
        "an operator restores",
        "two formats",
        "doubles",
        "members change",
        "leases have secrets",
        "documents end",
        "ties",
        "a slot goes bad",
        "promises are lost",
        "no secret",
        "settings change",
        "timings change",
    ];
    fixed(LEASES, FIXED, drawn.map(String::from).into_iter().chain(plan::kinds_of_harm()));
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

/// Seeds in which nothing happens prove nothing.
#[test]
fn everything_happens() {
    const SEEDS: u64 = 80;
    let seen: Vec<_> = (1..=SEEDS).map(seen).collect();
    // Grants, releases, ends, ages; registrations, removals.
    for kind in [105, 106, 107, 108, 117, 118] {
        let records: usize = seen.iter().filter_map(|seen| seen.records.get(&kind)).sum();
        assert!(records > SEEDS as usize, "{records} records of kind {kind}");
    }
    let sum = |of: fn(&super::Witness) -> usize| seen.iter().map(of).sum::<usize>();
    let (beliefs, expired) = (sum(|seen| seen.beliefs), sum(|seen| seen.expired));
    let (halved, gone) = (sum(|seen| seen.halved), sum(|seen| seen.gone));
    let (restored, untied) = (sum(|seen| seen.restored), sum(|seen| seen.untied));
    let (docs, went) = (sum(|seen| seen.docs_expired), sum(|seen| seen.docs_went));
    let full = sum(|seen| seen.full);
    let named = sum(|seen| seen.in_the_name_of_a_role);
    let (conditions, thefts) = (sum(|seen| seen.conditions), sum(|seen| seen.thefts));
    println!("{conditions} writes under a condition, {thefts} attempts without the secret");
    assert!(conditions > 100 && thefts > 400);
    println!(
        "{docs} documents ended, {went} with a lease, {named} were written in the name of a role, {full} calls found the state full"
    );
    assert!(docs > 40 && went > 40 && named > 40 && full > 8);
    println!(
        "of {SEEDS} seeds: {beliefs} beliefs, {expired} ends, {halved} half promises, {gone} grants to the gone, {restored} restores, {untied} ends of ties"
    );
    assert!(beliefs > 1000 && expired > 400 && halved > 40 && gone > 4 && restored > 20 && untied > 40);
}
