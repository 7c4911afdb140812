//! `/metrics`: all counters and measurements, in the format of Prometheus. `docs/metrics.md` is its reference.
//!
//! ```text
//!   loop: Measures, one call ─┐
//!   Numbers, counters ────────┼─► one page, family by family
//!   Context: places, traffic ─┘
//! ```
//!
//! A label has few values, and none that a caller can choose: each value is a time series at the collector.
//! Peers are labelled by id.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode};

use crate::driver::handle::Denied;
use crate::driver::{Measures, Numbers};
use crate::http::admission::Class;
use crate::http::answer::{self, Answer};
use crate::http::request::{ClientRequest, Context};
use crate::metrics::{CONTENT_TYPE, MetricsPage, Process, SampleKind};

/// The names and values of a sample's labels, and its value.
type Sample = (Vec<(&'static str, String)>, f64);

pub async fn scrape(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    request.query(&[])?;
    let Some(page) = request.in_time(text(&context)).await? else {
        return Err(Denied::Stopping.into());
    };
    Ok(answer::typed(StatusCode::OK, HeaderValue::from_static(CONTENT_TYPE), page))
}

/// Returns None if the node is about to stop.
pub async fn text(context: &Context) -> Option<String> {
    Some(page(context, &context.handle.measures().await?))
}

fn page(context: &Context, measures: &Measures) -> String {
    let mut page = MetricsPage::default();
    about(&mut page, measures);
    leadership(&mut page, measures, context.handle.numbers());
    log(&mut page, measures, context.handle.numbers());
    members(&mut page, measures);
    state(&mut page, measures);
    backups(&mut page, context.handle.numbers());
    readers(&mut page, context);
    traffic(&mut page, context);
    room(&mut page, context);
    Process::look().write(&mut page);
    page.into_text()
}

fn about(page: &mut MetricsPage, measures: &Measures) {
    let status = &measures.status;
    let labels = vec![
        ("version", env!("CARGO_PKG_VERSION").to_string()),
        ("cluster", status.cluster.clone()),
        ("mode", status.mode.to_string()),
        ("node", status.node.id.to_string()),
        ("name", status.node.name.clone()),
    ];
    page.family(
        "eldest_info",
        SampleKind::Gauge,
        "Always 1; the labels describe this node.",
        [(labels, 1.0)],
    );
    let flags = [
        ("eldest_admitted", "Whether this node's disk votes.", status.admitted),
        ("eldest_disk_full", "Whether the disk is full.", status.disk_full),
        ("eldest_service_down", "Whether an operator has stopped client writes.", status.service_down),
        ("eldest_needs_attention", "Whether `eldest status` has a remark.", status.remark.is_some()),
    ];
    for (name, help, is) in flags {
        page.number(name, SampleKind::Gauge, help, f64::from(u8::from(is)));
    }
}

fn leadership(page: &mut MetricsPage, measures: &Measures, numbers: &Numbers) {
    let status = &measures.status;
    let leads = f64::from(u8::from(status.role == "leader"));
    page.number("eldest_is_leader", SampleKind::Gauge, "Whether this node leads, as it sees it.", leads);
    let leader = status.leader.as_ref().map_or(0, |leader| leader.id);
    page.number(
        "eldest_leader_node",
        SampleKind::Gauge,
        "Id of the leader that this node sees; 0: none.",
        leader.into(),
    );
    let counter = status.epoch.split('.').next().and_then(|counter| counter.parse().ok()).unwrap_or(0.0);
    page.number("eldest_epoch", SampleKind::Gauge, "Number of the epoch, without its leader.", counter);
    let changes =
        numbers.leader_changes().map(|(reason, count)| (vec![("reason", reason.to_string())], count as f64));
    page.family(
        "eldest_leader_changes_total",
        SampleKind::Counter,
        "Times this node gave up a leader or stopped leading, by reason.",
        changes,
    );
    let leaderless = numbers.leaderless().as_secs_f64();
    page.number(
        "eldest_leaderless_seconds_total",
        SampleKind::Counter,
        "Time this node knew no leader.",
        leaderless,
    );
}

fn log(page: &mut MetricsPage, measures: &Measures, numbers: &Numbers) {
    let status = &measures.status;
    let positions = [
        ("eldest_last_index", "Newest record in this node's log.", status.last_index),
        ("eldest_commit_index", "Newest record known to be committed.", status.commit_index),
        ("eldest_applied_index", "Newest record in this node's state.", status.applied_index),
        ("eldest_snapshot_id", "Newest snapshot.", status.snapshot_id),
        (
            "eldest_uncommitted_bytes",
            "Bytes appended here as the leader and not yet committed.",
            measures.uncommitted_bytes as u64,
        ),
        ("eldest_unsynced_messages", "Messages waiting for this node's disk.", measures.unsynced as u64),
    ];
    gauges(page, positions);
    let histograms = [
        (
            "eldest_commit_duration_seconds",
            "From a write's arrival at the leader to its commit.",
            &numbers.commits,
        ),
        (
            "eldest_sync_duration_seconds",
            "From the start of a round's disk write until it is durable.",
            &numbers.syncs,
        ),
        ("eldest_snapshot_duration_seconds", "From the start of a snapshot to its end.", &numbers.snapshots),
    ];
    for (name, help, histogram) in histograms {
        page.histograms(name, help, "", [("", histogram)]);
    }
    let counters = [
        (
            "eldest_snapshot_failures_total",
            "Snapshots that could not be written.",
            &numbers.snapshot_failures,
        ),
        ("eldest_state_divergences_total", "States found to differ between nodes.", &numbers.diverged),
        ("eldest_merges_total", "Sides of a split that merged with this one.", &numbers.merges),
    ];
    for (name, help, counter) in counters {
        page.number(name, SampleKind::Counter, help, counter.get() as f64);
    }
}

fn members(page: &mut MetricsPage, measures: &Measures) {
    let members = &measures.status.members;
    let own = measures.status.node.id;
    let others = || members.iter().filter(move |member| member.id != own);
    let peer = |id: u32| vec![("peer", id.to_string())];
    let voters = members.iter().filter(|member| member.votes).count();
    page.number("eldest_voters", SampleKind::Gauge, "Members whose votes count.", voters as f64);
    let reachable = others().map(|member| (peer(member.id), f64::from(u8::from(member.reachable))));
    page.family(
        "eldest_peer_reachable",
        SampleKind::Gauge,
        "Whether this node's calls reach the other node.",
        reachable,
    );
    let heard = others().filter_map(|member| Some((peer(member.id), member.last_heard_ms? as f64 / 1e3)));
    page.family(
        "eldest_peer_last_heard_seconds",
        SampleKind::Gauge,
        "Time since this node last heard from the other node.",
        heard,
    );
    let lag = others().filter_map(|member| Some((peer(member.id), member.lag? as f64)));
    page.family(
        "eldest_peer_lag_records",
        SampleKind::Gauge,
        "Records that the other node is behind the leader.",
        lag,
    );
    let trouble = others().map(|member| (peer(member.id), f64::from(u8::from(member.trouble.is_some()))));
    page.family(
        "eldest_peer_trouble",
        SampleKind::Gauge,
        "Whether calls from or to the other node are refused.",
        trouble,
    );
    let trips = measures.round_trips.iter().map(|(id, took)| (peer(*id), took.as_secs_f64()));
    page.family(
        "eldest_peer_round_trip_seconds",
        SampleKind::Gauge,
        "Round-trip time of recent heartbeats.",
        trips,
    );
}

fn state(page: &mut MetricsPage, measures: &Measures) {
    let rows = measures.rows.iter().map(|(table, rows)| (vec![("table", table.to_string())], *rows as f64));
    page.family("eldest_rows", SampleKind::Gauge, "Entries of the state, by table.", rows);
    let numbers = [
        (
            "eldest_conflicts",
            "Values that merges overrode and that have not been applied or dropped.",
            measures.conflicts as u64,
        ),
        (
            "eldest_roles_waiting",
            "Calls waiting for a role; only the leader knows them.",
            measures.waiting_for_roles as u64,
        ),
        ("eldest_state_bytes", "Size of the state.", measures.status.state_bytes),
        (
            "eldest_state_bytes_limit",
            "Limit of the state's size while this node leads.",
            measures.status.state_bytes_most,
        ),
    ];
    gauges(page, numbers);
}

fn backups(page: &mut MetricsPage, numbers: &Numbers) {
    let backups = &numbers.backups;
    let gauges = [
        (
            "eldest_backup_every_seconds",
            "Interval between copies of the state; 0: never.",
            backups.every().as_secs_f64(),
        ),
        (
            "eldest_backup_last_success_timestamp_seconds",
            "Time when the newest copy was last written or found up to date.",
            backups.last_success() as f64,
        ),
        ("eldest_backup_bytes", "Size of the newest copy.", backups.bytes() as f64),
    ];
    for (name, help, value) in gauges {
        page.number(name, SampleKind::Gauge, help, value);
    }
    let failures = backups.failures.get() as f64;
    page.number(
        "eldest_backup_failures_total",
        SampleKind::Counter,
        "Copies that could not be written.",
        failures,
    );
}

fn readers(page: &mut MetricsPage, context: &Context) {
    let (events, bytes) = context.handle.feed().kept();
    let numbers = [
        ("eldest_feed_readers", "Readers of the feed on this node.", context.handle.feed().readers() as u64),
        ("eldest_feed_events", "Events kept for readers of the feed.", events as u64),
        ("eldest_feed_bytes", "Bytes of the events kept for readers of the feed.", bytes as u64),
        (
            "eldest_channel_listeners",
            "Subscribers of channels on this node.",
            context.handle.channels().listeners() as u64,
        ),
    ];
    gauges(page, numbers);
}

fn traffic(page: &mut MetricsPage, context: &Context) {
    let traffic = &context.traffic;
    let answers = traffic.answers().map(|(route, status, count)| -> Sample {
        let status = if status == 0 { "other".to_string() } else { status.to_string() };
        (vec![("route", route.to_string()), ("status", status)], count as f64)
    });
    page.family(
        "eldest_http_requests_total",
        SampleKind::Counter,
        "Answers to clients, by route and status.",
        answers,
    );
    let problems = traffic.problems();
    let problems = problems.iter().map(|(code, count)| (vec![("code", code.to_string())], *count as f64));
    page.family(
        "eldest_http_problems_total",
        SampleKind::Counter,
        "Problems sent to clients, by code.",
        problems,
    );
    let help = "From a request's head to its response's head.";
    page.histograms("eldest_http_request_duration_seconds", help, "route", traffic.took());
    let peers = traffic.peers.get() as f64;
    page.number("eldest_peer_calls_total", SampleKind::Counter, "Calls from other nodes.", peers);
    let lost = context.spans.lost() as f64;
    page.number("eldest_spans_lost_total", SampleKind::Counter, "Spans that no collector accepted.", lost);
}

/// Writes the use and the limit of each resource that callers can exhaust.
/// Each use stands next to its limit, so an alert can compare the two without knowing the configuration.
fn room(page: &mut MetricsPage, context: &Context) {
    let seats = context.seats.in_use();
    let class = |class: Class| vec![("class", class.name().to_string())];
    let used = seats.iter().map(|(of, used, _)| (class(*of), *used as f64));
    page.family("eldest_http_calls", SampleKind::Gauge, "Client calls in progress, by class.", used);
    let most = seats.iter().map(|(of, _, most)| (class(*of), *most as f64));
    page.family("eldest_http_calls_limit", SampleKind::Gauge, "Limit of their number.", most);
    let (waiting, waiting_most) = context.waiting.in_use();
    let (connections, connections_most) = context.callers.connections();
    let (bytes, bytes_most) = context.callers.bytes();
    let numbers = [
        ("eldest_http_leaderless_calls", "Calls waiting for leadership to settle.", waiting as u64),
        ("eldest_http_leaderless_calls_limit", "Limit of their number.", waiting_most as u64),
        ("eldest_http_connections", "Open connections, not counting the reserve.", connections as u64),
        ("eldest_http_connections_limit", "Limit of their number.", connections_most as u64),
        ("eldest_http_body_bytes", "Memory held for bodies and answers of clients.", bytes as u64),
        ("eldest_http_body_bytes_limit", "Limit of that memory.", bytes_most as u64),
    ];
    gauges(page, numbers);
    page.number(
        "eldest_tls_handshakes_failed_total",
        SampleKind::Counter,
        "Failed TLS handshakes.",
        context.handshakes.count.get() as f64,
    );
}

fn gauges<const N: usize>(page: &mut MetricsPage, numbers: [(&str, &str, u64); N]) {
    for (name, help, value) in numbers {
        page.number(name, SampleKind::Gauge, help, value as f64);
    }
}
