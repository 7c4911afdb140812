//! The closed loop, the same for every system: a number of connections, each with one open operation, for a given
//! time.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::args::{VALUE_BYTES, parse_duration, parse_span};
use crate::error::BenchError;
use crate::histogram::Histogram;
use crate::peers::client::{Client, leader};
use crate::peers::cluster::{Cluster, nothing, print};
use crate::peers::op::Op;
use crate::report::CpuClock;
use crate::rng::Rng;
use crate::session::{Fate, RETRY_PAUSE, Trouble};
use crate::tally::{Errors, Kind};
use crate::tally::{failure, lock};
use crate::terminal::{millis, per_second};
use crate::workload::{push_json_text, stamp};

/// The time limit of one operation.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Work {
    /// New values for random keys, at the leader
    Write,
    /// Reads that see every earlier acknowledged write, at the leader
    Linear,
    /// Reads of each node's own state, at all nodes
    Local,
    /// Acquire and release one lock per connection, at the leader
    Lock,
    /// Write each key once, then stop
    Fill,
}

#[derive(Clone, Debug, clap::Args)]
pub struct PeerLoadArgs {
    #[command(flatten)]
    cluster: Cluster,

    #[arg(long)]
    work: Work,

    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
    connections: u16,

    /// Duration of the measurement
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_span)]
    duration: Duration,

    /// Time to run before the measurement
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_duration)]
    warmup: Duration,

    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..))]
    keys: u32,

    /// Size of a value in bytes, as JSON
    #[arg(long, value_name = "BYTES", default_value_t = 256, value_parser = clap::value_parser!(u32).range(VALUE_BYTES))]
    size: u32,

    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
}

#[derive(Serialize)]
struct Report {
    count: u64,
    per_s: f64,
    p50_ms: f64,
    p99_ms: f64,
    max_ms: f64,
    errors: u64,
    most_frequent_error: Option<String>,
    /// The processor time of all nodes.
    server_cpu_s: f64,
    server_cpu_s_per_10_000: f64,
    client_cpu_percent: f64,
}

#[derive(Debug, Default)]
struct Counted {
    done: Histogram,
    errors: Errors,
}

/// Runs the benchmark. If `stop` completes first, it ends early and reports what was done.
pub async fn run(
    args: &PeerLoadArgs,
    stop: impl Future<Output = ()>,
    out: &mut impl Write,
) -> Result<(), BenchError> {
    let targets = args.cluster.targets();
    let first = leader(args.cluster.system, &targets).await;
    let first = first.ok_or_else(|| BenchError::NoLeader { said: Vec::new() })?;
    let counted = Arc::new(Mutex::new(Counted::default()));
    let mut seeds = Rng::new(args.seed);
    let mut workers = JoinSet::new();
    for number in 0..usize::from(args.connections) {
        let first = if args.work == Work::Local { number } else { first };
        let client = Client::new(args.cluster.system, number, targets.clone(), first, PATIENCE);
        let worker = Worker::new(args, number, client, seeds.next(), counted.clone());
        workers.spawn(worker.work());
    }
    let (mut began, mut servers, mut own) = clocks(&args.cluster.pids);
    let filling = args.work == Work::Fill;
    let measuring = async {
        if filling {
            return while workers.join_next().await.is_some() {};
        }
        sleep(args.warmup).await;
        *lock(&counted) = Counted::default();
        (began, servers, own) = clocks(&args.cluster.pids);
        tokio::select! {
            () = sleep(args.duration) => (),
            () = failure(&mut workers) => (),
        }
    };
    tokio::select! {
        () = measuring => (),
        () = stop => (),
    }
    let span = began.elapsed();
    let cpu = of(&args.cluster.pids).saturating_sub(servers);
    let report = Report::new(&lock(&counted), span, cpu, own.percent_over(span));
    print(&report, out)?;
    if report.count == 0 {
        return Err(nothing(&lock(&counted).errors));
    }
    Ok(())
}

fn clocks(pids: &[i32]) -> (Instant, Duration, CpuClock) {
    (Instant::now(), of(pids), CpuClock::now())
}

/// One connection.
struct Worker {
    work: Work,
    client: Client,
    rng: Rng,
    keys: u64,
    value: Vec<u8>,
    lock: String,
    /// The keys of this connection, if each key is to be written once.
    fill: std::iter::StepBy<std::ops::Range<u64>>,
    counted: Arc<Mutex<Counted>>,
}

