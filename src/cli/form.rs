//! `eldest form`: forms a cluster for the first time although nodes are missing (P9).

use clap::Parser;
use serde_json::json;

use super::client::Target;
use super::exit::Failure;
use super::output::Output;
use crate::client::Request;

/// The text that is shown if the command was not confirmed.
const MEANING: &str = "\
A cluster forms once, by itself, when every node of the topology is up and has never been part of one.
To form it without some of them is safe only if those really never were part of this cluster: if they were, their
disks may hold acknowledged writes, and a second cluster would begin beside the first. They join later, empty.";

#[derive(Debug, Parser)]
#[command(after_help = "\
Example:
  eldest form --without 3 --yes

Needed once at most, before the first write, and only while a node of the topology cannot be started.")]
pub struct FormArgs {
    /// The ids of the nodes that are missing, separated by commas; a majority must remain
    #[arg(long, value_delimiter = ',', required = true)]
    without: Vec<u32>,
    /// Yes: the missing nodes were never part of this cluster
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

pub async fn run(args: &FormArgs) -> Result<(), Failure> {
    if !args.yes {
        return Err(Failure::NotConfirmed { what: MEANING });
    }
    let said = args.target.ask(&Request::post("/form", &json!({ "without": args.without }))).await?;
    let sentence = "the nodes that are up form the cluster; `eldest status` shows who leads";
    args.output.done(&said, || sentence.to_string())
}
