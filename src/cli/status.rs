//! `eldest status`: asks every member at the same time, and shows each by its own answer.
//!
//! A node's view of another node can be old. So each row is the node's own answer. Only lag and silence, which a node
//! cannot know of itself, come from the leader's view.

mod gather;
mod view;

use clap::Parser;

use super::client::Target;
use super::exit::Failure;
use super::output::Output;

#[derive(Debug, Parser)]
#[command(after_help = "\
Example:
  eldest status
  eldest status --url http://10.0.0.1:9000,http://10.0.0.2:9000 --json

Exits with 10 if there is no leader.")]
pub struct StatusArgs {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    output: Output,
}

pub use gather::{Cluster, NodeReport, SILENT_MOST, epoch_order, gather, gather_with_change, gather_within};

pub async fn run(args: &StatusArgs) -> Result<(), Failure> {
    let cluster = gather_with_change(&args.target).await?;
    args.output.show(&view::json(&cluster), |_| view::table(&cluster))?;
    if cluster.view.leader.is_none() { Err(Failure::NobodyLeads) } else { Ok(()) }
}

/// Also used by `eldest top`.
pub fn table_of(cluster: &Cluster) -> String {
    view::table(cluster)
}

/// Also used by `eldest top`.
pub fn json_of(cluster: &Cluster) -> serde_json::Value {
    view::json(cluster)
}

/// Also used by `eldest dev`.
pub async fn table(urls: Vec<String>) -> Result<String, Failure> {
    let target = Target { url: urls, ..Target::default() };
    Ok(view::table(&gather(&target).await?))
}
