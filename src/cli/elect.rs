//! `eldest elect N`: hands leadership to one node.

use clap::Parser;
use serde_json::{Value, json};

use super::client::Target;
use super::exit::Failure;
use super::output::Output;
use crate::client::Request;

#[derive(Debug, Parser)]
#[command(after_help = "\
Example:
  eldest elect 2
  eldest elect node-2

The leader catches node 2 up, stops taking writes, and hands over in one step.")]
pub struct ElectArgs {
    /// The node that shall lead: its id, or its name
    node: String,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

pub async fn run(args: &ElectArgs) -> Result<(), Failure> {
    let id = match args.node.parse::<u32>() {
        Ok(id) => id,
        Err(_) => id_of(&args.target, &args.node).await?,
    };
    let said = args.target.ask(&Request::post("/elect", &json!({ "node_idx": id }))).await?;
    args.output.done(&said, || format!("node {id} leads"))
}

async fn id_of(target: &Target, name: &str) -> Result<u32, Failure> {
    let members = target.ask(&Request::get("/v1/members")).await?;
    let members = members["members"].as_array().cloned().unwrap_or_default();
    let named = |member: &&Value| member["name"] == name;
    let id = members.iter().find(named).and_then(|member| member["id"].as_u64());
    id.and_then(|id| u32::try_from(id).ok()).ok_or_else(|| Failure::NoSuchNode {
        wanted: name.to_string(),
        names: members.iter().filter_map(|member| member["name"].as_str().map(str::to_string)).collect(),
    })
}
