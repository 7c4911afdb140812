//! `eldest service down|up`: holds client writes back on the whole cluster, and lets them through again.

use std::time::Duration;

use clap::{Parser, Subcommand};
use serde_json::{Map, Value, json};

use super::client::Target;
use super::exit::Failure;
use super::output::Output;
use super::span::{millis, span};
use crate::client::Request;

#[derive(Debug, Parser)]
#[command(after_help = "\
Example:
  eldest service down --ttl 1m --reason 'moving the database'
  eldest service up")]
pub struct ServiceArgs {
    #[command(subcommand)]
    change: Change,
}

#[derive(Debug, Subcommand)]
enum Change {
    /// Refuse client writes (503 service_down) until `service up` or the end of the ttl
    #[command(after_help = "Example:\n  eldest service down --ttl 1m --reason 'moving the database'")]
    Down {
        /// Accept client writes again after this time
        #[arg(long, value_name = "SPAN", value_parser = span)]
        ttl: Option<Duration>,
        #[arg(long, value_name = "MS", hide = true, conflicts_with = "ttl")]
        ttl_ms: Option<u64>,
        /// Shown to clients that are refused
        #[arg(long)]
        reason: Option<String>,
        #[command(flatten)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// Accept client writes again
    #[command(after_help = "Example:\n  eldest service up")]
    Up {
        #[command(flatten)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
}

pub async fn run(args: &ServiceArgs) -> Result<(), Failure> {
    match &args.change {
        Change::Down { ttl, ttl_ms, reason, output, target } => {
            let hold = hold(ttl_ms.or(ttl.map(millis)), reason.as_deref());
            let said = target.ask(&Request::post("/service_down", &hold)).await?;
            output.done(&said, || "client writes are now refused".to_string())
        }
        Change::Up { output, target } => {
            let said = target.ask(&Request::post("/service_up", &json!({}))).await?;
            output.done(&said, || "client writes are accepted again".to_string())
        }
    }
}

fn hold(ttl_ms: Option<u64>, reason: Option<&str>) -> Value {
    let mut body = Map::new();
    body.extend(ttl_ms.map(|ttl| ("ttl_ms".to_string(), json!(ttl))));
    body.extend(reason.map(|reason| ("reason".to_string(), json!(reason))));
    Value::Object(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_is_not_sent() {
        assert_eq!(hold(None, None).to_string(), "{}");
        assert_eq!(hold(Some(5), Some("why")).to_string(), r#"{"reason":"why","ttl_ms":5}"#);
    }
}
