//! Measures how soon a cluster acknowledges a write after its start, or after the end of its leader.
//!
//! Some lanes for each node write continuously, each to its own node, so that the node that serves first is asked at
//! once. The result is the first acknowledged write that was sent after the event.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::super::args::parse_span;
use super::super::error::BenchError;
use super::super::rng::Rng;
use super::super::session::Trouble;
use super::super::tally::lock;
use super::super::tally::{Errors, Kind};
use super::super::terminal::millis;
use super::super::workload::push_json_text;
use super::client::{Client, leader};
use super::cluster::{Cluster, nothing, print};
use super::op::Op;

/// The number of lanes for each node. A lane that waits in vain does not keep the others from trying.
const LANES: usize = 4;

/// The time that a lane waits for an answer. It is many times what a write takes. The lanes of a node start at
/// different times, so that their waits end at different times.
const PATIENCE: Duration = Duration::from_millis(240);

/// The pause between two writes of a lane. Without it the measurement would be a load itself.
const PAUSE: Duration = Duration::from_millis(10);

/// The time for which all nodes must be healthy before the leader is ended.
const CALM: Duration = Duration::from_millis(1500);

const KEYS: u64 = 100_000;
const VALUE_BYTES: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum End {
    /// SIGKILL
    Kill,
    /// SIGSTOP: the process is silent, and its connections stay
    Freeze,
}

#[derive(Clone, Debug, clap::Args)]
pub struct OutageArgs {
    #[command(flatten)]
    cluster: Cluster,

    /// How to end the leader; without it, measure the time from the cluster's start
    #[arg(long)]
    leader: Option<End>,

    /// Timeout for a write
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_span)]
    patience: Duration,
}

#[derive(Serialize)]
struct Report {
    /// The index of the node that was ended.
    leader: Option<usize>,
    /// The time since that node ended.
    took_ms: Option<f64>,
    /// When the write was acknowledged, since 1970.
    at_ms: u128,
}

#[derive(Debug, Default)]
struct Watch {
    /// Writes that were sent before this moment do not count.
    since: Option<Instant>,
    /// The first write that counts.
    acknowledged: Option<(Instant, SystemTime)>,
    errors: Errors,
}

#[derive(Debug, Default)]
struct Shared {
    watch: Mutex<Watch>,
    news: Notify,
}

/// Runs the benchmark. If `stop` completes first, it ends early and prints nothing.
pub async fn run(
    args: &OutageArgs,
    stop: impl Future<Output = ()>,
    out: &mut impl Write,
) -> Result<(), BenchError> {
    let report = tokio::select! {
        report = measure(args) => report?,
        () = stop => return Ok(()),
    };
    print(&report, out)
}

async fn measure(args: &OutageArgs) -> Result<Report, BenchError> {
    let shared = Arc::new(Shared::default());
    let _lanes = start(args, &shared);
    let mut ended = None;
    let mut began = Instant::now();
    wait(args, &shared, began).await?;
    if let Some(end) = args.leader {
        sleep(CALM).await;
        let at = leader(args.cluster.system, &args.cluster.targets()).await;
        let pid = at.and_then(|at| Pid::from_raw(*args.cluster.pids.get(at)?));
        let pid = pid.ok_or(BenchError::NoLeader { said: Vec::new() })?;
        began = Instant::now();
        let signal = if end == End::Kill { Signal::KILL } else { Signal::STOP };
        kill_process(pid, signal).map_err(|error| BenchError::Runtime(error.into()))?;
        ended = at;
        wait(args, &shared, began).await?;
    }
    let watch = lock(&shared.watch);
    let (at, wall) = watch.acknowledged.ok_or_else(|| nothing(&watch.errors))?;
    let took_ms = args.leader.map(|_| millis(at.saturating_duration_since(began)));
    let since = wall.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Ok(Report { leader: ended, took_ms, at_ms: since.as_millis() })
}

/// Waits for a write that is sent from `since` on.
async fn wait(args: &OutageArgs, shared: &Shared, since: Instant) -> Result<(), BenchError> {
    {
        let mut watch = lock(&shared.watch);
        (watch.since, watch.acknowledged) = (Some(since), None);
    }
    let acknowledged = async {
        while lock(&shared.watch).acknowledged.is_none() {
            shared.news.notified().await;
        }
    };
    let in_time = timeout(args.patience, acknowledged).await;
    in_time.map_err(|_| {
        let code = lock(&shared.watch).errors.most_frequent().unwrap_or_default();
        BenchError::Stuck { patience: args.patience, code }
    })
}

fn start(args: &OutageArgs, shared: &Arc<Shared>) -> JoinSet<()> {
    let mut lanes = JoinSet::new();
    let targets = args.cluster.targets();
    for lane in 0..LANES {
        for (node, target) in targets.iter().enumerate() {
            let number = lane * targets.len() + node;
            let system = args.cluster.system;
            let client = Client::new(system, number, Arc::new([target.clone()]), 0, PATIENCE);
            let delay = PATIENCE * number as u32 / (LANES * targets.len()) as u32;
            lanes.spawn(write(client, number, delay, shared.clone()));
        }
    }
    lanes
}

async fn write(mut client: Client, number: usize, delay: Duration, shared: Arc<Shared>) {
    let (mut rng, mut value) = (Rng::new(number as u64), Vec::new());
    push_json_text(&mut value, VALUE_BYTES, &mut rng);
    sleep(delay).await;
    loop {
        let sent = Instant::now();
        let done = client.perform(&Op::Write { key: rng.below(KEYS), value: &value }).await;
        if shared.count(done, sent) {
            shared.news.notify_one();
        }
        sleep(PAUSE).await;
    }
}

impl Shared {
    /// Counts a write. Returns `true` if it is the one that is waited for.
    fn count(&self, done: Result<(), Trouble>, sent: Instant) -> bool {
        let mut watch = lock(&self.watch);
        if let Err(trouble) = done {
            watch.errors.count(Kind::Write, &trouble, true);
            return false;
        }
        let first = watch.acknowledged.is_none() && watch.since.is_some_and(|since| sent > since);
        if first {
            watch.acknowledged = Some((Instant::now(), SystemTime::now()));
        }
        first
    }
}
