//! Roles as locks: cycles of acquire and release, the time from a release to the next grant, and the time at which a
//! lease ends without renewals.
//!
//! Each client calls the leader, and goes to the next node after a failure. A cycle that fails is counted, and not
//! repeated.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::args::{Common, parse_span};
use super::error::BenchError;
use super::histogram::Histogram;
use super::http::Request;
use super::session::{Session, Trouble};
use super::status;
use super::target::Target;
use super::terminal::{grouped, millis, per_second};

/// The time limit of a call: longer than any wait below.
const PATIENCE: Duration = Duration::from_secs(30);

/// The longest wait in the queue for a role.
const WAIT_MS: u64 = 20_000;

/// The time that a new waiter has to enter the queue.
const IN_LINE: Duration = Duration::from_millis(20);

/// The shortest ttl that the cluster accepts.
const TTL_MS: u64 = 1000;

#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example:\n  eldest-load locks --connections 64 --duration 10s")]
pub struct LocksArgs {
    #[command(flatten)]
    pub common: Common,

    /// Connections, each with its own role
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub connections: u16,

    /// Duration of the measurement
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_span)]
    pub duration: Duration,

    /// Number of times a single client acquires, registers, and hands over to a waiter
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub runs: u16,

    /// Number of leases left to expire
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(0..=1000))]
    pub ends: u16,
}

/// A summary of many numbers.
#[derive(Clone, Copy, Debug, Serialize)]
struct Spread {
    count: u64,
    p50_ms: f64,
    p99_ms: f64,
    max_ms: f64,
}

#[derive(Clone, Debug, Serialize)]
struct Report {
    /// With one client, and a role that no other client wants.
    acquire: Spread,
    release: Spread,
    /// The registration of a new process.
    register: Spread,
    renew: Spread,
    /// The time from when a release is sent until the waiter has its answer.
    handed_on: Spread,
    /// The time from the holder's answer to the waiter's answer, less the ttl.
    ended_after_ttl: Option<Spread>,
    cycles: u64,
    cycles_per_s: f64,
    cycle: Spread,
    failed: u64,
}

/// Runs the benchmark. If `stop` completes first, it ends early and prints nothing, because its figures need a whole
/// run.
pub async fn run(
    args: &LocksArgs,
    stop: impl Future<Output = ()>,
    out: &mut impl Write,
) -> Result<(), BenchError> {
    let targets = Target::resolve_all(&args.common).await?;
    let (targets, _) = status::leader_first(targets, &args.common.header_lines()).await?;
    let bench = Bench { args: args.clone(), targets: targets.into() };
    let report = tokio::select! {
        report = bench.measure() => report.map_err(|trouble| rejected(&bench.targets, trouble))?,
        () = stop => return Ok(()),
    };
    report.print(args.common.json, out).map_err(BenchError::Output)
}

fn rejected(targets: &[Target], trouble: Trouble) -> BenchError {
    BenchError::Rejected { url: targets[0].url.clone(), code: trouble.code.into_owned() }
}

struct Bench {
    args: LocksArgs,
    targets: Arc<[Target]>,
}

/// One client: its connections, and the request that it repeats.
struct Client {
    session: Session,
    request: Request,
    headers: Vec<u8>,
}

#[derive(Deserialize)]
struct Granted {
    token: u64,
}

impl Client {
    async fn call(&mut self, method: &str, path: &str, body: &str) -> Result<(), Trouble> {
        self.request.set_line(method, format_args!("{path}"));
        self.request.set_json(&self.headers, body.as_bytes());
        self.session.call(&self.request).await
    }

    async fn acquire(&mut self, role: &str, more: &str) -> Result<u64, Trouble> {
        let body = format!("{{\"instance_id\":\"bench\"{more}}}");
        self.call("POST", &format!("/v1/roles/bench-{role}/acquire"), &body).await?;
        let granted = serde_json::from_slice(self.session.answer().body);
        Ok(granted.map_or(0, |Granted { token }| token))
    }

    async fn end(&mut self, role: &str, how: &str, token: u64) -> Result<(), Trouble> {
        let body = format!("{{\"instance_id\":\"bench\",\"token\":{token}}}");
        self.call("POST", &format!("/v1/roles/bench-{role}/{how}"), &body).await
    }
}

impl Bench {
    fn client(&self) -> Client {
        let session = Session::new(self.targets.clone(), 0, PATIENCE);
        Client { session, request: Request::default(), headers: self.args.common.header_lines() }
    }

    async fn measure(&self) -> Result<Report, Trouble> {
        let [acquire, renew, release, register] = self.alone().await?;
        let handed_on = self.handed_on().await?;
        let ended_after_ttl = match self.args.ends {
            0 => None,
            ends => Some(self.ended(ends).await?),
        };
        let (cycle, span, failed) = self.cycles().await;
        Ok(Report {
            acquire: acquire.into(),
            release: release.into(),
            register: register.into(),
            renew: renew.into(),
            handed_on: handed_on.into(),
            ended_after_ttl: ended_after_ttl.as_ref().map(Spread::from),
            cycles: cycle.count(),
            cycles_per_s: per_second(cycle.count(), span),
            cycle: cycle.into(),
            failed,
        })
    }

    /// Measures one client without any other.
    async fn alone(&self) -> Result<[Histogram; 4], Trouble> {
        let mut client = self.client();
        let mut took: [Histogram; 4] = Default::default();
        let process = "{\"identifier\":\"bench\",\"ttl_ms\":1000}";
        for run in 0..self.args.runs {
            let began = Instant::now();
            let token = client.acquire("alone", "").await?;
            took[0].record(began.elapsed());
            let began = Instant::now();
            client.end("alone", "renew", token).await?;
            took[1].record(began.elapsed());
            let began = Instant::now();
            client.end("alone", "release", token).await?;
            took[2].record(began.elapsed());
            let began = Instant::now();
            client.call("PUT", &format!("/v1/processes/bench-{token}-{run}"), process).await?;
            took[3].record(began.elapsed());
        }
        Ok(took)
    }

