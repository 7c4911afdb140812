//! `eldest bench`: what a cluster does, in figures that anybody can make again with the same command.
//!
//! Six benchmarks share one client (`http`, `session`):
//!
//! - without a subcommand, a closed loop of reads and writes (`load`): rate and latency;
//! - `gap`: how long writes are not acknowledged while somebody else kills nodes or hands leadership over;
//! - `locks`: roles acquired, released, handed on and left to end;
//! - `expiry`: thousands of leases that end in the same second;
//! - `feed`: thousands of readers, and whether each had each of its events once;
//! - `fill`: puts a given amount of data into the cluster first.
//!
//! Client and servers often share one machine, so the client is built to cost little: one thread, prepared requests,
//! an own parser, no allocation while an operation goes well. The report says how much of a core it took all the
//! same. Nothing here knows the servers' code; it measures what a client can see.

mod args;
mod error;
mod expiry;
mod feed;
mod fill;
mod gap;
mod histogram;
mod http;
mod load;
mod locks;
mod progress;
mod report;
mod rng;
mod session;
mod status;
mod tally;
mod target;
mod tasks;
mod text;
mod workload;

#[cfg(test)]
mod server;
#[cfg(test)]
mod tests;

use std::io::Write;

pub use error::BenchError;
use progress::interrupted;

#[derive(Clone, Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    mode: Option<Mode>,

    #[command(flatten)]
    load: load::LoadArgs,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Mode {
    /// Write without end and tell each gap between acknowledgements
    Gap(gap::GapArgs),
    /// Acquire and release roles, alone and all at once
    Locks(locks::LocksArgs),
    /// Let thousands of leases end in the same second, and write meanwhile
    Expiry(expiry::ExpiryArgs),
    /// Read the feed thousands of times, and count what is missing
    Feed(feed::FeedArgs),
    /// Fill the cluster with documents, quickly
    Fill(fill::FillArgs),
}

const EXAMPLES: &str = "\
Examples:
  eldest bench --url http://127.0.0.1:9000 --connections 64 --size 256 --duration 10s
  eldest bench --read 90 --level linear --json
  eldest bench gap --over 20ms --duration 60s
  eldest bench locks --connections 64
  eldest bench fill --docs 100000";

/// The benchmark gets a thread and a runtime of its own: whatever runtime the caller has, an answer that arrives
/// wakes nobody on another core.
pub async fn run(args: Args) -> Result<(), BenchError> {
    match tokio::task::spawn_blocking(move || on_this_thread(&args)).await {
        Ok(result) => result,
        Err(ended) => match ended.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(BenchError::Ended),
        },
    }
}

fn on_this_thread(args: &Args) -> Result<(), BenchError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(BenchError::Runtime)?;
    runtime.block_on(args.run(interrupted(), &mut std::io::stdout()))
}

impl Args {
    /// Ends early, with what there is, once `stop` does.
    async fn run(&self, stop: impl Future<Output = ()>, out: &mut impl Write) -> Result<(), BenchError> {
        match &self.mode {
            None => load::run(&self.load, stop, out).await,
            Some(Mode::Gap(gap)) => gap::run(gap, stop, out).await,
            Some(Mode::Locks(locks)) => locks::run(locks, stop, out).await,
            Some(Mode::Expiry(expiry)) => expiry::run(expiry, stop, out).await,
            Some(Mode::Feed(feed)) => feed::run(feed, stop, out).await,
            Some(Mode::Fill(fill)) => fill::run(fill, stop, out).await,
        }
    }
}
