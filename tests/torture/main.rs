//! A long random test that others can repeat: real processes, each with its own network, disk and clocks;
//! workloads; faults of every kind, chosen by a printed seed; and checkers. `scripts/torture` starts it.
//!
//! ```text
//!  main        rounds of a minute: faults, then calm, then judgement
//!   ├─ arena    the cluster: namespaces, small disks, and a library preloaded in each process
//!   │           (machine.rs, shim.c, power.rs), and late packets (late.rs)
//!   ├─ nemesis  the faults
//!   ├─ workload the calls of clients meanwhile, and their records
//!   └─ check    the judgement of those records; tests/it runs the checkers' own tests
//! ```

#[allow(
    dead_code,
    unused_imports,
    reason = "it is shared with the tests in tests/it, and not all of it is needed here"
)]
#[path = "../it/harness/mod.rs"]
mod harness;
#[allow(dead_code, unused_imports, reason = "shared with the simulator, where its tests run")]
#[path = "../sim/linear/mod.rs"]
mod linear;
#[path = "../it/registers.rs"]
mod registers;

#[allow(dead_code, unused_imports, reason = "the tests of its checkers run in tests/it")]
mod check;

mod arena;
mod late;
mod machine;
mod nemesis;
mod power;
mod workload;

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures_util::FutureExt as _;

use arena::{Arena, Mode, TIMINGS};
use harness::Rng;
use nemesis::{Kind, Nemesis};
use workload::{Counts, Round};

const USAGE: &str = "usage: scripts/torture [--minutes N] [--nodes 3|5] [--mode safe|available] [--seed N] [--only KIND,…]
  Real processes under faults for so many minutes (5 unless told), in rounds of a minute that end in calm and a judgement.
  --only   these kinds of faults alone, by the names that a run prints in the end";

/// Faults go on for this long; then the cluster must recover completely.
const ROUND: Duration = Duration::from_secs(60);

/// The bound for a judgement, without faults and with the longest list: it only makes the run fail.
const JUDGED_WITHIN: Duration = Duration::from_secs(180);

#[derive(Debug)]
struct Options {
    minutes: u64,
    nodes: u32,
    mode: Mode,
    seed: u64,
    only: Vec<String>,
}

fn options() -> Option<Options> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
    let mut options =
        Options { minutes: 5, nodes: 3, mode: Mode::Safe, seed: now.as_micros() as u64, only: Vec::new() };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next()?;
        match word.as_str() {
            "--minutes" => options.minutes = value.parse().ok()?,
            "--nodes" => options.nodes = value.parse().ok().filter(|nodes| [3, 5].contains(nodes))?,
            "--mode" if value == "safe" => options.mode = Mode::Safe,
            "--mode" if value == "available" => options.mode = Mode::Available,
            "--seed" => options.seed = value.parse().ok()?,
            "--only" => options.only = value.split(',').map(str::to_string).collect(),
            _ => return None,
        }
    }
    let known: Vec<String> = Kind::all().into_iter().map(Kind::name).collect();
    options.only.iter().all(|name| known.contains(name)).then_some(options)
}

/// The totals of a run.
#[derive(Debug, Default)]
struct Totals {
    counts: Counts,
    rounds: u64,
    longest_silence: Duration,
    longest_calm: Duration,
}

#[tokio::main]
async fn main() -> ExitCode {
    let Some(options) = options() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let Options { minutes, nodes, mode, seed, .. } = &options;
    println!("scripts/torture --minutes {minutes} --nodes {nodes} --mode {mode} --seed {seed}");
    let arena = Arc::new(Arena::new(*nodes, *mode, &TIMINGS[timings_of(*seed)]).await);
    // The contents of the disks are kept before they are unmounted, even after a panic.
    match AssertUnwindSafe(run(arena.clone(), options)).catch_unwind().await {
        Ok(Ok(())) => return ExitCode::SUCCESS,
        Ok(Err(found)) => println!("\nVIOLATION {found}"),
        Err(_) => println!("\nENDED before it could judge"),
    }
    arena.keep();
    ExitCode::FAILURE
}

/// The timings that a run begins with.
fn timings_of(seed: u64) -> usize {
    (seed % 2) as usize
}

async fn run(arena: Arc<Arena>, options: Options) -> check::Verdict {
    let Options { minutes, seed, only, .. } = options;
    let mut rng = Rng::new(seed);
    let mut kinds = Kind::all();
    kinds.retain(|kind| only.is_empty() || only.contains(&kind.name()));
    let mut nemesis = Nemesis::of(kinds, arena.clone(), Rng::new(rng.next()), timings_of(seed));
    let (began, mut totals) = (Instant::now(), Totals::default());
    while began.elapsed() < Duration::from_secs(60 * minutes) {
        let round = Round::new(arena.clone(), totals.rounds);
        let verdict = one_round(&round, &mut nemesis, &mut rng, began, &mut totals).await;
        verdict.map_err(|found| format!("in round {} of seed {seed}: {found}", round.number))?;
    }
    report(&totals, &nemesis.counts(), began.elapsed());
    Ok(())
}

async fn one_round(
    round: &Arc<Round>,
    nemesis: &mut Nemesis,
    rng: &mut Rng,
    began: Instant,
    totals: &mut Totals,
) -> check::Verdict {
    let running = workload::begin(round, rng);
    let until = Instant::now() + ROUND;
    while Instant::now() < until {
        println!("{:>6} s  {}", began.elapsed().as_secs(), nemesis.strike().await);
    }
    nemesis.lift_all().await;
    let healed = Instant::now();
    round.arena.cluster.ready().await;
    let written = round.written();
    harness::wait_for("writes resume", async || (round.written() != written).then_some(())).await;
    let calm = healed.elapsed();
    round.stop();
    for workload in running {
        let verdict = tokio::time::timeout(JUDGED_WITHIN, workload.verdict(round)).await;
        verdict.map_err(|_| "a workload does not come to its end".to_string())??;
    }
    round.arena.settles().await;
    println!(
        "{:>6} s  round {}: calm after {} ms",
        began.elapsed().as_secs(),
        round.number,
        calm.as_millis()
    );
    for (workload, counts) in round.counts() {
        let total = totals.counts.entry(workload).or_default();
        total.iter_mut().zip(counts).for_each(|(total, count)| *total += count);
    }
    totals.rounds += 1;
    totals.longest_silence = totals.longest_silence.max(round.longest_silence());
    totals.longest_calm = totals.longest_calm.max(calm);
    Ok(())
}

fn report(totals: &Totals, faults: &BTreeMap<String, u64>, lasted: Duration) {
    println!("\n| workload | done | refused | unknown |\n|---|---:|---:|---:|");
    for (workload, [done, refused, unknown]) in &totals.counts {
        println!("| {workload} | {done} | {refused} | {unknown} |");
    }
    println!("\n| fault | times |\n|---|---:|");
    faults.iter().for_each(|(fault, times)| println!("| {fault} | {times} |"));
    println!(
        "\n{} rounds in {} s, 0 violations; at most {} ms without a write, calm within {} ms",
        totals.rounds,
        lasted.as_secs(),
        totals.longest_silence.as_millis(),
        totals.longest_calm.as_millis()
    );
}
