//! The figures of a run, for people and for programs.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use super::histogram::Histogram;
use super::session::Code;
use super::status::Look;
use super::tally::Errors;
use super::terminal::{grouped, millis, per_second};

/// The figures of one kind of operation.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    pub count: u64,
    pub per_s: f64,
    pub mean_ms: f64,
    pub p50_ms: f64,
    pub p90_ms: f64,
    pub p99_ms: f64,
    pub p99_9_ms: f64,
    pub max_ms: f64,
}

impl Figures {
    pub fn new(histogram: &Histogram, span: Duration) -> Figures {
        let quantile = |per_mille| millis(histogram.quantile(per_mille));
        Figures {
            count: histogram.count(),
            per_s: (per_second(histogram.count(), span) * 10.0).round() / 10.0,
            mean_ms: millis(histogram.mean()),
            p50_ms: quantile(500),
            p90_ms: quantile(900),
            p99_ms: quantile(990),
            p99_9_ms: quantile(999),
            max_ms: millis(histogram.max()),
        }
    }
}

/// The failures, as programs read them.
#[derive(Clone, Debug, Serialize)]
pub struct Wrongs<'a> {
    pub unknown_writes: u64,
    pub retried: u64,
    pub errors: &'a BTreeMap<Code, u64>,
}

impl<'a> Wrongs<'a> {
    pub fn new(errors: &'a Errors) -> Wrongs<'a> {
        Wrongs { unknown_writes: errors.unknown, retried: errors.retried, errors: &errors.by_code }
    }
}

/// A table with one line for each kind of operation that was asked for.
pub fn table(rows: &[(&str, &Figures)]) -> String {
    let mut text = format!(
        "{:<8} {:>12} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}  ms\n",
        "", "count", "per s", "mean", "p50", "p90", "p99", "p99.9", "max"
    );
    for (name, of) in rows {
        let per_s = grouped(of.per_s.round() as u64);
        let _ = write!(text, "{name:<8} {:>12} {per_s:>10}", grouped(of.count));
        for span_ms in [of.mean_ms, of.p50_ms, of.p90_ms, of.p99_ms, of.p99_9_ms, of.max_ms] {
            let _ = write!(text, " {span_ms:>9.3}");
        }
        text.push('\n');
    }
    text
}

pub fn errors_line(errors: &Errors) -> String {
    if errors.by_code.is_empty() {
        return "errors   none\n".to_string();
    }
    let counted = errors.by_code.iter().map(|(code, count)| format!("{code} {}", grouped(*count)));
    let counted = counted.collect::<Vec<_>>().join(", ");
    let (unknown, retried) = (grouped(errors.unknown), grouped(errors.retried));
    format!("errors   {counted}; {retried} retried, {unknown} writes with unknown outcome\n")
}

pub fn cluster_line(before: Option<&Look>, after: Option<&Look>) -> String {
    let epoch = |look: Option<&Look>| {
        let epoch = look.and_then(|look| look.epoch.clone());
        epoch.unwrap_or_else(|| "unknown".to_string())
    };
    let members = after.or(before).map_or("unknown size".to_string(), |look| match look.members {
        1 => "1 member".to_string(),
        members => format!("{members} members"),
    });
    format!("cluster  {members}, epoch {} before, {} after\n", epoch(before), epoch(after))
}

/// Measures how much of a core this process uses. A client that is short of processor time measures itself
/// instead of the cluster.
#[derive(Clone, Copy, Debug)]
pub struct CpuClock(Duration);

impl CpuClock {
    pub fn now() -> CpuClock {
        let used = clock_gettime(ClockId::ProcessCPUTime);
        let seconds = u64::try_from(used.tv_sec).unwrap_or(0);
        CpuClock(
            Duration::from_secs(seconds) + Duration::from_nanos(u64::try_from(used.tv_nsec).unwrap_or(0)),
        )
    }

    /// The percentage of one core that was used since then.
    pub fn percent_over(self, span: Duration) -> f64 {
        let used = CpuClock::now().0.saturating_sub(self.0);
        let percent = if span.is_zero() { 0.0 } else { used.as_secs_f64() / span.as_secs_f64() * 100.0 };
        (percent * 10.0).round() / 10.0
    }
}

#[cfg(test)]
mod tests {
    use super::super::session::{Fate, Trouble};
    use super::super::tally::Kind;
    use super::*;

    #[test]
    fn figures_are_those_of_the_histogram() {
        let mut histogram = Histogram::default();
        (1..=1000).for_each(|at| histogram.record(Duration::from_millis(at)));
        let figures = Figures::new(&histogram, Duration::from_secs(10));
        assert_eq!((figures.count, figures.per_s, figures.max_ms), (1000, 100.0, 1000.0));
        assert!((495.0..505.0).contains(&figures.p50_ms) && (980.0..1000.0).contains(&figures.p99_ms));
        let table = table(&[("writes", &figures)]);
        let widths: Vec<_> = table.lines().map(|line| line.trim_end_matches("  ms").len()).collect();
        assert_eq!(widths[0], widths[1], "{table}");
    }

    #[test]
    fn errors_are_told_by_code() {
        assert_eq!(errors_line(&Errors::default()), "errors   none\n");
        let mut errors = Errors::default();
        let trouble = Trouble { fate: Fate::Unknown, code: "timeout".into(), status: None };
        errors.count(Kind::Write, &trouble, true);
        let line = errors_line(&errors);
        assert_eq!(line, "errors   timeout 1; 1 retried, 1 writes with unknown outcome\n");
    }

    #[test]
    fn a_cluster_that_did_not_answer_is_unknown() {
        assert_eq!(cluster_line(None, None), "cluster  unknown size, epoch unknown before, unknown after\n");
    }
}
