//! Many readers of the feed, spread over all nodes. Most of them read one prefix each, and some read
//! everything. The events are documents that are written at a steady rate. At the end each reader must have
//! received each of its events exactly once.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::args::{Common, parse_span};
use super::error::BenchError;
use super::histogram::Histogram;
use super::http::{Request, Stream};
use super::session::Session;
use super::status;
use super::target::Target;
use super::terminal::{grouped, millis, per_second};

const PATIENCE: Duration = Duration::from_secs(10);
/// The number of writers that share the events.
const WRITERS: u64 = 32;
/// The number of readers that connect at a time: a listener's backlog is short.
const CONNECTING: usize = 64;
/// The wait after the last write, for events that are not delivered yet.
const DRAIN: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example:\n  eldest-load feed --readers 10000 --whole 100 --rate 1000 --duration 10s")]
pub struct FeedArgs {
    #[command(flatten)]
    pub common: Common,

    /// Readers of the events of one prefix each
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub readers: u32,

    /// Readers of all events
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub whole: u32,

    /// Events per second
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pub rate: u32,

    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_span)]
    pub duration: Duration,
}

#[derive(Clone, Debug, Serialize)]
struct Report {
    readers: u32,
    whole: u32,
    written: u64,
    written_per_s: f64,
    delivered: u64,
    missing: u64,
    twice: u64,
    broken_off: u64,
    /// The time from the answer of a write to its event at the readers of everything.
    delay_p50_ms: f64,
    delay_p99_ms: f64,
}

/// The events that a reader has received: the number in each key, which is unique in a run.
#[derive(Debug, Default)]
struct Had {
    numbers: BTreeSet<u64>,
    twice: u64,
    broken_off: bool,
    delays: Vec<Duration>,
}

struct Bench {
    args: FeedArgs,
    targets: Arc<[Target]>,
    run: u32,
    /// When the run began. `answered` has for each event the microseconds from then to the answer of its write.
    began: Instant,
    answered: Vec<AtomicU64>,
}

pub async fn run(
    args: &FeedArgs,
    stop: impl Future<Output = ()>,
    out: &mut impl Write,
) -> Result<(), BenchError> {
    let targets = Target::resolve_all(&args.common).await?;
    let (targets, _) = status::leader_first(targets, &args.common.header_lines()).await?;
    let events = (f64::from(args.rate) * args.duration.as_secs_f64()) as usize;
    let bench = Arc::new(Bench {
        args: args.clone(),
        targets: targets.into(),
        run: std::process::id(),
        began: Instant::now(),
        answered: (0..events).map(|_| AtomicU64::new(0)).collect(),
    });
    let report = tokio::select! {
        report = bench.measure() => report,
        () = stop => return Ok(()),
    };
    report.print(args.common.json, out).map_err(BenchError::Output)
}

impl Bench {
    async fn measure(self: &Arc<Bench>) -> Report {
        let (end, over) = watch::channel(false);
        let total = self.args.readers + self.args.whole;
        let mut readers = JoinSet::new();
        let mut ready = JoinSet::new();
        for reader in 0..total {
            if ready.len() >= CONNECTING {
                ready.join_next().await;
            }
            let (tell, told) = tokio::sync::oneshot::channel();
            readers.spawn(self.clone().read(reader, tell, over.clone()));
            ready.spawn(async move { drop(told.await) });
        }
        while ready.join_next().await.is_some() {}
        let began = Instant::now();
        let written = self.write().await;
        let span = began.elapsed();
        sleep(DRAIN).await;
        let _ = end.send(true);
        self.report(written, span, readers).await
    }

    /// Writes all events at a steady rate. Returns those that were acknowledged.
    async fn write(self: &Arc<Bench>) -> BTreeSet<u64> {
        let mut writers = JoinSet::new();
        let every = Duration::from_secs_f64(WRITERS as f64 / f64::from(self.args.rate));
        for writer in 0..WRITERS {
            let bench = self.clone();
            writers.spawn(async move {
                let mut session = Session::new(bench.targets.clone(), 0, PATIENCE);
                let mut request = Request::default();
                request.set_json(&bench.args.common.header_lines(), b"\"0123456789abcdef\"");
                let mut ticks = interval(every);
                ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
                let mut written = Vec::new();
                for number in (writer..bench.answered.len() as u64).step_by(WRITERS as usize) {
                    ticks.tick().await;
                    let reader = number % u64::from(bench.args.readers.max(1));
                    request.set_line("PUT", format_args!("/v1/docs/bench-{}/{reader}/{number}", bench.run));
                    if session.call(&request).await.is_ok() {
                        let after = bench.began.elapsed().as_micros() as u64;
                        bench.answered[number as usize].store(after, Ordering::Relaxed);
                        written.push(number);
                    }
                }
                written
            });
        }
        let mut all = BTreeSet::new();
        while let Some(Ok(written)) = writers.join_next().await {
            all.extend(written);
        }
        all
    }

