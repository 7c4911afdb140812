//! `eldest members`: shows the members of the cluster, and changes them one node at a time.

use std::time::{Duration, Instant};

use clap::{Parser, Subcommand};
use serde::Deserialize;
use serde_json::{Value, json};

use super::client::Target;
use super::exit::Failure;
use super::leadership::id_of;
use super::output::Output;
use super::table::Table;
use crate::client::{Answer, Request};

/// The interval at which `--wait` looks.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

#[derive(Debug, Parser)]
#[command(after_help = "\
Examples:
  eldest members list
  eldest members add 4 10.0.0.4:9000 --wait
  eldest members remove 3
  eldest members move 2 10.0.0.9:9000

Start a node before adding it, with a topology file that names it and the others: an address where it does not answer is
refused unless --force is given. A removed node may already be gone; after a move, the others call the node at its new
address.

One change at a time: the next is accepted after the previous one is on a majority of the disks. An added node copies the
state before it votes. A new disk under an old id is not a change: start the node, and the leader admits it.")]
pub struct MembersArgs {
    #[command(subcommand)]
    change: Change,
}

#[derive(Debug, Subcommand)]
enum Change {
    /// List the members of the cluster, as one node knows them
    #[command(after_help = "Example:\n  eldest members list")]
    #[command(alias = "ls")]
    List {
        #[command(flatten)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// Add a node
    #[command(after_help = "Example:\n  eldest members add 4 10.0.0.4:9000 --wait")]
    Add {
        /// Its id, which no other node may have
        id: u32,
        /// Its address for the other nodes, host:port
        address: String,
        /// Its display name [default: node-ID]
        #[arg(long)]
        name: Option<String>,
        /// Wait until it votes
        #[arg(long)]
        wait: bool,
        /// Add it even if it does not answer at that address
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// Remove a node; a leader hands over first
    #[command(after_help = "Example:\n  eldest members remove node-3")]
    #[command(aliases = ["rm", "delete"])]
    Remove {
        /// Its id or name
        node: String,
        #[command(flatten)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// Change the address of a node
    #[command(after_help = "Example:\n  eldest members move node-2 10.0.0.9:9000")]
    Move {
        /// Its id or name
        node: String,
        /// Its new address for the other nodes, host:port
        address: String,
        #[command(flatten)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
}

#[derive(Debug, Deserialize)]
struct Listed {
    cluster_id: Option<String>,
    members: Vec<Member>,
}

#[derive(Debug, Deserialize)]
struct Member {
    id: u32,
    name: String,
    url: String,
    votes: bool,
}

pub async fn run(args: &MembersArgs) -> Result<(), Failure> {
    match &args.change {
        Change::List { output, target } => list(target, output).await,
        Change::Add { id, address, name, wait, force, output, target } => {
            let name = name.clone().unwrap_or_else(|| format!("node-{id}"));
            let mut add = json!({"id": id, "name": name, "address": address});
            if *force {
                add["force"] = json!(true);
            }
            let said = post(target, &json!({"add": add})).await?;
            if *wait {
                wait_for_vote(target, *id).await?;
                return output.done(&said, || format!("node {id} votes"));
            }
            output.done(&said, || format!("node {id} is added; it votes after it has caught up"))
        }
        Change::Remove { node, output, target } => {
            let id = id_of(target, node).await?;
            let said = post(target, &json!({"remove": id})).await?;
            let listed = members(target).await.ok().and_then(|answer| answer.read::<Listed>().ok());
            let left = listed.map(|listed| voters_left(&listed)).unwrap_or_default();
            output.done(&said, || format!("node {id} is removed; stop it, and do not start it again{left}"))
        }
        Change::Move { node, address, output, target } => {
            let id = id_of(target, node).await?;
            let said = post(target, &json!({"move": {"id": id, "address": address}})).await?;
            output.done(&said, || format!("node {id} is now called at {address}"))
        }
    }
}

async fn post(target: &Target, change: &Value) -> Result<Value, Failure> {
    target.ask(&Request::post("/v1/members", change)).await
}

async fn members(target: &Target) -> Result<Answer, Failure> {
    Ok(target.call(&Request::get("/v1/members")).await?.taken()?)
}

async fn list(target: &Target, output: &Output) -> Result<(), Failure> {
    let answer = members(target).await?;
    let listed: Listed = answer.read()?;
    output.show(&answer.read()?, |_| table(listed))
}

fn table(listed: Listed) -> String {
    let mut table = Table::new(["ID", "NAME", "URL", "VOTES"]);
    for member in listed.members {
        let votes = if member.votes { "yes" } else { "not yet: catching up" };
        table.row([member.id.to_string(), member.name, member.url, votes.to_string()]);
    }
    let head = match listed.cluster_id {
        Some(id) => format!("cluster {id}"),
        None => "from the topology file".to_string(),
    };
    format!("{head}\n{table}")
}

/// Says how many nodes may fail from now on.
fn voters_left(listed: &Listed) -> String {
    let votes = listed.members.iter().filter(|member| member.votes).count();
    match (votes, votes.saturating_sub(1) / 2) {
        (0, _) => String::new(),
        (1, _) => "; 1 node is left, and it must not fail".to_string(),
        (votes, 0) => format!("; {votes} nodes are left, and none may fail"),
        (votes, most) => format!("; {votes} nodes are left, and {most} may fail"),
    }
}

async fn wait_for_vote(target: &Target, id: u32) -> Result<(), Failure> {
    let began = Instant::now();
    let mut told = false;
    loop {
        let listed: Listed = members(target).await?.read()?;
        if listed.members.iter().any(|member| member.id == id && member.votes) {
            return Ok(());
        }
        if !told && began.elapsed() > Duration::from_secs(2) {
            told = true;
            super::out::note(&format!("node {id} has not caught up yet: is it running?"));
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}
