//! `eldest msg`: sends a message to the present subscribers of a channel, and subscribes to channels.

use super::client::Target;
use super::client::next;
use super::exit::Failure;
use super::out::{Out, note};
use super::output::Output;
use super::value::ValueArgs;
use crate::client::{Method, Request, encoded};
use clap::{Parser, Subcommand};
use serde_json::Value;

#[derive(Debug, Parser)]
#[command(after_help = "\
Example:
  eldest msg subscribe worker:slave:7
  eldest msg publish worker:slave:7 '{\"job\": 17}'

A message reaches the current subscribers of its channel, on any node, at most once. It is not stored.")]
pub struct MsgArgs {
    #[command(subcommand)]
    order: Order,
}

#[derive(Debug, Subcommand)]
enum Order {
    /// Publish a message, and print how many subscribers received it
    #[command(
        after_help = "Examples:\n  eldest msg publish worker:slave:7 '{\"job\": 17}'\n  eldest msg publish chat --text hello"
    )]
    Publish {
        channel: String,
        #[command(flatten)]
        message: ValueArgs,
        #[command(flatten)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// Print messages, one line of JSON each, until the node stops
    #[command(after_help = "Example:\n  eldest msg subscribe worker:slave:7")]
    Subscribe {
        channel: String,
        /// Exit after this many messages
        #[arg(long)]
        count: Option<u64>,
        #[command(flatten)]
        target: Target,
    },
}

pub async fn run(args: &MsgArgs) -> Result<(), Failure> {
    match &args.order {
        Order::Publish { channel, message, output, target } => {
            let request = Request::new(Method::POST, path(channel)).body(message.read()?);
            output.show(&target.ask(&request).await?, Value::to_string)
        }
        Order::Subscribe { channel, count, target } => {
            listen(target, channel, count.unwrap_or(u64::MAX)).await
        }
    }
}

async fn listen(target: &Target, channel: &str, count: u64) -> Result<(), Failure> {
    let path = format!("{}?format=ndjson", path(channel));
    let mut lines = target.caller()?.open(&target.url, &path).await?;
    let mut out = Out::new();
    for _ in 0..count {
        let Some(line) = next(&mut lines).await? else {
            note(&format!("{} has ended; messages sent from now on are missed", lines.url()));
            break;
        };
        out.line(&line)?;
        out.flush()?;
    }
    Ok(())
}

fn path(channel: &str) -> String {
    format!("/v1/channels/{}", encoded(channel))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_s_name_may_hold_anything() {
        assert_eq!(path("worker:slave:a/b"), "/v1/channels/worker%3Aslave%3Aa%2Fb");
    }
}
