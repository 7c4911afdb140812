//! `eldest doctor`: looks at every node, and reports what is wrong, how bad it is, and which command helps.
//!
//! Every node is asked twice, a second apart, about itself and the other nodes. A member that shares its
//! address with another is not judged.
//!
//! `eldest healthcheck`: checks whether the node on this machine lives, for containers without curl.

mod ask;
mod text;

use std::time::Duration;

use clap::Parser;

use super::client::Target;
use super::exit::Failure;
use super::output::Output;
use super::span::span;
use super::target::TlsArgs;
use crate::client::{Caller, Request};
use crate::doctor::{self, Severity};

#[derive(Debug, Parser)]
#[command(after_help = "\
Example:
  eldest doctor
  eldest doctor --url http://10.0.0.1:9000,http://10.0.0.2:9000 --json

Exits with 12 if there are errors, with 11 if there are only warnings, and with 0 if there are only notes, or nothing. If
no node answers, it exits like every other command: with 3, or with 4 if it is refused.")]
pub struct DoctorArgs {
    #[command(flatten)]
    target: Target,
    /// Timeout for an answer of one node, up to a minute [default: 3s, and 200ms for one that the leader has given up]
    #[arg(long, value_name = "SPAN", value_parser = within)]
    within: Option<Duration>,
    #[command(flatten)]
    output: Output,
}

pub async fn run(args: &DoctorArgs) -> Result<(), Failure> {
    let seen = ask::examine(&args.target, args.within).await?;
    let findings = doctor::judge(&seen);
    args.output.show(&doctor::json(&seen, &findings), |_| text::text(&seen, &findings))?;
    let count = doctor::count(&findings);
    match findings.first().map(|worst| worst.severity) {
        Some(Severity::Error) => Err(Failure::Unwell { count }),
        Some(Severity::Warning) => Err(Failure::Warned { count }),
        Some(Severity::Note) | None => Ok(()),
    }
}

#[derive(Debug, Parser)]
#[command(after_help = "\
Example:
  eldest healthcheck

Exits with 0 if the node is alive and knows a leader, with 10 if it is alive and there is no leader, and with another
code if it does not answer. A supervisor that restarts nodes should use --alive: a restart gives no cluster its leader back.")]
pub struct HealthcheckArgs {
    /// The node's own address
    #[arg(long, env = "ELDEST_URL", default_value = "http://127.0.0.1:9000", value_parser = own_address)]
    url: String,
    /// Ask only whether the node is alive
    #[arg(long)]
    alive: bool,
    #[command(flatten)]
    tls: TlsArgs,
}

fn within(text: &str) -> Result<Duration, String> {
    let most = Duration::from_secs(60);
    span(text).and_then(|span| match (Duration::from_millis(100)..=most).contains(&span) {
        true => Ok(span),
        false => Err("give 100ms to 60s".to_string()),
    })
}

fn own_address(text: &str) -> Result<String, String> {
    match text {
        "" => Err("it is empty; give this node's own address".to_string()),
        _ if text.contains(',') => Err("give one address with --url: this node's own".to_string()),
        _ => Ok(text.to_string()),
    }
}

pub async fn healthcheck(args: &HealthcheckArgs) -> Result<(), Failure> {
    let caller = Caller::with_tls(None, &args.tls.files())?;
    let answer = caller.at(&args.url, &Request::get("/livez")).await?.taken()?;
    // Every answer of a node names the leader.
    if args.alive || answer.header("eldest-leader").is_some() { Ok(()) } else { Err(Failure::NobodyLeads) }
}
