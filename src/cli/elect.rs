//! `eldest elect N`: hands leadership to one node.

use clap::Parser;
use serde_json::json;

use super::client::Target;
use super::exit::Failure;
use super::out::print;
use crate::client::Request;

#[derive(Debug, Parser)]
#[command(after_help = "\
Example:
  eldest elect 2

The leader catches node 2 up, stops taking writes, and hands over in one step.")]
pub struct Args {
    /// The id of the node that shall lead
    node: u32,
    #[command(flatten)]
    target: Target,
}

pub async fn run(args: &Args) -> Result<(), Failure> {
    args.target.ask(&Request::post("/elect", &json!({ "node_idx": args.node }))).await?;
    print(&format!("node {} leads", args.node))
}
