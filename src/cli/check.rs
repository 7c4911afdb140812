//! `eldest check`: reads settings and topology as `serve` does, reports all mistakes, and starts nothing.

use std::fmt::Write;

use clap::Parser;

use super::exit::Failure;
use super::out::print;
use super::sources::SourceArgs;
use super::table::Table;
use crate::config::{Config, Loaded};
use crate::protocol::Mode;

#[derive(Debug, Parser)]
#[command(after_help = "\
Example:
  eldest check --topology topology.json --config eldest.toml --node 2

Exits with 0 if a node would start with these settings, with 2 if there are mistakes.")]
pub struct CheckArgs {
    #[command(flatten)]
    sources: SourceArgs,
}

pub fn run(args: &CheckArgs) -> Result<(), Failure> {
    let loaded = crate::config::load(args.sources.sources()).map_err(Failure::Config)?;
    print(&summary(&loaded))
}

fn summary(Loaded { config, remarks }: &Loaded) -> String {
    let mut text = format!("no mistakes\n\n{}\n{}", facts(config), members(config));
    for remark in remarks {
        // Writing into a string never fails.
        let _ = write!(text, "\nremark: {remark}");
    }
    text
}

fn facts(config: &Config) -> Table {
    let timing = &config.timing;
    let mut table = Table::default();
    let mut fact = |name: &str, value: String| table.row([name.to_string(), value]);
    fact("cluster", format!("{} ({})", config.cluster_name, config.mode.name()));
    fact("this node", config.me.0.to_string());
    fact("listen", config.listen.to_string());
    fact("data", config.data.display().to_string());
    fact("tolerates", goes_on(config));
    fact("heartbeat", format!("{} ms", timing.heartbeat.0 / 1_000));
    fact("dead after", format!("{} ms", timing.dead_after.0 / 1_000));
    if config.mode == Mode::Available {
        fact("poll", format!("{} ms", timing.poll.0 / 1_000));
    }
    fact("lease", format!("{} ms, {} % drift", timing.lease.0 / 1_000, timing.drift_percent));
    fact("cluster secret", if config.secret.is_some() { "yes" } else { "no" }.to_string());
    fact("admin token", if config.admin_token.is_some() { "yes" } else { "no" }.to_string());
    fact("anonymous", config.anonymous.said());
    fact("digest", format!("{:016x} (the same on every node)", config.digest()));
    table
}

/// A sentence about how many nodes must be left for the cluster to go on.
fn goes_on(config: &Config) -> String {
    let nodes = config.members.len();
    match config.mode {
        Mode::Safe => {
            let quorum = nodes / 2 + 1;
            format!("{quorum} of {nodes} nodes must be up, so {} may fail", nodes - quorum)
        }
        Mode::Available => format!("every side of a split stays available, even 1 of {nodes} nodes"),
    }
}

fn members(config: &Config) -> Table {
    let mut table = Table::new(["", "ID", "NAME", "ADDRESS"]);
    for member in &config.members {
        let own = if member.id == config.me { "*" } else { "" };
        table.row([own.into(), member.id.0.to_string(), member.name.clone(), member.address.to_string()]);
    }
    table
}
