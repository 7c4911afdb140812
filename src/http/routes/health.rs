//! The health of this node: probes for supervisors and load balancers (`/livez`, `/readyz`, `/leader`), the status for people, and
//! `/v1/diagnostics` for `eldest doctor`, with what only the node itself can measure.
//!
//! ```text
//!   /livez    the process takes calls        does not ask the loop: a supervisor must not end a node that waits for others
//!   /readyz   a linear read succeeds         through the leader: a load balancer sends no clients to a node that is cut off
//!   /leader   this node leads, by its lease  for clients that want to save the hop
//! ```

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use serde::Serialize;
use serde_json::json;
use tokio::time::Instant;

use crate::driver::handle::{Denied, Level, Status};
use crate::driver::{Measures, Numbers, Remark};
use crate::http::answer::{self, Answer, CallFailure, Code, Problem, TEXT};
use crate::http::dispatch;
use crate::http::request::{CallKind, ClientRequest, Context};
use crate::metrics::Process;
use crate::types::Now;

/// `eldest doctor` compares these values between nodes: clocks, settings and certificates are only wrong in
/// relation to each other.
#[derive(Debug, Serialize)]
struct Diagnostics {
    version: &'static str,
    /// Mode and timings as one number, as `eldest check` shows it.
    settings: String,
    clock: Clock,
    timing: Timing,
    disk: Disk,
    files: Files,
    certificate: Option<Certificate>,
    backup: Option<Backup>,
    conflicts: usize,
    remarks: Vec<Remark>,
    status: Status,
}

#[derive(Debug, Serialize)]
struct Clock {
    /// The time since this machine started; it includes suspended time.
    mono_us: u64,
    wall_us: u64,
}

#[derive(Debug, Serialize)]
struct Timing {
    heartbeat_ms: u64,
    dead_after_ms: u64,
    lease_ms: u64,
    drift_percent: u64,
}

#[derive(Debug, Serialize)]
struct Disk {
    full: bool,
    waits_ms: u64,
    slowest_sync_ms: u64,
}

/// Null if the system does not report the value; `most` also if the system sets no bound.
#[derive(Debug, Serialize)]
struct Files {
    open: Option<u64>,
    most: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Certificate {
    /// The time left by this node's wall clock; negative after the certificate has ended.
    ends_in_s: i64,
}

#[derive(Debug, Serialize)]
struct Backup {
    every_ms: u64,
    /// Null if there was none since the start.
    last_success_ago_ms: Option<u64>,
    failures: u64,
}

pub async fn tell(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    request.query(&[])?;
    Ok(answer::data(&own(&context, &request).await?))
}

/// Returns what this node says of itself.
pub async fn own(context: &Context, request: &ClientRequest) -> Result<impl Serialize + use<>, CallFailure> {
    let measures = request.in_time(context.handle.measures()).await?.ok_or(Denied::Stopping)?;
    Ok(diagnostics(context, measures))
}

fn diagnostics(context: &Context, measures: Measures) -> Diagnostics {
    let setup = &context.setup;
    let now = measures.at;
    let timing = &setup.settings.timing;
    let (open, most) = Process::look().files();
    let millis = |took: std::time::Duration| u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    Diagnostics {
        version: env!("CARGO_PKG_VERSION"),
        settings: format!("{:016x}", setup.cluster.settings),
        clock: Clock { mono_us: now.mono.0, wall_us: now.wall.0 },
        timing: Timing {
            heartbeat_ms: timing.heartbeat.0 / 1_000,
            dead_after_ms: timing.dead_after.0 / 1_000,
            lease_ms: timing.lease.0 / 1_000,
            drift_percent: timing.drift_percent,
        },
        disk: Disk {
            full: measures.status.disk_full,
            waits_ms: millis(measures.disk_waits),
            slowest_sync_ms: millis(measures.slowest_sync),
        },
        files: Files { open, most },
        certificate: setup.tls.as_ref().map(|tls| {
            let seconds = i64::try_from(now.wall.0 / 1_000_000).unwrap_or(i64::MAX);
            Certificate { ends_in_s: tls.certificates.facts().not_after.saturating_sub(seconds) }
        }),
        backup: backup(context.handle.numbers(), now),
        conflicts: measures.conflicts,
        remarks: measures.remarks,
        status: measures.status,
    }
}

/// Returns None if no backups are scheduled.
fn backup(numbers: &Numbers, now: Now) -> Option<Backup> {
    let backups = &numbers.backups;
    let every_ms = u64::try_from(backups.every().as_millis()).unwrap_or(u64::MAX);
    let last = Some(backups.last_success()).filter(|seconds| *seconds > 0);
    (every_ms > 0).then(|| Backup {
        every_ms,
        last_success_ago_ms: last.map(|seconds| (now.wall.0 / 1_000).saturating_sub(seconds * 1_000)),
        failures: backups.failures.get(),
    })
}

// Probes tell people, load balancers and supervisors the condition of this node.

/// The client of a probe asks again soon, so an answer that takes longer than this is a no.
const READY_MOST: Duration = Duration::from_secs(1);

const HELP: &str = include_str!("help.txt");

pub fn root() -> Response<Body> {
    answer::typed(StatusCode::OK, TEXT, HELP)
}

/// Answers that the process lives and takes calls. The loop is not asked: if it ends, the process ends, too.
pub async fn livez() -> Response<Body> {
    answer::typed(StatusCode::OK, TEXT, "ok\n")
}

pub async fn status(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    request.query(&[])?;
    match request.in_time(context.handle.status()).await? {
        Some(status) => Ok(answer::data(&status)),
        None => Err(Denied::Stopping.into()),
    }
}

/// Makes a linear read as a client would: here if this node leads, otherwise in one hop to the leader.
/// Every failure keeps its code and has status 503: load balancers look only at the status.
/// While the leader refuses writes the node stays ready, because reads go on. The answer has the reason.
pub async fn readyz(State(context): State<Arc<Context>>, mut request: ClientRequest) -> Answer {
    request.query(&[])?;
    request.deadline = request.deadline.min(Instant::now() + READY_MOST);
    let confirmed =
        dispatch::at_leader(&context, &request, CallKind::Read, false, || confirm(&context)).await;
    confirmed.map_err(|problem| problem.status(StatusCode::SERVICE_UNAVAILABLE))
}

async fn confirm(context: &Context) -> Result<Response<Body>, CallFailure> {
    context.handle.read(Level::Linear).await?;
    Ok(answer::data(&match context.handle.pulse().writes_refused() {
        None => json!({"ready": true}),
        Some(why) => json!({"ready": true, "writes_refused": why}),
    }))
}

/// Answers 200 if this node leads by its lease at the moment of the answer (I4): writes sent here need no hop.
/// A node that only believes that it leads answers 503.
pub async fn leader(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    request.query(&[])?;
    if request.in_time(context.handle.is_leader()).await? {
        return Ok(answer::data(&json!({"leader": true})));
    }
    Err(Problem::new(Code::NotLeader, "this node does not lead").status(StatusCode::SERVICE_UNAVAILABLE))
}
