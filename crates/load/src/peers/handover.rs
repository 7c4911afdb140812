//! The time from the release of a lock to the grant to a waiter.

use std::io::Write;
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::time::sleep;

use super::super::error::BenchError;
use super::super::histogram::Histogram;
use super::super::session::Trouble;
use super::super::terminal::millis;
use super::client::{Client, leader};
use super::cluster::{Cluster, print};
use super::op::Op;

/// The time limit of a call: longer than any wait.
const PATIENCE: Duration = Duration::from_secs(30);

/// The time that a new waiter has to enter the queue. etcd checks ten times a second for watchers that have come
/// late, so a shorter wait would measure that check.
const IN_LINE: Duration = Duration::from_millis(150);

const LOCK: &str = "bench-handed";

#[derive(Clone, Debug, clap::Args)]
pub struct HandoverArgs {
    #[command(flatten)]
    cluster: Cluster,

    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    runs: u16,
}

#[derive(Serialize)]
struct Report {
    count: u64,
    p50_ms: f64,
    p99_ms: f64,
    max_ms: f64,
}

/// Runs the benchmark. If `stop` completes first, it ends early and prints nothing.
pub async fn run(
    args: &HandoverArgs,
    stop: impl Future<Output = ()>,
    out: &mut impl Write,
) -> Result<(), BenchError> {
    let targets = args.cluster.targets();
    let system = args.cluster.system;
    let first = leader(system, &targets).await.unwrap_or(0);
    let client = |number| Client::new(system, number, targets.clone(), first, PATIENCE);
    let took = tokio::select! {
        took = hand_on(client(0), client(1), args.runs) => took,
        () = stop => return Ok(()),
    };
    let url = targets[first].url.clone();
    let took = took.map_err(|trouble| BenchError::Rejected { url, code: trouble.code.into_owned() })?;
    let at = |per_mille| millis(took.quantile(per_mille));
    print(&Report { count: took.count(), p50_ms: at(500), p99_ms: at(990), max_ms: millis(took.max()) }, out)
}

/// Lets two clients take the lock from each other in turn.
async fn hand_on(mut holder: Client, mut next: Client, runs: u16) -> Result<Histogram, Trouble> {
    let mut took = Histogram::default();
    holder.perform(&Op::Acquire { lock: LOCK }).await?;
    for _ in 0..runs {
        let waiting = tokio::spawn(async move {
            let granted = next.perform(&Op::Acquire { lock: LOCK }).await;
            (next, granted, Instant::now())
        });
        sleep(IN_LINE).await;
        let began = Instant::now();
        holder.perform(&Op::Release { lock: LOCK }).await?;
        let (waiter, granted, at) = match waiting.await {
            Ok(waited) => waited,
            Err(ended) => std::panic::resume_unwind(ended.into_panic()),
        };
        granted?;
        took.record(at.saturating_duration_since(began));
        next = std::mem::replace(&mut holder, waiter);
    }
    holder.perform(&Op::Release { lock: LOCK }).await?;
    Ok(took)
}
