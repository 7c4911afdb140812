//! The closed loop: a number of connections, each with one open request, for a given time.
//!
//! A closed loop waits for a slow server instead of building a queue before it. So its rate and its latencies belong
//! together: connections = rate × mean latency.

mod args;
mod report;
mod stream;
mod worker;

pub use args::LoadArgs;

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime};

use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::error::BenchError;
use super::report::CpuClock;
use super::rng::Rng;
use super::session::Session;
use super::status;
use super::tally::Tally;
use super::tally::{failure, lock};
use super::target::Target;
use super::terminal::{EVERY, Progress};
use super::terminal::{grouped, millis, per_second};
use super::workload::{Mix, Workload};
use report::{Measured, Report};
use stream::{LoadStream, Plan};
use worker::Worker;

/// Runs the benchmark. If `stop` completes first, it ends early and reports what was done.
pub async fn run(
    args: &LoadArgs,
    stop: impl Future<Output = ()>,
    out: &mut impl Write,
) -> Result<(), BenchError> {
    let headers = args.common.header_lines();
    let mut targets = Target::resolve_all(&args.common).await?;
    let before = if args.choice.spread {
        status::look(&targets, &headers).await.ok()
    } else {
        let (leader_first, look) = status::leader_first(targets, &headers).await?;
        targets = leader_first;
        Some(look)
    };
    let targets: Arc<[Target]> = targets.into();
    let measured = measure(args, &targets, stop).await;
    let after = status::look(&targets, &headers).await.ok();
    let report = Report::new(args, &targets, &measured, before, after);
    report.print(args.common.json, out).map_err(BenchError::Output)?;
    if measured.tally.done() == 0 {
        return Err(BenchError::NothingSucceeded { code: measured.tally.trouble.most_frequent() });
    }
    Ok(())
}

async fn measure(args: &LoadArgs, targets: &Arc<[Target]>, stop: impl Future<Output = ()>) -> Measured {
    let tally = Arc::new(Mutex::new(Tally::default()));
    let (mut began, mut cpu) = (Instant::now(), CpuClock::now());
    let progress = Progress::on_stderr();
    // Dropping this ends the workers.
    let mut workers = match args.stream {
        Some(streams) => start_streams(args, streams, targets, &tally),
        None => start(args, targets, &tally),
    };
    let measuring = async {
        if !args.warmup.is_zero() {
            sleep(args.warmup).await;
            *lock(&tally) = Tally::default();
            (began, cpu) = (Instant::now(), CpuClock::now());
        }
        tokio::select! {
            () = sleep(args.duration) => (),
            () = watch(args, &tally, began, &progress) => (),
        }
    };
    tokio::select! {
        () = measuring => (),
        () = stop => (),
        () = failure(&mut workers) => (),
    }
    let span = began.elapsed();
    progress.clear();
    Measured { tally: lock(&tally).clone(), span, cpu_percent: cpu.percent_over(span) }
}

fn start(args: &LoadArgs, targets: &Arc<[Target]>, tally: &Arc<Mutex<Tally>>) -> JoinSet<()> {
    let mix = Mix {
        keys: u64::from(args.keys),
        value_bytes: args.size as usize,
        read_percent: u64::from(args.read),
        level: args.level,
        forward: args.choice.spread,
        idempotent: args.idempotent.then(run_number),
        headers: args.common.header_lines(),
    };
    let mut seeds = Rng::new(args.seed);
    let mut workers = JoinSet::new();
    for at in 0..usize::from(args.connections) {
        let first = if args.choice.spread { at } else { 0 };
        let session = Session::new(targets.clone(), first, args.timeout);
        let workload = Workload::new(mix.clone(), seeds.next());
        workers.spawn(Worker::new(session, workload, args.idempotent, tally.clone()).work());
    }
    workers
}

fn start_streams(
    args: &LoadArgs,
    streams: u16,
    targets: &Arc<[Target]>,
    tally: &Arc<Mutex<Tally>>,
) -> JoinSet<()> {
    let plan = Plan {
        keys: u64::from(args.keys),
        value_bytes: args.size as usize,
        window: args.window as usize,
        headers: args.common.header_lines(),
        patience: args.timeout,
    };
    let mut seeds = Rng::new(args.seed);
    let mut workers = JoinSet::new();
    for at in 0..usize::from(streams) {
        let first = if args.choice.spread { at } else { 0 };
        workers
            .spawn(LoadStream::new(plan.clone(), targets.clone(), first, seeds.next(), tally.clone()).work());
    }
    workers
}

/// A number for this run alone. Two runs with the same number would use the same idempotency keys, and the second
/// would get the results of the first.
fn run_number() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Rng::new(since.as_nanos() as u64 ^ u64::from(std::process::id()) << 40).next()
}

async fn watch(args: &LoadArgs, tally: &Mutex<Tally>, began: Instant, progress: &Progress) {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    ticks.tick().await;
    let mut last = Instant::now();
    loop {
        ticks.tick().await;
        let mut tally = lock(tally);
        let recent = &tally.recent;
        let rate = grouped(per_second(recent.count(), last.elapsed()) as u64);
        let p99 = millis(recent.quantile(990));
        let (passed, total) = (began.elapsed().as_secs(), args.duration.as_secs_f64());
        let (done, errors) = (grouped(tally.done()), grouped(tally.trouble.total()));
        progress
            .show(|| format!("{passed}/{total} s  {done} done  {rate}/s  p99 {p99:.2} ms  {errors} errors"));
        tally.recent.clear();
        last = Instant::now();
    }
}
