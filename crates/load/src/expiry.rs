//! Many leases that are not renewed end in the same second. The benchmark measures when the last one is gone, and how
//! long writes take meanwhile.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::args::{Common, parse_span};
use super::error::BenchError;
use super::histogram::Histogram;
use super::http::Request;
use super::session::{Session, Trouble};
use super::status;
use super::target::Target;
use super::terminal::millis;

const PATIENCE: Duration = Duration::from_secs(30);
/// The number of connections that register, so that all processes are registered within about a second.
const REGISTERING: u32 = 64;
/// The number of connections that write, before and while the leases end.
const WRITING: usize = 8;
/// The interval at which the benchmark checks whether any process is still listed.
const LOOK: Duration = Duration::from_millis(20);
/// The benchmark stops waiting if a process is still listed this long after its ttl.
const OVERDUE: Duration = Duration::from_secs(30);

#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example:\n  eldest-load expiry --leases 10000 --ttl 5s")]
pub struct ExpiryArgs {
    #[command(flatten)]
    pub common: Common,

    /// Processes that register once and send no heartbeat
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub leases: u32,

    /// Their ttl; must be longer than registering all of them takes
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_span)]
    pub ttl: Duration,
}

#[derive(Clone, Debug, Serialize)]
struct Report {
    leases: u32,
    /// The time from the first to the last registration. The leases end within a span of the same length.
    registered_in_ms: f64,
    /// The time from the end of the last lease's ttl until no process was listed, or until the benchmark stopped
    /// waiting (`OVERDUE`).
    last_gone_after_ttl_ms: f64,
    write_before: Latency,
    write_while_they_end: Latency,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Latency {
    count: u64,
    p50_ms: f64,
    p99_ms: f64,
    max_ms: f64,
}

struct Bench {
    args: ExpiryArgs,
    targets: Arc<[Target]>,
    /// Distinguishes the processes of this run from those of any other run.
    run: u32,
}

/// Runs the benchmark. If `stop` completes first, it ends early and prints nothing.
pub async fn run(
    args: &ExpiryArgs,
    stop: impl Future<Output = ()>,
    out: &mut impl Write,
) -> Result<(), BenchError> {
    let targets = Target::resolve_all(&args.common).await?;
    let (targets, _) = status::leader_first(targets, &args.common.header_lines()).await?;
    let bench = Arc::new(Bench { args: args.clone(), targets: targets.into(), run: std::process::id() });
    let url = bench.targets[0].url.clone();
    let rejected = |trouble: Trouble| BenchError::Rejected { url, code: trouble.code.into_owned() };
    let report = tokio::select! {
        report = bench.measure() => report.map_err(rejected)?,
        () = stop => return Ok(()),
    };
    report.print(args.common.json, out).map_err(BenchError::Output)
}

impl Bench {
    fn session(&self) -> Session {
        Session::new(self.targets.clone(), 0, PATIENCE)
    }

    async fn measure(self: &Arc<Bench>) -> Result<Report, Trouble> {
        let quiet = self.args.ttl.max(Duration::from_secs(2));
        let write_before = self.writes(Instant::now(), Instant::now() + quiet).await;
        let (first, last) = self.register().await?;
        let (from, until) = (first + self.args.ttl, last + self.args.ttl + Duration::from_secs(1));
        let bench = self.clone();
        let writing = tokio::spawn(async move { bench.writes(from, until).await });
        let gone = self.wait_until_gone(last + self.args.ttl).await?;
        let write_while_they_end = writing.await.unwrap_or_default();
        Ok(Report {
            leases: self.args.leases,
            registered_in_ms: millis(last - first),
            last_gone_after_ttl_ms: millis(gone.saturating_duration_since(last + self.args.ttl)),
            write_before: write_before.into(),
            write_while_they_end: write_while_they_end.into(),
        })
    }

