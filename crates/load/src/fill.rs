//! Fills the key space quickly with atomic batches, so that a cluster can be measured with a given amount of data.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::task::JoinSet;
use tokio::time::{interval, sleep};

use super::args::{Choice, Common, VALUE_BYTES, parse_span};
use super::error::BenchError;
use super::http::Request;
use super::report::{Figures, Wrongs, errors_line, table};
use super::rng::Rng;
use super::session::{Fate, RETRY_PAUSE, Session};
use super::status;
use super::tally::lock;
use super::tally::{Kind, Tally};
use super::target::Target;
use super::terminal::{EVERY, Progress};
use super::terminal::{grouped, millis, per_second};
use super::workload::push_json_text;

/// A batch is one request body and one record of the log. Half of what a server accepts is small enough for both.
const BATCH_BYTES_MAX: usize = 512 * 1024;

/// The bytes around a value in a batch.
const PER_DOC_BYTES: usize = 80;

/// A cluster that accepts nothing for this long is down, and a script needs to know that.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example:\n  eldest bench fill --docs 1000000 --size 256")]
pub struct FillArgs {
    #[command(flatten)]
    pub common: Common,

    #[command(flatten)]
    pub choice: Choice,

    /// Number of documents: bench/0, bench/1 and so on
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub docs: u64,

    /// Size of a value in bytes, as JSON
    #[arg(long, value_name = "BYTES", default_value_t = 256, value_parser = clap::value_parser!(u32).range(VALUE_BYTES))]
    pub size: u32,

    /// Documents per batch; fewer if they are large
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u16).range(1..))]
    pub batch: u16,

    /// Batches in progress at a time
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub connections: u16,

    /// Timeout for an answer
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_span)]
    pub timeout: Duration,

    /// Seed of the values
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
}

/// The state that the connections share.
#[derive(Debug)]
struct State {
    /// The number of the first document that is in no batch yet.
    next: u64,
    done: u64,
    tally: Tally,
    last_success: Instant,
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    benchmark: &'static str,
    docs: u64,
    value_bytes: u32,
    batch: u64,
    connections: u16,
    took_ms: u64,
    docs_per_s: u64,
    batches: Figures,
    #[serde(flatten)]
    wrongs: Wrongs<'a>,
}

/// Runs the benchmark. If `stop` completes first, it ends early and reports what was done.
pub async fn run(
    args: &FillArgs,
    stop: impl Future<Output = ()>,
    out: &mut impl Write,
) -> Result<(), BenchError> {
    let mut targets = Target::resolve_all(&args.common).await?;
    if !args.choice.spread {
        (targets, _) = status::leader_first(targets, &args.common.header_lines()).await?;
    }
    let began = Instant::now();
    let state = State { next: 0, done: 0, tally: Tally::default(), last_success: began };
    let state = Arc::new(Mutex::new(state));
    let workers = start(args, targets.into(), &state);
    let progress = Progress::on_stderr();
    let result = tokio::select! {
        result = finish(workers) => result,
        () = stop => Ok(()),
        () = watch(args, &state, &progress) => Ok(()),
    };
    progress.clear();
    result?;
    print(args, &lock(&state), began.elapsed(), out).map_err(BenchError::Output)
}

fn start(
    args: &FillArgs,
    targets: Arc<[Target]>,
    state: &Arc<Mutex<State>>,
) -> JoinSet<Result<(), BenchError>> {
    let mut seeds = Rng::new(args.seed);
    let mut workers = JoinSet::new();
    for at in 0..usize::from(args.connections) {
        let session = Session::new(targets.clone(), if args.choice.spread { at } else { 0 }, args.timeout);
        let batches = Batches::new(args, seeds.next());
        workers.spawn(work(session, batches, state.clone()));
    }
    workers
}

async fn finish(mut workers: JoinSet<Result<(), BenchError>>) -> Result<(), BenchError> {
    while let Some(ended) = workers.join_next().await {
        match ended {
            Ok(result) => result?,
            Err(ended) => match ended.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => return Err(BenchError::Ended),
            },
        }
    }
    Ok(())
}

async fn work(
    mut session: Session,
    mut batches: Batches,
    state: Arc<Mutex<State>>,
) -> Result<(), BenchError> {
    loop {
        let (from, until) = {
            let mut state = lock(&state);
            let until = batches.docs.min(state.next + batches.length);
            (std::mem::replace(&mut state.next, until), until)
        };
        if from == until {
            return Ok(());
        }
        put(&mut session, batches.request(from, until), &state).await?;
        lock(&state).done += until - from;
    }
}

