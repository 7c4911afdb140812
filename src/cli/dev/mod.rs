//! `eldest dev`: a whole cluster on this machine, as real processes that can be killed, frozen and restarted.

mod child;
pub mod error;
mod place;
mod run;
mod split;
mod terminal;
mod typed;

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use super::exit::Failure;
use place::{DevPlace, NODES_MAX};
use run::{Run, Wishes};

#[derive(Debug, Parser)]
#[command(after_help = "\
Examples:
  eldest dev
  eldest dev --nodes 5 --data ./cluster --quiet
  eldest dev --mode available

Example of a crash: type `kill 1` and Enter, then `status`, then `start 1`.

Example of a partition: type `split 1 | 2 3`, then `status`, then `heal`.")]
pub struct DevArgs {
    /// Number of nodes [default: 3, or as many as in --data]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=i64::from(NODES_MAX)))]
    nodes: Option<u32>,
    /// Keep the data in this folder, and continue from existing data
    #[arg(long)]
    data: Option<PathBuf>,
    /// Do not remove the temporary folder at the end
    #[arg(long)]
    keep: bool,
    /// Run all nodes on 127.0.0.1, on ports from this one upwards, instead of port 9000 on 127.0.0.1,
    /// 127.0.0.2, …
    #[arg(long)]
    base_port: Option<u16>,
    /// Settings for every node, such as other timings
    #[arg(long)]
    config: Option<PathBuf>,
    /// Behaviour of a part of the cluster that is cut off from the rest [default: safe, or the value in
    /// --config]
    #[arg(long)]
    mode: Option<Mode>,
    /// Do not show the nodes' logs
    #[arg(long)]
    quiet: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// A majority continues; other parts do not
    Safe,
    /// Every part continues, and parts are merged when they reconnect
    Available,
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Mode::Safe => "safe",
            Mode::Available => "available",
        }
    }
}

pub async fn run(args: &DevArgs) -> Result<(), Failure> {
    let place = DevPlace::prepare(args.nodes, args.data.as_deref(), args.keep, args.base_port)?;
    let wishes = Wishes { config: args.config.clone(), mode: args.mode.map(Mode::name), quiet: args.quiet };
    let outcome = Run::new(&place, wishes)?.go().await;
    // After a failure the data stays, because it may explain the failure.
    if outcome.is_ok() {
        place.remove_if_temporary()?;
    } else {
        terminal::say(&format!("data: {}", place.folder.display()));
    }
    Ok(outcome?)
}