    /// Registers all processes. Returns the times before the first request and after the last answer.
    async fn register(self: &Arc<Bench>) -> Result<(Instant, Instant), Trouble> {
        let next = Arc::new(AtomicU32::new(0));
        let first = Instant::now();
        let mut clients = JoinSet::new();
        for _ in 0..REGISTERING {
            let (bench, next) = (self.clone(), next.clone());
            clients.spawn(async move {
                let (mut session, mut request) = (bench.session(), Request::default());
                let (run, ttl_ms) = (bench.run, bench.args.ttl.as_millis());
                let body = format!("{{\"identifier\":\"bench-{run}\",\"ttl_ms\":{ttl_ms}}}");
                request.set_json(&bench.args.common.header_lines(), body.as_bytes());
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= bench.args.leases {
                        return Ok(Instant::now());
                    }
                    request.set_line("PUT", format_args!("/v1/processes/bench-{run}-{number}"));
                    session.call(&request).await?;
                }
            });
        }
        let mut last = first;
        while let Some(Ok(ended)) = clients.join_next().await {
            last = last.max(ended?);
        }
        Ok((first, last))
    }

    /// The latencies of the writes that began in this span and succeeded.
    async fn writes(&self, from: Instant, until: Instant) -> Histogram {
        sleep(from.saturating_duration_since(Instant::now())).await;
        let mut writers = JoinSet::new();
        for writer in 0..WRITING {
            let (mut session, mut request) = (self.session(), Request::default());
            request.set_json(&self.args.common.header_lines(), b"\"0123456789abcdef\"");
            request.set_line("PUT", format_args!("/v1/docs/bench/{writer}"));
            writers.spawn(async move {
                let mut took = Vec::new();
                while Instant::now() < until {
                    let began = Instant::now();
                    if session.call(&request).await.is_ok() {
                        took.push(began.elapsed());
                    }
                }
                took
            });
        }
        let mut all = Histogram::default();
        while let Some(Ok(took)) = writers.join_next().await {
            took.into_iter().for_each(|write| all.record(write));
        }
        all
    }

    async fn wait_until_gone(&self, due: Instant) -> Result<Instant, Trouble> {
        #[derive(Deserialize)]
        struct Page {
            items: Vec<serde::de::IgnoredAny>,
        }
        sleep(due.saturating_duration_since(Instant::now())).await;
        let path = format!("/v1/processes?identifier=bench-{}&limit=1", self.run);
        let request = Request::get(&path, &self.args.common.header_lines());
        let mut session = self.session();
        loop {
            session.call(&request).await?;
            let page: Option<Page> = serde_json::from_slice(session.answer().body).ok();
            let gone = page.is_some_and(|page| page.items.is_empty());
            if gone || Instant::now() > due + OVERDUE {
                return Ok(Instant::now());
            }
            sleep(LOOK).await;
        }
    }
}

impl From<Histogram> for Latency {
    fn from(took: Histogram) -> Latency {
        let at = |per_mille| millis(took.quantile(per_mille));
        Latency { count: took.count(), p50_ms: at(500), p99_ms: at(990), max_ms: millis(took.max()) }
    }
}

impl Report {
    fn print(&self, json: bool, out: &mut impl Write) -> std::io::Result<()> {
        if json {
            return writeln!(out, "{}", serde_json::to_string(self).unwrap_or_default());
        }
        let Report { leases, registered_in_ms, last_gone_after_ttl_ms, .. } = self;
        writeln!(
            out,
            "{leases} leases, registered within {registered_in_ms:.0} ms; the last one was gone \
                {last_gone_after_ttl_ms:.0} ms after its ttl"
        )?;
        for (when, latency) in
            [("before", self.write_before), ("while they expire", self.write_while_they_end)]
        {
            let Latency { count, p50_ms, p99_ms, max_ms } = latency;
            writeln!(
                out,
                "writes {when:<16} p50 {p50_ms:8.2} ms  p99 {p99_ms:8.2} ms  max {max_ms:8.2} ms  {count} times"
            )?;
        }
        Ok(())
    }
}