/// Repeats the batch until it is accepted. Writing the same documents twice has the same effect as once.
async fn put(session: &mut Session, request: &Request, state: &Mutex<State>) -> Result<(), BenchError> {
    let began = Instant::now();
    loop {
        let Err(trouble) = session.call(request).await else {
            let mut state = lock(state);
            state.last_success = Instant::now();
            state.tally.succeeded(Kind::Write, began.elapsed());
            return Ok(());
        };
        let code = trouble.code.to_string();
        if trouble.fate == Fate::Rejected {
            return Err(BenchError::Rejected { url: session.url().to_string(), code });
        }
        let stuck = {
            let mut state = lock(state);
            state.tally.trouble.count(Kind::Write, &trouble, true);
            state.last_success.elapsed() > PATIENCE
        };
        if stuck {
            return Err(BenchError::Stuck { patience: PATIENCE, code });
        }
        sleep(RETRY_PAUSE).await;
    }
}

/// Makes the requests of one connection, always in the same memory.
#[derive(Debug)]
struct Batches {
    docs: u64,
    /// The number of documents in a batch.
    length: u64,
    value_bytes: usize,
    headers: Vec<u8>,
    rng: Rng,
    body: Vec<u8>,
    request: Request,
}

impl Batches {
    fn new(args: &FillArgs, seed: u64) -> Batches {
        let mut request = Request::default();
        let query = if args.choice.spread { "" } else { "?forward=no" };
        request.set_line("POST", format_args!("/v1/commands{query}"));
        Batches {
            docs: args.docs,
            length: batch_length(args),
            value_bytes: args.size as usize,
            headers: args.common.header_lines(),
            rng: Rng::new(seed),
            body: Vec::new(),
            request,
        }
    }

    fn request(&mut self, from: u64, until: u64) -> &Request {
        self.body.clear();
        for key in from..until {
            let separator = if key == from { '[' } else { ',' };
            let command = r#"{"storage_cmd":"PutDoc","payload":{"key":"bench/"#;
            write!(self.body, r#"{separator}{command}{key}","value":"#)
                .expect("writing to a Vec cannot fail");
            push_json_text(&mut self.body, self.value_bytes, &mut self.rng);
            self.body.extend_from_slice(b"}}");
        }
        self.body.push(b']');
        self.request.set_json(&self.headers, &self.body);
        &self.request
    }
}

fn batch_length(args: &FillArgs) -> u64 {
    let fitting = BATCH_BYTES_MAX / (args.size as usize + PER_DOC_BYTES);
    u64::from(args.batch).min(fitting as u64).max(1)
}

async fn watch(args: &FillArgs, state: &Mutex<State>, progress: &Progress) {
    let mut ticks = interval(EVERY);
    ticks.tick().await;
    let (mut last, mut last_done) = (Instant::now(), 0);
    loop {
        ticks.tick().await;
        let mut state = lock(state);
        let rate = grouped(per_second(state.done - last_done, last.elapsed()) as u64);
        let p99 = millis(state.tally.recent.quantile(990));
        let (done, docs) = (grouped(state.done), grouped(args.docs));
        progress.show(|| format!("{done}/{docs} documents  {rate}/s  p99 of a batch {p99:.2} ms"));
        state.tally.recent.clear();
        (last, last_done) = (Instant::now(), state.done);
    }
}

fn print(args: &FillArgs, state: &State, took: Duration, out: &mut impl Write) -> std::io::Result<()> {
    let report = Report {
        benchmark: "fill",
        docs: state.done,
        value_bytes: args.size,
        batch: batch_length(args),
        connections: args.connections,
        took_ms: took.as_millis() as u64,
        docs_per_s: per_second(state.done, took).round() as u64,
        batches: Figures::new(&state.tally.writes, took),
        wrongs: Wrongs::new(&state.tally.trouble),
    };
    if args.common.json {
        writeln!(out, "{}", serde_json::to_string(&report)?)?;
    } else {
        let (docs, rate) = (grouped(report.docs), grouped(report.docs_per_s));
        let (batch, seconds) = (report.batch, took.as_secs_f64());
        writeln!(out, "{docs} documents in {seconds:.1} s, {rate}/s, {batch} to a batch\n")?;
        write!(out, "{}\n{}", table(&[("batches", &report.batches)]), errors_line(&state.tally.trouble))?;
    }
    out.flush()
}