impl Worker {
    fn new(
        args: &PeerLoadArgs,
        number: usize,
        client: Client,
        seed: u64,
        counted: Arc<Mutex<Counted>>,
    ) -> Worker {
        let (mut rng, mut value) = (Rng::new(seed), Vec::new());
        push_json_text(&mut value, args.size as usize, &mut rng);
        let keys = u64::from(args.keys);
        let fill = (number as u64..keys.max(number as u64)).step_by(args.connections.into());
        // The name belongs to this run alone: a lock that another run has left behind may still be held.
        let lock = format!("bench-lock-{}-{number}", std::process::id());
        Worker { work: args.work, client, rng, keys, value, lock, fill, counted }
    }

    async fn work(mut self) {
        loop {
            let next = if self.work == Work::Fill { self.fill.next() } else { None };
            match (self.work, next) {
                (Work::Fill, None) => return,
                (Work::Lock, _) => self.cycle().await,
                (_, Some(key)) => self.until_done(key).await,
                (_, None) => {
                    let key = self.rng.below(self.keys);
                    self.once(key).await;
                }
            }
        }
    }

    /// Performs one operation. The latency counts from the first attempt. An operation that may have been applied is
    /// not repeated.
    async fn once(&mut self, key: u64) {
        let began = Instant::now();
        loop {
            let trouble = match self.ask(key).await {
                Ok(()) => return lock(&self.counted).done.record(began.elapsed()),
                Err(trouble) => trouble,
            };
            let again = trouble.fate == Fate::NotApplied;
            self.count(&trouble, again).await;
            if !again {
                return;
            }
        }
    }

    async fn until_done(&mut self, key: u64) {
        let began = Instant::now();
        while let Err(trouble) = self.ask(key).await {
            self.count(&trouble, true).await;
        }
        lock(&self.counted).done.record(began.elapsed());
    }

    async fn cycle(&mut self) {
        let began = Instant::now();
        let mut done = self.client.perform(&Op::Acquire { lock: &self.lock }).await;
        if done.is_ok() {
            done = self.client.perform(&Op::Release { lock: &self.lock }).await;
        }
        match done {
            Ok(()) => lock(&self.counted).done.record(began.elapsed()),
            Err(trouble) => self.count(&trouble, false).await,
        }
    }

    async fn ask(&mut self, key: u64) -> Result<(), Trouble> {
        let op = match self.work {
            Work::Linear => Op::ReadLinear { key },
            Work::Local => Op::ReadLocal { key },
            Work::Write | Work::Fill | Work::Lock => {
                stamp(&mut self.value, self.rng.next());
                Op::Write { key, value: &self.value }
            }
        };
        self.client.perform(&op).await
    }

    async fn count(&self, trouble: &Trouble, again: bool) {
        lock(&self.counted).errors.count(Kind::Write, trouble, again);
        sleep(RETRY_PAUSE).await;
    }
}

impl Report {
    fn new(counted: &Counted, span: Duration, cpu: Duration, client_cpu_percent: f64) -> Report {
        let done = &counted.done;
        let server_cpu_s = cpu.as_secs_f64();
        Report {
            count: done.count(),
            per_s: per_second(done.count(), span),
            p50_ms: millis(done.quantile(500)),
            p99_ms: millis(done.quantile(990)),
            max_ms: millis(done.max()),
            errors: counted.errors.total(),
            most_frequent_error: counted.errors.most_frequent(),
            server_cpu_s,
            server_cpu_s_per_10_000: server_cpu_s * 10_000.0 / done.count().max(1) as f64,
            client_cpu_percent,
        }
    }
}

// The processor time of processes.

/// The unit in which Linux counts processor time on every machine.
const TICK: Duration = Duration::from_millis(10);

/// The sum over these processes. A process that has ended counts nothing.
pub fn of(pids: &[i32]) -> Duration {
    let ticks = pids.iter().filter_map(|pid| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        ticks(&stat)
    });
    TICK * ticks.sum::<u64>() as u32
}

/// The time in user mode and in system mode, which are the 14th and the 15th word. The second word is a name, in
/// brackets.
fn ticks(stat: &str) -> Option<u64> {
    let (_, words) = stat.rsplit_once(") ")?;
    let mut words = words.split(' ').skip(11);
    Some(words.next()?.parse::<u64>().ok()? + words.next()?.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_be_anything() {
        let stat = "42 (a) b) S 1 2 3 4 5 6 7 8 9 10 300 21 0 0 20 0";
        assert_eq!(ticks(stat), Some(321));
        assert_eq!(ticks("42 (a) S 1"), None);
        assert_eq!(of(&[]), Duration::ZERO);
        // The id of this test's own process.
        assert!(of(&[std::process::id() as i32]) < Duration::from_secs(3600));
    }
}
