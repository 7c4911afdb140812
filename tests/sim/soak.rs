//! Many seeds: a fixed set that never changes, and fresh ones whose numbers are printed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use eldest::protocol::{Ack, Takeover, Timing};
use eldest::types::FORMAT;

use crate::checks::Violation;
use crate::plan;
use crate::run::{Outcome, run};
use crate::world::World;

/// The function that runs a seed, and the command that shows it again.
#[derive(Clone, Copy)]
pub struct Seeds {
    pub run: fn(u64, bool) -> Outcome,
    pub replay: &'static str,
}

const SAFE: Seeds = Seeds { run, replay: "scripts/sim --seed" };

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn fail(seeds: Seeds, seed: u64, violation: &Violation) -> ! {
    panic!(
        "\nseed {seed} breaks {}\n{}\nreplay it with: {} {seed}\n",
        violation.checker, violation.what, seeds.replay
    );
}

/// The number of seeds in which each feature occurred.
type Seen = BTreeMap<String, u64>;

/// Runs seeds on all cores; the first violation ends it.
fn soak(seeds: Seeds, first: u64, count: u64) -> Seen {
    let next = AtomicU64::new(0);
    let (steps, slowest) = (AtomicU64::new(0), AtomicU64::new(0));
    let started = Instant::now();
    let work = || {
        let mut features = Seen::new();
        loop {
            let done = next.fetch_add(1, Ordering::Relaxed);
            if done >= count {
                return Ok(features);
            }
            match (seeds.run)(first + done, false) {
                Ok(report) => {
                    report
                        .features
                        .into_iter()
                        .for_each(|feature| *features.entry(feature).or_default() += 1);
                    steps.fetch_add(report.steps, Ordering::Relaxed);
                    slowest.fetch_max(report.resumed_us, Ordering::Relaxed);
                }
                Err((violation, _)) => return Err((first + done, violation)),
            }
            if (done + 1).is_multiple_of(1000) {
                let speed = (done + 1) as f64 / started.elapsed().as_secs_f64();
                println!("{} of {count} seeds, {speed:.0} a second", done + 1);
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut features = Seen::new();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            match worker.join().expect("a worker") {
                Ok(seen) => {
                    seen.into_iter().for_each(|(feature, n)| *features.entry(feature).or_default() += n)
                }
                Err((seed, violation)) => {
                    next.store(count, Ordering::Relaxed);
                    fail(seeds, seed, &violation);
                }
            }
        }
    });
    let seconds = started.elapsed().as_secs_f64();
    let cost = seconds * 1000.0 * threads as f64 / count as f64;
    println!(
        "seeds {first} to {}: 0 violations; {:.1} ms of a core a seed, {} steps a seed, writes resumed within {} ms",
        first + count - 1,
        cost,
        steps.load(Ordering::Relaxed) / count,
        slowest.load(Ordering::Relaxed) / 1000,
    );
    features
}

/// Runs the seeds from 1 on that the gate repeats, and requires every feature in them: a seed in which
/// nothing happens proves nothing.
pub fn fixed(seeds: Seeds, count: u64, wanted: impl IntoIterator<Item = String>) {
    let seen = soak(seeds, 1, count);
    let missing: Vec<String> = wanted.into_iter().filter(|feature| !seen.contains_key(feature)).collect();
    assert!(missing.is_empty(), "no fixed seed has {missing:?}, only {seen:?}");
}

/// Notes how a world was set up, in words: the features that the fixed seeds must have.
pub fn note_features(world: &mut World) {
    let settings = &world.hosts[0].settings;
    let older = world.hosts.iter().any(|host| host.settings.format < FORMAT);
    let failing = world.hosts.iter().any(|host| host.disk.failing.is_some());
    let dead_after = settings.timing.dead_after;
    let drawn = [
        ("acknowledged by all", settings.ack == Ack::All),
        ("elders take over", settings.takeover == Takeover::WhenStable),
        ("timings of several sites", dead_after == Timing::wan().dead_after),
        ("timings of the seed", dead_after == Timing::seed().dead_after),
        ("two formats", older),
        ("snapshots fail", failing),
        ("calls gather", world.gathers),
        ("messages are late", world.net.late > 0),
        ("tokens", world.tokens.is_some()),
        ("readers", world.readers.is_some()),
        ("doubles", world.doubles.rng.is_some()),
        ("clients restore", world.clients.restores),
        ("an operator restores", world.operator.is_some()),
        ("roles", world.holders.is_some()),
        ("no secret", !settings.peers_prove),
        ("users vote", world.clients.votes),
        ("looks at what a node has", world.clients.looks),
        ("leases have secrets", world.lessees.as_ref().is_some_and(|lessees| lessees.thieves.is_some())),
        ("documents end", world.lessees.as_ref().is_some_and(|lessees| lessees.writers.is_some())),
        ("ties", world.lessees.as_ref().is_some_and(|lessees| lessees.ties.is_some())),
    ];
    let drawn = drawn.into_iter().filter(|(_, is)| *is).map(|(what, _)| what.to_string());
    let nodes = format!("{} nodes", settings.members.len());
    let features: BTreeSet<String> = drawn.chain([nodes]).collect();
    world.features.extend(features);
}

/// Runs `SIM_SEEDS` new seeds, or as many from `SIM_FIRST` on.
pub fn fresh(seeds: Seeds) {
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
    let first = number("SIM_FIRST").unwrap_or(clock.as_micros() as u64);
    let seen = soak(seeds, first, number("SIM_SEEDS").unwrap_or(500));
    println!("seeds in which this occurs:");
    seen.iter().for_each(|(feature, seeds)| println!("{seeds:>8}  {feature}"));
}

/// Runs `SIM_SEED`, and prints its whole trace.
pub fn replay_one(seeds: Seeds) {
    let Some(seed) = number("SIM_SEED") else {
        return;
    };
    match (seeds.run)(seed, true) {
        Ok(report) => {
            report.trace.iter().for_each(|line| println!("{line}"));
            println!("seed {seed}: 0 violations, trace {:x}", report.trace_hash);
        }
        Err((violation, trace)) => {
            trace.iter().for_each(|line| println!("{line}"));
            fail(seeds, seed, &violation);
        }
    }
}

/// The seeds that every run repeats. They include all seeds by which mutants are caught.
pub const FIXED: u64 = 3_000;

#[test]
fn fixed_seeds() {
    let drawn = [
        "3 nodes",
        "5 nodes",
        "7 nodes",
        "acknowledged by all",
        "elders take over",
        "timings of several sites",
        "timings of the seed",
        "two formats",
        "snapshots fail",
        "calls gather",
        "messages are late",
        "tokens",
        "readers",
        "doubles",
        "clients restore",
        "members change",
        "leases differ",
        "users vote",
        "looks at what a node has",
        "a bit flips in a state",
        "a slot goes bad",
        "promises are lost",
        "no secret",
        "settings change",
        "timings change",
    ];
    fixed(SAFE, FIXED, drawn.map(String::from).into_iter().chain(plan::kinds_of_harm()));
}

#[test]
fn fresh_seeds() {
    fresh(SAFE);
}

#[test]
fn replay() {
    replay_one(SAFE);
}

/// Same seed, same trace, byte for byte.
#[test]
fn a_seed_is_a_seed() {
    for seed in 1..20 {
        let (first, second) = (run(seed, true), run(seed, true));
        assert_eq!(first, second, "seed {seed} ran differently the second time");
    }
}