    async fn handed_on(&self) -> Result<Histogram, Trouble> {
        let (mut holder, mut took) = (self.client(), Histogram::default());
        for _ in 0..self.args.runs {
            let token = holder.acquire("handed", "").await?;
            let waiting = self.waiter("handed");
            sleep(IN_LINE).await;
            let began = Instant::now();
            holder.end("handed", "release", token).await?;
            let (granted, token) = waited(waiting).await?;
            took.record(granted.saturating_duration_since(began));
            let body = format!("{{\"instance_id\":\"next\",\"token\":{token}}}");
            holder.call("POST", "/v1/roles/bench-handed/release", &body).await?;
        }
        Ok(took)
    }

    async fn ended(&self, ends: u16) -> Result<Histogram, Trouble> {
        let (mut holder, mut took) = (self.client(), Histogram::default());
        for run in 0..ends {
            let role = format!("ends-{run}");
            holder.acquire(&role, &format!(",\"ttl_ms\":{TTL_MS}")).await?;
            let began = Instant::now();
            let (granted, token) = waited(self.waiter(&role)).await?;
            took.record(granted.saturating_duration_since(began + Duration::from_millis(TTL_MS)));
            let body = format!("{{\"instance_id\":\"next\",\"token\":{token}}}");
            holder.call("POST", &format!("/v1/roles/bench-{role}/release"), &body).await?;
        }
        Ok(took)
    }

    /// Starts another client that waits for that role. The receiver gets the time at which that client got the role,
    /// and its token.
    fn waiter(&self, role: &str) -> oneshot::Receiver<Result<(Instant, u64), Trouble>> {
        let (tell, told) = oneshot::channel();
        let (mut client, role) = (self.client(), role.to_string());
        tokio::spawn(async move {
            let body = format!("{{\"instance_id\":\"next\",\"wait_ms\":{WAIT_MS}}}");
            let path = format!("/v1/roles/bench-{role}/acquire");
            let granted = client.call("POST", &path, &body).await;
            let now = Instant::now();
            let token = serde_json::from_slice(client.session.answer().body);
            let token = token.map_or(0, |Granted { token }| token);
            let _ = tell.send(granted.map(|()| (now, token)));
        });
        told
    }

    /// Runs cycles on all connections at once, each with its own role.
    async fn cycles(&self) -> (Histogram, Duration, u64) {
        let mut clients = JoinSet::new();
        let began = Instant::now();
        let until = began + self.args.duration;
        for at in 0..self.args.connections {
            clients.spawn(cycle(self.client(), format!("cycle-{at}"), until));
        }
        let (mut all, mut failed) = (Vec::new(), 0);
        while let Some(Ok((took, failures))) = clients.join_next().await {
            all.extend(took);
            failed += failures;
        }
        let span = began.elapsed();
        let mut took = Histogram::default();
        all.into_iter().for_each(|cycle| took.record(cycle));
        (took, span, failed)
    }
}

async fn cycle(mut client: Client, role: String, until: Instant) -> (Vec<Duration>, u64) {
    let (mut took, mut failed) = (Vec::new(), 0);
    while Instant::now() < until {
        let began = Instant::now();
        let done = match client.acquire(&role, "").await {
            Ok(token) => client.end(&role, "release", token).await,
            Err(trouble) => Err(trouble),
        };
        match done {
            Ok(()) => took.push(began.elapsed()),
            Err(_) => failed += 1,
        }
    }
    (took, failed)
}

async fn waited(
    waiting: oneshot::Receiver<Result<(Instant, u64), Trouble>>,
) -> Result<(Instant, u64), Trouble> {
    match timeout(PATIENCE, waiting).await {
        Ok(Ok(granted)) => granted,
        Ok(Err(_)) | Err(_) => {
            Err(Trouble { fate: super::session::Fate::Unknown, code: "timeout".into(), status: None })
        }
    }
}

impl From<&Histogram> for Spread {
    fn from(took: &Histogram) -> Spread {
        let at = |per_mille| millis(took.quantile(per_mille));
        Spread { count: took.count(), p50_ms: at(500), p99_ms: at(990), max_ms: millis(took.max()) }
    }
}

impl From<Histogram> for Spread {
    fn from(took: Histogram) -> Spread {
        Spread::from(&took)
    }
}

impl Report {
    fn print(&self, json: bool, out: &mut impl Write) -> std::io::Result<()> {
        if json {
            return writeln!(out, "{}", serde_json::to_string(self).unwrap_or_default());
        }
        let rows = [
            ("acquire", Some(self.acquire)),
            ("renew", Some(self.renew)),
            ("release", Some(self.release)),
            ("register a process", Some(self.register)),
            ("release to next grant", Some(self.handed_on)),
            ("end after its ttl", self.ended_after_ttl),
            ("cycle, all connections", Some(self.cycle)),
        ];
        for (what, spread) in rows {
            let Some(Spread { count, p50_ms, p99_ms, max_ms }) = spread else { continue };
            writeln!(
                out,
                "{what:<24} p50 {p50_ms:8.2} ms  p99 {p99_ms:8.2} ms  max {max_ms:8.2} ms  {count} times"
            )?;
        }
        let (rate, failed) = (grouped(self.cycles_per_s as u64), grouped(self.failed));
        writeln!(out, "{rate} cycles/s, {failed} failed")
    }
}
