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
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::client::Target;
use super::exit::Failure;
use super::signals::Signals;
use super::span::span;
use super::status::{gather, table_of};
use crate::client::{Client, Request};
use events::Events;
use frame::ScreenFrame;
use rates::{Figures, Rates};
use screen::Screen;

#[derive(Debug, Parser)]
#[command(after_help = "\
Example:
  eldest top
  eldest top --every 5s
  eldest top --count 2

Press Ctrl-C to exit. If the output is not a terminal, blocks are printed one after the other. Data that
the token may not read is left out.")]
pub struct TopArgs {
    /// Refresh interval
    #[arg(long, value_name = "SPAN", value_parser = span, default_value = "1s")]
    every: Duration,
    /// Exit after this many refreshes
    #[arg(long)]
    count: Option<u64>,
    #[command(flatten)]
    target: Target,
}

/// The shortest interval. With a shorter one, a look would not be over when the next one begins.
const EVERY_LEAST: Duration = Duration::from_millis(200);

pub async fn run(args: &TopArgs) -> Result<(), Failure> {
    // At the start, an unreachable cluster is a failure. Later the screen shows it.
    let mut seen = gather(&args.target).await.map(|cluster| (table_of(&cluster), leader_url(&cluster)))?;
    let events = Events::follow(client(&args.target)?);
    let mut signals = Signals::with_hangup().map_err(Failure::NoRuntime)?;
    let mut screen = Screen::open()?;
    let mut rates = Rates::default();
    let mut ticks = interval(args.every.max(EVERY_LEAST));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut left = args.count.unwrap_or(u64::MAX);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = signals.next() => return Ok(()),
        }
        let look = async {
            match gather(&args.target).await {
                Ok(cluster) => seen = (table_of(&cluster), leader_url(&cluster)),
                Err(failure) => seen = (format!("{failure}\n"), None),
            }
            let figures = figures(&args.target, seen.1.as_deref()).await;
            let roles = args.target.ask(&Request::get("/v1/roles?limit=1000")).await;
            let roles = roles.ok().and_then(|page| page["items"].as_array().cloned());
            let (status, rate, events) = (seen.0.clone(), rates.of(Instant::now(), figures), events.newest());
            ScreenFrame { status, rate, roles, events }
        };
        let frame = tokio::select! {
            frame = look => frame,
            _ = signals.next() => return Ok(()),
        };
        screen.show(&frame)?;
        left -= 1;
        if left == 0 {
            return Ok(());
        }
    }
}

fn leader_url(cluster: &super::status::Cluster) -> Option<String> {
    cluster.view.leader.as_ref().map(|leader| leader.url.clone())
}

/// The leader's own figures, from the page that monitoring reads.
async fn figures(target: &Target, leader: Option<&str>) -> Option<Figures> {
    let first = target.url.first()?;
    let url = crate::client::alike(leader?, first);
    let answer = target.caller().ok()?.at(&url, &Request::get("/metrics")).await.ok()?;
    let text = answer.taken().ok()?.body;
    Figures::read(&url, &String::from_utf8_lossy(&text))
}

fn client(target: &Target) -> Result<Client, Failure> {
    let builder = Client::builder(target.url.clone()).tls(target.tls.files());
    let builder =
        target.token.credential()?.into_iter().fold(builder, |builder, (token, _)| builder.token(token));
    builder.build().map_err(|error| Failure::Usage { what: error.to_string() })
}