    /// One reader, until the end. The readers of everything have the highest numbers.
    async fn read(
        self: Arc<Bench>,
        reader: u32,
        ready: tokio::sync::oneshot::Sender<()>,
        mut over: watch::Receiver<bool>,
    ) -> (u32, Had) {
        let mut had = Had::default();
        let reading = async {
            let mut lines = self.open(reader).await?;
            let mut ready = Some(ready);
            let (mark, mut line) = (format!("\"key\":\"bench-{}/", self.run), String::new());
            loop {
                line.clear();
                if lines.read_line(&mut line).await? == 0 {
                    return std::io::Result::Ok(());
                }
                // The first line is a bookmark: from here on no event is missed.
                if line.contains("\"kind\"")
                    && let Some(ready) = ready.take()
                {
                    let _ = ready.send(());
                }
                if let Some(number) = number_in(&line, &mark) {
                    self.note(&mut had, number, reader >= self.args.readers);
                }
            }
        };
        let broken_off = tokio::select! {
            _ = reading => true,
            _ = over.changed() => false,
        };
        had.broken_off = broken_off;
        (reader, had)
    }

    fn note(&self, had: &mut Had, number: u64, delays: bool) {
        had.twice += u64::from(!had.numbers.insert(number));
        let answered = self.answered.get(number as usize).map_or(0, |at| at.load(Ordering::Relaxed));
        if delays && answered > 0 {
            let now = self.began.elapsed().as_micros() as u64;
            had.delays.push(Duration::from_micros(now.saturating_sub(answered)));
        }
    }

    async fn open(&self, reader: u32) -> std::io::Result<BufReader<Stream>> {
        let target = &self.targets[reader as usize % self.targets.len()];
        let connected = Stream::connect(target, PATIENCE).await;
        let mut stream = connected.map_err(|failure| std::io::Error::other(failure.to_string()))?;
        let whole = reader >= self.args.readers;
        let prefix = if whole { String::new() } else { format!("&prefix=bench-{}/{reader}/", self.run) };
        let mut head =
            format!("GET /v1/feed?kinds=change&format=ndjson{prefix} HTTP/1.1\r\nHost: {}\r\n", target.host);
        head.push_str(&String::from_utf8_lossy(&self.args.common.header_lines()));
        head.push_str("\r\n");
        stream.write_all(head.as_bytes()).await?;
        Ok(BufReader::with_capacity(2048, stream))
    }

    async fn report(
        &self,
        written: BTreeSet<u64>,
        span: Duration,
        mut readers: JoinSet<(u32, Had)>,
    ) -> Report {
        let (mut delivered, mut missing, mut twice, mut broken_off) = (0, 0, 0, 0);
        let mut delays = Histogram::default();
        while let Some(Ok((reader, had))) = readers.join_next().await {
            let own = |number: &&u64| {
                reader >= self.args.readers || **number % u64::from(self.args.readers) == u64::from(reader)
            };
            missing +=
                written.iter().filter(own).filter(|number| !had.numbers.contains(number)).count() as u64;
            delivered += had.numbers.len() as u64;
            twice += had.twice;
            broken_off += u64::from(had.broken_off);
            had.delays.into_iter().for_each(|delay| delays.record(delay));
        }
        Report {
            readers: self.args.readers,
            whole: self.args.whole,
            written: written.len() as u64,
            written_per_s: per_second(written.len() as u64, span),
            delivered,
            missing,
            twice,
            broken_off,
            delay_p50_ms: millis(delays.quantile(500)),
            delay_p99_ms: millis(delays.quantile(990)),
        }
    }
}

/// The number at the end of a key of this run.
fn number_in(line: &str, mark: &str) -> Option<u64> {
    let (_, rest) = line.split_once(mark)?;
    let (key, _) = rest.split_once('"')?;
    key.rsplit_once('/')?.1.parse().ok()
}

impl Report {
    fn print(&self, json: bool, out: &mut impl Write) -> std::io::Result<()> {
        if json {
            return writeln!(out, "{}", serde_json::to_string(self).unwrap_or_default());
        }
        let Report { readers, whole, missing, twice, broken_off, delay_p50_ms, delay_p99_ms, .. } = self;
        let (written, delivered) = (grouped(self.written), grouped(self.delivered));
        writeln!(
            out,
            "{readers} readers of one prefix each, {whole} of all events; {written} events, {:.0} per second",
            self.written_per_s
        )?;
        writeln!(
            out,
            "{delivered} delivered, {missing} missing, {twice} duplicates, {broken_off} readers disconnected"
        )?;
        writeln!(
            out,
            "from a write's answer to its event: p50 {delay_p50_ms:.2} ms, p99 {delay_p99_ms:.2} ms"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_in_keys_of_this_run() {
        let line =
            "{\"id\":\"7\",\"kind\":\"change\",\"table\":\"doc\",\"key\":\"bench-5/12/345\",\"rev\":\"7\"}";
        assert_eq!(number_in(line, "\"key\":\"bench-5/"), Some(345));
        assert_eq!(number_in(line, "\"key\":\"bench-6/"), None);
        assert_eq!(number_in("{\"id\":\"7\",\"kind\":\"bookmark\"}", "\"key\":\"bench-5/"), None);
    }
}
