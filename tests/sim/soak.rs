//! Many seeds: a fixed set that never changes, and fresh ones whose numbers are printed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::checks::Violation;
use crate::run::{Outcome, run};

/// What a seed is run by, and how to see it again.
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

/// Runs seeds on all cores; the first violation ends it.
pub fn soak(seeds: Seeds, first: u64, count: u64) {
    let next = AtomicU64::new(0);
    let (steps, slowest) = (AtomicU64::new(0), AtomicU64::new(0));
    let started = Instant::now();
    let work = || {
        loop {
            let done = next.fetch_add(1, Ordering::Relaxed);
            if done >= count {
                return Ok(());
            }
            match (seeds.run)(first + done, false) {
                Ok(report) => {
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
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            if let Err((seed, violation)) = worker.join().expect("a worker") {
                next.store(count, Ordering::Relaxed);
                fail(seeds, seed, &violation);
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
}

/// `SIM_SEEDS` seeds that nobody has run before, or from `SIM_FIRST` on.
pub fn fresh(seeds: Seeds) {
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
    let first = number("SIM_FIRST").unwrap_or(clock.as_micros() as u64);
    soak(seeds, first, number("SIM_SEEDS").unwrap_or(500));
}

/// `SIM_SEED`, with its whole trace.
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

/// The seeds that every run repeats.
#[test]
fn fixed_seeds() {
    soak(SAFE, 1, 1000);
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
