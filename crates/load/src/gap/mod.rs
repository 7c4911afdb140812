//! One writer that never gives up, and the time it had to wait: each gap between two acknowledged writes.
//!
//! Each node has a *lane*, which sends requests to that node alone. A follower answers 421 instead of passing the
//! write on, so a lane never waits for any node but its own. One lane at a time writes continuously. The others stand
//! by, and try every 5 ms as soon as writes fail or the last acknowledgement is 10 ms old. A node that refuses, hangs
//! or is gone delays no other lane. So a gap ends when the cluster serves again, and not when a client has given up
//! on a dead node.
//!
//! Each gap is printed at once, on its own line, so that a script that kills nodes can read the gaps as they
//! come.

mod event;
mod watch;

use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::args::{Common, VALUE_BYTES, parse_span};
use super::error::BenchError;
use super::session::{RETRY_PAUSE, Session};
use super::status;
use super::tally::{failure, lock};
use super::target::Target;
use super::workload::{Level, Mix, Workload};
use event::Printer;
use watch::{TICK, Watch};

/// The pause between an acknowledgement and the next write. Without it the measurement would be a load itself.
const PAUSE: Duration = Duration::from_millis(1);

#[derive(Clone, Debug, clap::Args)]
#[command(
    after_help = "Give the URL of every node: each is asked directly.\n\nExample:\n  eldest-load gap --over 20ms --duration 60s --json"
)]
pub struct GapArgs {
    #[command(flatten)]
    pub common: Common,

    /// Report only gaps at least this long
    #[arg(long, value_name = "TIME", default_value = "20ms", value_parser = parse_span)]
    pub over: Duration,

    /// Duration of the measurement
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_span)]
    pub duration: Duration,

    /// Size of a value in bytes, as JSON
    #[arg(long, value_name = "BYTES", default_value_t = 64, value_parser = clap::value_parser!(u32).range(VALUE_BYTES))]
    pub size: u32,

    /// Timeout of each lane for its node
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_span)]
    pub timeout: Duration,
}

/// The state that the lanes share.
#[derive(Debug)]
struct Shared {
    watch: Mutex<Watch>,
    /// Signals that there are events to print.
    news: Notify,
}

impl Shared {
    fn watch(&self) -> MutexGuard<'_, Watch> {
        lock(&self.watch)
    }
}

/// Runs the benchmark. If `stop` completes first, it ends early.
pub async fn run(
    args: &GapArgs,
    stop: impl Future<Output = ()>,
    out: &mut impl Write,
) -> Result<(), BenchError> {
    let targets = Target::resolve_all(&args.common).await?;
    warn_of_others(&targets, &args.common.header_lines()).await;
    let urls = targets.iter().map(|target| target.url.clone()).collect();
    let shared = Shared { watch: Mutex::new(Watch::new(args.over, Instant::now())), news: Notify::new() };
    let shared = Arc::new(shared);
    let mut lanes = JoinSet::new();
    for (lane, target) in targets.into_iter().enumerate() {
        let session = Session::new(Arc::new([target]), 0, args.timeout);
        lanes.spawn(write(args.clone(), lane, session, shared.clone()));
    }
    let mut printer = Printer::new(args.common.json, urls, out);
    let printed = tokio::select! {
        () = sleep(args.duration) => Ok(()),
        () = stop => Ok(()),
        () = failure(&mut lanes) => Ok(()),
        () = beat(&shared) => Ok(()),
        broken = tell(&shared, &mut printer) => broken,
    };
    printed.map_err(BenchError::Output)?;
    let mut watch = shared.watch();
    let events = watch.finish(Instant::now());
    printer.print(&watch, &events).and_then(|()| printer.finish(&watch)).map_err(BenchError::Output)?;
    if watch.acknowledged == 0 {
        return Err(BenchError::NothingSucceeded { code: watch.errors.most_frequent() });
    }
    Ok(())
}

/// Warns of members that no lane asks: if such a member led, the gap would seem to have no end.
async fn warn_of_others(targets: &[Target], headers: &[u8]) {
    let members = status::look(targets, headers).await.map_or(0, |look| look.members);
    if members > targets.len() {
        let known = targets.len();
        eprintln!(
            "only {known} of {members} nodes are called: if another node leads, writes count as missing"
        );
    }
}

/// Prints events as they happen. Returns only if printing fails.
async fn tell(shared: &Shared, printer: &mut Printer<'_, impl Write>) -> std::io::Result<()> {
    loop {
        shared.news.notified().await;
        let mut watch = shared.watch();
        let events = watch.take_events();
        printer.print(&watch, &events)?;
    }
}

/// Notices when the system gives this process no processor time.
async fn beat(shared: &Shared) {
    loop {
        shared.watch().tick(Instant::now());
        sleep(TICK).await;
    }
}

/// Runs one lane.
async fn write(args: GapArgs, lane: usize, mut session: Session, shared: Arc<Shared>) {
    let mix = Mix {
        keys: 1,
        value_bytes: args.size as usize,
        read_percent: 0,
        level: Level::Linear,
        forward: false,
        idempotent: None,
        headers: args.common.header_lines(),
    };
    let mut workload = Workload::new(mix, lane as u64);
    loop {
        if !shared.watch().wants(lane, Instant::now()) {
            sleep(RETRY_PAUSE).await;
            continue;
        }
        workload.advance();
        match session.call(workload.request()).await {
            Ok(()) => {
                let epoch = session.answer().header("Eldest-Epoch");
                if shared.watch().acknowledge(lane, epoch, Instant::now()) {
                    shared.news.notify_one();
                }
                sleep(PAUSE).await;
            }
            Err(trouble) => {
                shared.watch().count(lane, &trouble);
                sleep(RETRY_PAUSE).await;
            }
        }
    }
}
