//! How gaps are told: a line each, for people or as JSON, written out at once.

use std::io::{self, Write};
use std::time::SystemTime;

use serde_json::{Value, json};

use super::super::report::errors_line;
use super::super::text::{grouped, millis};
use super::watch::{Ack, Event, Gap, Watch};

#[derive(Debug)]
pub struct Printer<'a, W> {
    json: bool,
    /// Of the lanes.
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
                Event::Began { ack, wall } if self.json => self.began_json(ack, *wall).to_string(),
                Event::Began { ack, .. } => format!("first write acknowledged by {}", self.end(ack)),
                Event::Gap(gap) if self.json => self.gap_json(watch, gap).to_string(),
                Event::Gap(gap) => self.gap_text(watch, gap),
            };
            writeln!(self.out, "{line}")?;
        }
        self.out.flush()
    }

    /// The last line.
    pub fn finish(&mut self, watch: &Watch) -> io::Result<()> {
        if self.json {
            writeln!(self.out, "{}", totals_json(watch))?;
        } else {
            let (acknowledged, gaps) = (grouped(watch.acknowledged), grouped(watch.gaps));
            let (seconds, longest) = (watch.watched.as_secs_f64(), millis(watch.longest));
            writeln!(
                self.out,
                "\n{acknowledged} writes acknowledged in {seconds:.1} s, {gaps} gaps, the longest {longest:.1} ms"
            )?;
            write!(self.out, "{}", errors_line(&watch.errors))?;
        }
        self.out.flush()
    }

    fn gap_text(&self, watch: &Watch, gap: &Gap) -> String {
        let (length, at) = (millis(gap.length), watch.offset(gap.from.at).as_secs_f64());
        let to = gap.to.as_ref().map_or("still open".to_string(), |to| self.end(to));
        let late = match millis(gap.client_late) {
            late if late * 2.0 > length => format!("; this client itself stood still for {late:.1} ms of it"),
            _ => String::new(),
        };
        format!("gap {length:>8.1} ms at {at:>8.3} s, {} → {to}{late}", self.end(&gap.from))
    }

    fn end(&self, ack: &Ack) -> String {
        let epoch = ack.epoch.as_deref().unwrap_or("unknown");
        format!("{} (epoch {epoch})", self.urls[ack.lane])
    }

    fn began_json(&self, ack: &Ack, wall: SystemTime) -> Value {
        json!({ "event": "began", "at_unix_ms": unix_ms(wall), "by": self.end_json(ack) })
    }

    fn gap_json(&self, watch: &Watch, gap: &Gap) -> Value {
        json!({
            "event": "gap",
            "started_at_unix_ms": unix_ms(gap.wall),
            "started_after_ms": millis(watch.offset(gap.from.at)),
            "length_ms": millis(gap.length),
            "open": gap.to.is_none(),
            "from": self.end_json(&gap.from),
            "to": gap.to.as_ref().map(|to| self.end_json(to)),
            "client_late_ms": millis(gap.client_late),
        })
    }

    fn end_json(&self, ack: &Ack) -> Value {
        json!({ "url": self.urls[ack.lane], "epoch": ack.epoch })
    }
}

fn totals_json(watch: &Watch) -> Value {
    json!({
        "event": "end",
        "watched_ms": millis(watch.watched),
        "acknowledged": watch.acknowledged,
        "gaps": watch.gaps,
        "longest_ms": millis(watch.longest),
        "total_ms": millis(watch.total),
        "unknown_writes": watch.errors.unknown,
        "errors": watch.errors.by_code,
    })
}

fn unix_ms(wall: SystemTime) -> u64 {
    wall.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}
