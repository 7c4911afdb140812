//! `eldest members`: shows the members of the cluster, and changes them one node at a time.

use std::time::{Duration, Instant};

use clap::{Parser, Subcommand};
use serde::Deserialize;
use serde_json::{Value, json};

use super::client::Target;
use super::exit::Failure;
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

A node that is added is started first, with a topology file that names it and the others: an address where it does not answer is
refused without --force. One that is removed may be gone for good already; the others call one that was moved at its new address
from then on.

One change at a time: the next is taken once the one before is on a majority of the disks. A node that is added learns what the
cluster has before it votes. A new disk under an old id is no change: start it, and the leader lets it in.")]
pub struct MembersArgs {
    #[command(subcommand)]
    change: Change,
}

#[derive(Debug, Subcommand)]
enum Change {
    /// Show who belongs to the cluster, as one node knows it
    List {
        #[command(flatten)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// Add a node
    Add {
        /// Its id, which no node of the cluster has
        id: u32,
        /// Where the others call it, host:port
        address: String,
        /// Its name, for people (node-ID unless told)
        #[arg(long)]
        name: Option<String>,
        /// Wait until it votes
        #[arg(long)]
        wait: bool,
        /// Add it whatever answers at that address
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// Remove a node; one that leads hands over first
    Remove {
        id: u32,
        #[command(flatten)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// Tell the cluster where a node is now
    Move {
        id: u32,
        /// Where the others call it from now on, host:port
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
            output.done(&said, || {
                format!("node {id} is added; it votes once it has learnt what the cluster has")
            })
        }
        Change::Remove { id, output, target } => {
            let said = post(target, &json!({"remove": id})).await?;
            output.done(&said, || format!("node {id} is removed; stop it, and do not start it again"))
        }
        Change::Move { id, address, output, target } => {
            let said = post(target, &json!({"move": {"id": id, "address": address}})).await?;
            output.done(&said, || format!("node {id} is called at {address} from now on"))
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
        let votes = if member.votes { "yes" } else { "not yet: it learns" };
        table.row([member.id.to_string(), member.name, member.url, votes.to_string()]);
    }
    let head = match listed.cluster_id {
        Some(id) => format!("cluster {id}"),
        None => "by the topology file".to_string(),
    };
    format!("{head}\n{table}")
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
            super::out::note(&format!("node {id} has yet to learn what the cluster has: is it running?"));
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}
