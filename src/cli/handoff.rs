//! `eldest handoff`: the leader hands leadership to its best heir.

use clap::Parser;
use serde_json::json;

use super::client::Target;
use super::exit::Failure;
use super::output::Output;
use crate::client::Request;

#[derive(Debug, Parser)]
#[command(after_help = "\
Example:
  eldest handoff

For a leader's machine that is about to be worked on. `eldest elect N` names the next leader.")]
pub struct HandoffArgs {
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

pub async fn run(args: &HandoffArgs) -> Result<(), Failure> {
    let answer = args.target.ask(&Request::post("/handoff", &json!({}))).await?;
    args.output.done(&answer, || match answer["leader"].as_u64() {
        Some(leader) => format!("node {leader} leads"),
        None => "handed over; `eldest status` shows to whom".to_string(),
    })
}
