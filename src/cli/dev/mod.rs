//! `eldest dev`: a whole cluster on this machine, as real processes that can be killed, frozen and brought back.

mod child;
mod error;
mod hints;
mod place;
mod run;
mod terminal;
mod typed;

use std::path::PathBuf;

use clap::Parser;

use super::exit::Failure;
pub use error::DevError;
use place::{NODES_MAX, Place};
use run::Run;

#[derive(Debug, Parser)]
#[command(after_help = "\
Examples:
  eldest dev
  eldest dev --nodes 5 --data ./cluster --quiet

Example of a crash: type `kill 1` and Enter, then `status`, then `start 1`.")]
pub struct Args {
    /// How many nodes (3, or as many as --data holds)
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=i64::from(NODES_MAX)))]
    nodes: Option<u32>,
    /// Keep the data in this folder, and start from what is there
    #[arg(long)]
    data: Option<PathBuf>,
    /// Do not remove the temporary folder at the end
    #[arg(long)]
    keep: bool,
    /// All nodes on 127.0.0.1 with ports from this one on, instead of port 9000 on 127.0.0.1, 127.0.0.2, …
    #[arg(long)]
    base_port: Option<u16>,
    /// Settings for every node, such as other timings
    #[arg(long)]
    config: Option<PathBuf>,
    /// Do not show what the nodes log
    #[arg(long)]
    quiet: bool,
}

pub async fn run(args: &Args) -> Result<(), Failure> {
    let place = Place::prepare(args.nodes, args.data.as_deref(), args.keep, args.base_port)?;
    let outcome = Run::new(&place, args.config.clone(), args.quiet)?.go().await;
    // After a failure the data may tell why.
    if outcome.is_ok() {
        place.remove_if_temporary()?;
    } else {
        terminal::say(&format!("data: {}", place.folder.display()));
    }
    Ok(outcome?)
}

impl From<DevError> for Failure {
    fn from(error: DevError) -> Failure {
        Failure::Dev(error)
    }
}
