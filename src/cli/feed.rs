//! `eldest feed`: prints the events of the cluster, one line of JSON for each, without an end.
//!
//! If the node that serves the feed fails, the next node goes on from the same position: no event is missed, and none
//! comes twice.

use std::time::Duration;

use clap::Parser;
use serde::Deserialize;
use tokio::time::sleep;

use super::client::Target;
use super::client::next;
use super::exit::Failure;
use super::out::{Out, note};
use crate::client::{CallError, Caller, Lines, encoded};

/// The pause between two tries. An election takes about as long.
const TRY_AGAIN: Duration = Duration::from_millis(500);

#[derive(Debug, Parser)]
#[command(after_help = "\
Example:
  eldest feed
  eldest feed --kinds new_leader,service_down,service_up
  eldest feed --kinds change --prefix app/ --since 120
  eldest feed --url http://10.0.0.1:9000,http://10.0.0.2:9000 | jq .key")]
pub struct FeedArgs {
    /// Show only these kinds, separated by commas: change, new_leader, new_state, election_started,
    /// election_completed,
    /// role_acquired, role_lost, process_registered, process_changed, process_removed, conflict, service_down,
    /// service_up, members_changed, merge_called_off,
    /// token_created, token_revoked
    #[arg(long)]
    kinds: Option<String>,
    /// Show only keys and names with this prefix
    #[arg(long)]
    prefix: Option<String>,
    /// Start after the event with this id, instead of now
    #[arg(long)]
    since: Option<String>,
    /// Exit after this many events
    #[arg(long)]
    count: Option<u64>,
    /// Also print bookmarks: the feed's position while there are no events
    #[arg(long)]
    bookmarks: bool,
    #[command(flatten)]
    target: Target,
}

/// The members that every line has.
#[derive(Debug, Default, Deserialize)]
struct Told {
    id: Option<String>,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    detail: String,
}

struct Reading<'a> {
    args: &'a FeedArgs,
    caller: Caller,
    since: Option<String>,
    left: u64,
}

pub async fn run(args: &FeedArgs) -> Result<(), Failure> {
    let (caller, since, left) = (args.target.caller()?, args.since.clone(), args.count.unwrap_or(u64::MAX));
    let mut reading = Reading { args, caller, since, left };
    let mut urls = args.target.url.clone();
    // At the start, an unreachable cluster is a failure. Later it is an outage, which will end.
    let mut lines = reading.caller.open(&urls, &reading.path()).await?;
    while reading.left > 0 {
        reading.read(&mut lines).await?;
        if reading.left > 0 {
            let last = urls.iter().position(|url| url == lines.url()).unwrap_or_default();
            urls.rotate_left((last + 1) % args.target.url.len());
            lines = reading.again(&urls).await?;
        }
    }
    Ok(())
}

impl Reading<'_> {
    fn path(&self) -> String {
        let given = [("kinds", &self.args.kinds), ("prefix", &self.args.prefix), ("since", &self.since)];
        let mut path = "/v1/feed?format=ndjson".to_string();
        for (name, value) in given {
            path.extend(value.iter().map(|value| format!("&{name}={}", encoded(value))));
        }
        path
    }

    /// Prints lines until the answer ends.
    async fn read(&mut self, lines: &mut Lines) -> Result<(), Failure> {
        let mut out = Out::new();
        while self.left > 0
            && let Some(line) = next(lines).await?
        {
            let told: Told = serde_json::from_str(&line).unwrap_or_default();
            match told.kind.as_str() {
                "error" => note(&format!("{}: {}", lines.url(), told.detail)),
                "bookmark" if !self.args.bookmarks => {}
                _ => {
                    out.line(&line)?;
                    out.flush()?;
                    self.left -= 1;
                }
            }
            self.since = told.id.or(self.since.take());
        }
        Ok(())
    }

    /// Retries until a node continues the feed, or says that it never will.
    async fn again(&self, urls: &[String]) -> Result<Lines, Failure> {
        let mut noted = false;
        loop {
            sleep(TRY_AGAIN).await;
            let error = match self.caller.open(urls, &self.path()).await {
                Ok(lines) => return Ok(lines),
                Err(error) => error,
            };
            match &error {
                CallError::Refused(problem) if !matches!(problem.status, 429 | 503) => {
                    return Err(error.into());
                }
                CallError::NotAnAddress { .. } => return Err(error.into()),
                _ if noted => {}
                error => note(&format!("{error}; trying again")),
            }
            noted = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for() {
        let args = FeedArgs::try_parse_from("feed --kinds change --prefix a/&b --since 7.1@12.3".split(' '));
        let args = args.expect("understood");
        let caller = args.target.caller().expect("a client");
        let reading = Reading { args: &args, caller, since: args.since.clone(), left: 1 };
        assert_eq!(reading.path(), "/v1/feed?format=ndjson&kinds=change&prefix=a%2F%26b&since=7.1%4012.3");
    }
}
