//! The report of a run under load.

use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;

use super::super::report::{Figures, Wrongs, cluster_line, errors_line, table};
use super::super::status::Look;
use super::super::tally::{Errors, Tally};
use super::super::target::Target;
use super::super::terminal::grouped;
use super::super::workload::Level;
use super::args::LoadArgs;

/// The measured part of the run, without the warm-up.
#[derive(Debug)]
pub struct Measured {
    pub tally: Tally,
    pub span: Duration,
    pub cpu_percent: f64,
}

#[derive(Debug, Serialize)]
pub struct Report<'a> {
    benchmark: &'static str,
    /// Whether the leader alone or all nodes were asked.
    target: &'static str,
    urls: Vec<&'a str>,
    connections: u16,
    /// The number of streams, if streams are used instead of connections, and how many lines of each may be
    /// unanswered.
    streams: Option<u16>,
    window: Option<u32>,
    value_bytes: u32,
    keys: u32,
    read_percent: u8,
    level: Level,
    idempotent: bool,
    seed: u64,
    warmup_ms: u64,
    measured_ms: u64,
    writes: Figures,
    reads: Figures,
    missing_reads: u64,
    #[serde(flatten)]
    wrongs: Wrongs<'a>,
    client_cpu_percent: f64,
    before: Option<Look>,
    after: Option<Look>,
    #[serde(skip)]
    trouble: &'a Errors,
}

impl<'a> Report<'a> {
    pub fn new(
        args: &LoadArgs,
        targets: &'a [Target],
        measured: &'a Measured,
        before: Option<Look>,
        after: Option<Look>,
    ) -> Report<'a> {
        let Measured { tally, span, cpu_percent } = measured;
        Report {
            benchmark: "load",
            target: if args.choice.spread { "spread" } else { "leader" },
            urls: targets.iter().map(|target| target.url.as_str()).collect(),
            connections: args.stream.map_or(args.connections, |_| 0),
            streams: args.stream,
            window: args.stream.map(|_| args.window),
            value_bytes: args.size,
            keys: args.keys,
            read_percent: args.read,
            level: args.level,
            idempotent: args.idempotent,
            seed: args.seed,
            warmup_ms: args.warmup.as_millis() as u64,
            measured_ms: span.as_millis() as u64,
            writes: Figures::new(&tally.writes, *span),
            reads: Figures::new(&tally.reads, *span),
            missing_reads: tally.missing,
            wrongs: Wrongs::new(&tally.trouble),
            client_cpu_percent: *cpu_percent,
            before,
            after,
            trouble: &tally.trouble,
        }
    }

    pub fn print(&self, json: bool, out: &mut impl Write) -> io::Result<()> {
        let text = if json { serde_json::to_string(self)? + "\n" } else { self.text() };
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    fn text(&self) -> String {
        let asked = match self.target {
            "leader" => format!("the leader, {}", self.urls.first().unwrap_or(&"")),
            _ => format!("{} nodes", self.urls.len()),
        };
        let (connections, bytes, keys) = (self.connections, self.value_bytes, grouped(self.keys.into()));
        let seconds = self.measured_ms as f64 / 1000.0;
        let mut text = match (self.streams, self.window) {
            (Some(streams), Some(window)) => {
                format!("{streams} streams to {asked}, each with up to {window} unanswered lines\n")
            }
            _ => format!("{connections} connections to {asked}\n"),
        };
        text += &format!("values of {bytes} bytes under {keys} keys, for {seconds:.1} s\n\n");
        let rows = [("writes", &self.writes), ("reads", &self.reads)];
        let wanted = [self.read_percent < 100, self.read_percent > 0];
        let rows: Vec<_> =
            rows.into_iter().zip(wanted).filter_map(|(row, wanted)| wanted.then_some(row)).collect();
        text += &table(&rows);
        text.push('\n');
        text += &errors_line(self.trouble);
        if self.missing_reads > 0 {
            text += &format!("missing  {} reads found no value; `fill` first\n", grouped(self.missing_reads));
        }
        text += &cluster_line(self.before.as_ref(), self.after.as_ref());
        text + &format!("client   {}% of a core\n", self.client_cpu_percent)
    }
}
