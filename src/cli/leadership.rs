//! `eldest elect`, `eldest handoff` and `eldest form`: who leads, by an operator's order.

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
    /// The node to lead: its id or name
    node: String,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

pub async fn elect(args: &ElectArgs) -> Result<(), Failure> {
    let id = id_of(&args.target, &args.node).await?;
    let said = args.target.ask(&Request::post("/elect", &json!({ "node_idx": id }))).await?;
    args.output.done(&said, || format!("node {id} leads"))
}

/// The id of a node that is given by its id or its name.
pub async fn id_of(target: &Target, name: &str) -> Result<u32, Failure> {
    if let Ok(id) = name.parse() {
        return Ok(id);
    }
    let members = target.ask(&Request::get("/v1/members")).await?;
    let members = members["members"].as_array().cloned().unwrap_or_default();
    let named = |member: &&Value| member["name"] == name;
    let id = members.iter().find(named).and_then(|member| member["id"].as_u64());
    id.and_then(|id| u32::try_from(id).ok()).ok_or_else(|| Failure::NoSuchNode {
        wanted: name.to_string(),
        names: members.iter().filter_map(|member| member["name"].as_str().map(str::to_string)).collect(),
    })
}

#[derive(Debug, Parser)]
#[command(after_help = "\
Example:
  eldest handoff

Use it before maintenance of the leader's machine. `eldest elect N` chooses the next leader.")]
pub struct HandoffArgs {
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

pub async fn handoff(args: &HandoffArgs) -> Result<(), Failure> {
    let answer = args.target.ask(&Request::post("/handoff", &json!({}))).await?;
    args.output.done(&answer, || match answer["leader"].as_u64() {
        Some(leader) => format!("node {leader} leads"),
        None => "handed over; `eldest status` shows the new leader".to_string(),
    })
}

/// The text that is shown if the command was not confirmed.
const MEANING: &str = "\
A cluster forms once, automatically, when every node of the topology is up and has never been part of a cluster.
Forming it without some nodes is safe only if those nodes were never part of this cluster: if they were, their
disks may hold acknowledged writes, and a second cluster would start next to the first. They can join later, empty.";

#[derive(Debug, Parser)]
#[command(after_help = "\
Example:
  eldest form --without 3 --yes

Needed at most once, before the first write, and only if a node of the topology cannot be started.")]
pub struct FormArgs {
    /// The nodes that are missing, by id or name, separated by commas; a majority must remain
    #[arg(long, value_delimiter = ',', required = true)]
    without: Vec<String>,
    /// Confirm that the missing nodes were never part of this cluster
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

pub async fn form(args: &FormArgs) -> Result<(), Failure> {
    if !args.yes {
        return Err(Failure::NotConfirmed { what: MEANING });
    }
    let mut without = Vec::new();
    for node in &args.without {
        without.push(id_of(&args.target, node).await?);
    }
    let said = args.target.ask(&Request::post("/form", &json!({ "without": without }))).await?;
    let sentence = "the cluster is formed from the nodes that are up; `eldest status` shows the leader";
    args.output.done(&said, || sentence.to_string())
}
