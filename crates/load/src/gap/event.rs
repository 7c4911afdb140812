//! The output of gaps: one line for each, for people or as JSON, written at once.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::SystemTime;

use serde::Serialize;

use super::super::report::errors_line;
use super::super::session::Code;
use super::super::terminal::{grouped, millis};
use super::watch::{Ack, Event, Gap, Watch};

/// An event as a program reads it.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Line<'a> {
    Began {
        at_unix_ms: u64,
        by: End<'a>,
    },
    Gap {
        started_at_unix_ms: u64,
        /// Counted from the first acknowledgement.
        started_after_ms: f64,
        length_ms: f64,
        open: bool,
        from: End<'a>,
        to: Option<End<'a>>,
        client_late_ms: f64,
    },
    End {
        watched_ms: f64,
        acknowledged: u64,
        gaps: u64,
        longest_ms: f64,
        total_ms: f64,
        unknown_writes: u64,
        errors: &'a BTreeMap<Code, u64>,
    },
}

/// One end of a gap: the node that acknowledged the write, and its epoch.
#[derive(Debug, Serialize)]
struct End<'a> {
    url: &'a str,
    epoch: Option<&'a str>,
}

#[derive(Debug)]
pub struct Printer<'a, W> {
    json: bool,
    /// The URLs of the lanes.
    urls: Vec<String>,
    out: &'a mut W,
}

impl<'a, W: Write> Printer<'a, W> {
    pub fn new(json: bool, urls: Vec<String>, out: &'a mut W) -> Printer<'a, W> {
        Printer { json, urls, out }
    }

    pub fn print(&mut self, watch: &Watch, events: &[Event]) -> io::Result<()> {
        for event in events {
            let line = match event {
                _ if self.json => serde_json::to_string(&self.line(watch, event))?,
                Event::Began { ack, .. } => format!("first write acknowledged by {}", self.end_text(ack)),
                Event::Gap(gap) => self.gap_text(watch, gap),
            };
            writeln!(self.out, "{line}")?;
        }
        self.out.flush()
    }

    /// Prints the last line.
    pub fn finish(&mut self, watch: &Watch) -> io::Result<()> {
        if self.json {
            writeln!(self.out, "{}", serde_json::to_string(&totals(watch))?)?;
        } else {
            let (acknowledged, gaps) = (grouped(watch.acknowledged), grouped(watch.gaps));
            let (seconds, longest) = (watch.watched.as_secs_f64(), millis(watch.longest));
            writeln!(self.out, "\n{acknowledged} writes acknowledged in {seconds:.1} s")?;
            writeln!(self.out, "{gaps} gaps, the longest wait {longest:.1} ms")?;
            write!(self.out, "{}", errors_line(&watch.errors))?;
        }
        self.out.flush()
    }

    fn gap_text(&self, watch: &Watch, gap: &Gap) -> String {
        let (length, at) = (millis(gap.length), watch.offset(gap.from.at).as_secs_f64());
        let to = gap.to.as_ref().map_or("still open".to_string(), |to| self.end_text(to));
        let late = match millis(gap.client_late) {
            late if late * 2.0 > length => {
                format!("; this client itself was suspended for {late:.1} ms of it")
            }
            _ => String::new(),
        };
        format!("gap {length:>8.1} ms at {at:>8.3} s, {} → {to}{late}", self.end_text(&gap.from))
    }

    fn end_text(&self, ack: &Ack) -> String {
        let End { url, epoch } = self.end(ack);
        format!("{url} (epoch {})", epoch.unwrap_or("unknown"))
    }

    fn line<'b>(&'b self, watch: &Watch, event: &'b Event) -> Line<'b> {
        match event {
            Event::Began { ack, wall } => Line::Began { at_unix_ms: unix_ms(*wall), by: self.end(ack) },
            Event::Gap(gap) => Line::Gap {
                started_at_unix_ms: unix_ms(gap.wall),
                started_after_ms: millis(watch.offset(gap.from.at)),
                length_ms: millis(gap.length),
                open: gap.to.is_none(),
                from: self.end(&gap.from),
                to: gap.to.as_ref().map(|to| self.end(to)),
                client_late_ms: millis(gap.client_late),
            },
        }
    }

    fn end<'b>(&'b self, ack: &'b Ack) -> End<'b> {
        End { url: &self.urls[ack.lane], epoch: ack.epoch.as_deref() }
    }
}

fn totals(watch: &Watch) -> Line<'_> {
    Line::End {
        watched_ms: millis(watch.watched),
        acknowledged: watch.acknowledged,
        gaps: watch.gaps,
        longest_ms: millis(watch.longest),
        total_ms: millis(watch.total),
        unknown_writes: watch.errors.unknown,
        errors: &watch.errors.by_code,
    }
}

fn unix_ms(wall: SystemTime) -> u64 {
    wall.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}
