//! `eldest top`: shows the nodes, the rate of writes, the roles and the events on one screen, and updates it.
//!
//! It makes the same calls as `status`, `role list` and `feed`, and keeps nothing but the figures of the previous
//! look.

mod events;
mod frame;
mod rates;
mod screen;

use std::time::Duration;

use clap::Parser;
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::client::Target;
use super::exit::Failure;
use super::output::Output;
use super::signals::Signals;
use super::span::span;
use super::status::{Cluster, gather_within, json_of, table_of};
use crate::client::{LOOK_MAX, Request};
use events::Events;
use frame::ScreenFrame;
use rates::{Figures, Rates};
use screen::Screen;

#[derive(Debug, Parser)]
#[command(after_help = "\
Example:
  eldest top
  eldest top --every 5s
  eldest top --once
  eldest top --count 60 --output jsonl

Press Ctrl-C to exit. If the output is not a terminal, blocks are printed one after the other. With
--json each refresh is one JSON object on one line. Data that the token may not read is left out.")]
pub struct TopArgs {
    /// Refresh interval
    #[arg(long, value_name = "SPAN", value_parser = span, default_value = "1s")]
    every: Duration,
    /// Exit after this many refreshes
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Print one block, with the rates of one interval, and exit
    #[arg(long, conflicts_with = "count")]
    once: bool,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

/// The shortest interval. With a shorter one, a look would not be over when the next one begins.
const EVERY_LEAST: Duration = Duration::from_millis(200);

/// The time that a node has to answer: a frozen node must not freeze the screen. A longer interval gives the nodes
/// more time, for a slow line.
const ANSWER_LEAST: Duration = Duration::from_secs(1);

pub async fn run(args: &TopArgs) -> Result<(), Failure> {
    // At the start, an unreachable cluster is a failure. Later the screen shows it.
    let mut target = args.target.clone();
    let ask = Request::get("/v1/status").within(answers_within(args));
    let first = target.caller()?.first(&target.url, &ask).await?.taken()?;
    target.url.sort_by_key(|url| *url != first.url);
    let events = Events::follow(target.client(&target.url)?);
    let mut look = Look { args, target, events, rates: Rates::default() };
    let mut signals = Signals::with_hangup().map_err(Failure::NoRuntime)?;
    let mut resized = signal(SignalKind::window_change()).map_err(Failure::NoRuntime)?;
    let mut screen = if args.once { Screen::plain(&args.output) } else { Screen::open(&args.output)? };
    let mut ticks = interval(args.every.max(EVERY_LEAST));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first look has no rates yet, so a single block is that of the second one.
    let (skipped, count) = if args.once { (1, 1) } else { (0, args.count.unwrap_or(u64::MAX)) };
    for number in 0..count.saturating_add(skipped) {
        let next = async {
            ticks.tick().await;
            look.frame().await
        };
        let mut next = std::pin::pin!(next);
        let frame = loop {
            tokio::select! {
                frame = &mut next => break frame,
                _ = resized.recv() => screen.redraw()?,
                signal = signals.next() => return ended_by(signal, args.once),
            }
        };
        if number >= skipped {
            screen.show(frame)?;
        }
    }
    Ok(())
}

/// A signal is the usual end of a screen. A single block that is still missing is a failure: a script that reads it
/// has nothing.
fn ended_by(signal: i32, once: bool) -> Result<(), Failure> {
    if once { Err(Failure::BrokenOff { signal }) } else { Ok(()) }
}

#[derive(Debug)]
struct Look<'a> {
    args: &'a TopArgs,
    /// A node that has answered comes first.
    target: Target,
    events: Events,
    rates: Rates,
}

impl Look<'_> {
    async fn frame(&mut self) -> ScreenFrame {
        let (target, within) = (&self.target, answers_within(self.args));
        let (status, leader, cluster) = match gather_within(target, within).await {
            Ok(cluster) => (table_of(&cluster), leader_url(&cluster), Ok(json_of(&cluster))),
            Err(failure) => (format!("{failure}\n"), None, Err(failure.to_string())),
        };
        let (figures, roles) =
            tokio::join!(figures(target, leader.as_deref(), within), roles(target, within));
        let rate = self.rates.of(Instant::now(), figures);
        ScreenFrame { status, cluster, rate, roles, events: self.events.newest() }
    }
}

fn answers_within(args: &TopArgs) -> Duration {
    args.every.clamp(ANSWER_LEAST, LOOK_MAX)
}

async fn roles(target: &Target, within: Duration) -> Option<Vec<Value>> {
    let page = target.ask(&Request::get("/v1/roles?limit=1000").within(within)).await.ok()?;
    page["items"].as_array().cloned()
}

fn leader_url(cluster: &Cluster) -> Option<String> {
    cluster.view.leader.as_ref().map(|leader| leader.url.clone())
}

/// The leader's own figures, from the page that monitoring reads.
async fn figures(target: &Target, leader: Option<&str>, within: Duration) -> Option<Figures> {
    let first = target.url.first()?;
    let url = crate::client::alike(leader?, first);
    let answer = target.caller().ok()?.at(&url, &Request::get("/metrics").within(within)).await.ok()?;
    let text = answer.taken().ok()?.body;
    Figures::read(&url, &String::from_utf8_lossy(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_ends_a_screen_and_breaks_off_a_single_block() {
        assert!(ended_by(15, false).is_ok());
        let broken_off = ended_by(15, true).expect_err("there is no block");
        assert_eq!(broken_off.code(), 128 + 15);
    }
}
