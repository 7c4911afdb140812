//! `eldest check`: reads settings and topology as `serve` does, reports all mistakes, and starts nothing.

use std::fmt::Write;

use clap::Parser;
use serde_json::{Value, json};

use super::exit::Failure;
use super::output::Output;
use super::sources::SourceArgs;
use super::table::Table;
use crate::config::{Config, Loaded, MemberSettings};
use crate::protocol::Mode;

#[derive(Debug, Parser)]
#[command(after_help = "\
Example:
  eldest check --topology topology.json --config eldest.toml --node 2

Exits with 0 if a node would start with these settings, with 2 if there are mistakes. With --json, stderr then has one
object, which lists them under \"mistakes\".")]
pub struct CheckArgs {
    #[command(flatten)]
    sources: SourceArgs,
    #[command(flatten)]
    output: Output,
}

pub fn run(args: &CheckArgs) -> Result<(), Failure> {
    let loaded = crate::config::load(args.sources.sources()).map_err(Failure::Config)?;
    args.output.show(&json(&loaded), |_| summary(&loaded))
}

/// `tolerates` is the number of nodes that may fail.
fn json(Loaded { config, remarks }: &Loaded) -> Value {
    let timing = &config.timing;
    let member = |member: &MemberSettings| json!({ "id": member.id.0, "name": member.name, "address": member.address.to_string() });
    let members: Vec<Value> = config.members.iter().map(member).collect();
    json!({
        "cluster": config.cluster_name,
        "mode": config.mode.name(),
        "node": config.me.0,
        "listen": config.listen.to_string(),
        "data": config.data.display().to_string(),
        "tolerates": tolerated(config),
        "heartbeat_ms": timing.heartbeat.0 / 1_000,
        "dead_after_ms": timing.dead_after.0 / 1_000,
        "poll_ms": (config.mode == Mode::Available).then_some(timing.poll.0 / 1_000),
        "lease_ms": timing.lease.0 / 1_000,
        "drift_percent": timing.drift_percent,
        "cluster_secret": config.secret.is_some(),
        "admin_token": config.admin_token.is_some(),
        "anonymous": config.anonymous.said(),
        "digest": format!("{:016x}", config.digest()),
        "members": members,
        "remarks": remarks.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

/// The number of nodes that may fail.
fn tolerated(config: &Config) -> usize {
    let nodes = config.members.len();
    match config.mode {
        Mode::Safe => nodes - (nodes / 2 + 1),
        Mode::Available => nodes - 1,
    }
}

fn summary(Loaded { config, remarks }: &Loaded) -> String {
    let mut text = format!("no mistakes\n\n{}\n{}", facts(config), members(config));
    for remark in remarks {
        // Writing into a string never fails.
        let _ = write!(text, "\nremark: {remark}");
    }
    text
}

fn facts(config: &Config) -> Table {
    let timing = &config.timing;
    let mut table = Table::default();
    let mut fact = |name: &str, value: String| table.row([name.to_string(), value]);
    fact("cluster", format!("{} ({})", config.cluster_name, config.mode.name()));
    fact("this node", config.me.0.to_string());
    fact("listen", config.listen.to_string());
    fact("data", config.data.display().to_string());
    fact("tolerates", goes_on(config));
    fact("heartbeat", format!("{} ms", timing.heartbeat.0 / 1_000));
    fact("dead after", format!("{} ms", timing.dead_after.0 / 1_000));
    if config.mode == Mode::Available {
        fact("poll", format!("{} ms", timing.poll.0 / 1_000));
    }
    fact("lease", format!("{} ms, {} % drift", timing.lease.0 / 1_000, timing.drift_percent));
    fact("cluster secret", if config.secret.is_some() { "yes" } else { "no" }.to_string());
    fact("admin token", if config.admin_token.is_some() { "yes" } else { "no" }.to_string());
    fact("anonymous", config.anonymous.said());
    fact("digest", format!("{:016x} (the same on every node)", config.digest()));
    table
}

/// A sentence about how many nodes must be left for the cluster to go on.
fn goes_on(config: &Config) -> String {
    let nodes = config.members.len();
    match config.mode {
        Mode::Safe => {
            let may_fail = tolerated(config);
            format!("{} of {nodes} nodes must be up, so {may_fail} may fail", nodes - may_fail)
        }
        Mode::Available => format!("every side of a split stays available, even 1 of {nodes} nodes"),
    }
}

fn members(config: &Config) -> Table {
    let mut table = Table::new(["", "ID", "NAME", "ADDRESS"]);
    for member in &config.members {
        let own = if member.id == config.me { "*" } else { "" };
        table.row([own.into(), member.id.0.to_string(), member.name.clone(), member.address.to_string()]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Flags, Sources, load};

    #[test]
    fn scripts_read_the_settings() {
        let topology = concat!(env!("CARGO_MANIFEST_DIR"), "/topology.example.json").into();
        let flags = Flags { node: Some(1), insecure: Some(true), ..Flags::default() };
        let loaded = load(Sources { topology, config: None, env: [], flags }).expect("no mistakes");
        let said = json(&loaded);
        let names: Vec<&String> = said.as_object().expect("an object").keys().collect();
        let expected = "admin_token anonymous cluster cluster_secret data dead_after_ms digest drift_percent heartbeat_ms \
            lease_ms listen members mode node poll_ms remarks tolerates";
        assert_eq!(names, expected.split_whitespace().collect::<Vec<_>>());
        assert_eq!(
            (&said["node"], &said["tolerates"], &said["poll_ms"]),
            (&json!(1), &json!(1), &Value::Null)
        );
        assert_eq!(said["digest"], format!("{:016x}", loaded.config.digest()));
        assert_eq!(said["members"][0]["id"], 1);
        assert!(summary(&loaded).contains("2 of 3 nodes must be up, so 1 may fail"), "{}", summary(&loaded));
    }
}
