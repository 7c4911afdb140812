//! The behaviour of a cluster under load, in figures that anyone can reproduce with the same command.
//!
//! Seven benchmarks share one client (`http`, `session`). Two are in the product, as `eldest bench` ([`Bench`]):
//!
//! - a closed loop of reads and writes (`load`): rate and latency;
//! - `fill`: puts a given amount of data into the cluster first.
//!
//! Five are for the developers of Eldest, as `eldest-load` ([`Tool`]):
//!
//! - `gap`: how long writes are not acknowledged while a script kills nodes or hands leadership over;
//! - `locks`: roles that are acquired, released, passed to a waiter, and left to expire;
//! - `expiry`: thousands of leases that end in the same second;
//! - `feed`: thousands of readers, and whether each received each of its events once;
//! - `peers`: the same work for other systems, each in its own protocol.
//!
//! Client and servers often share one machine, so the client is built to cost little: one thread, prepared
//! requests, its own parser, and no allocation while an operation succeeds. The report still says how much of
//! a core the client used. Nothing here knows the servers' code; the benchmarks measure what a client can
//! see.

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
mod node_url;
mod peers;
mod report;
mod rng;
mod session;
mod status;
mod tally;
mod target;
mod terminal;
mod workload;

#[cfg(test)]
mod server;
#[cfg(test)]
mod tests;

use std::io::{self, Stdout, Write};

pub use args::TlsArgs;
pub use error::BenchError;
use terminal::interrupted;

/// `eldest bench`.
#[derive(Clone, Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = BENCH_EXAMPLES)]
pub struct Bench {
    #[command(subcommand)]
    mode: Option<Mode>,

    #[command(flatten)]
    load: load::LoadArgs,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Mode {
    /// Fill the cluster with documents quickly
    Fill(fill::FillArgs),
}

const BENCH_EXAMPLES: &str = "\
Examples:
  eldest bench --url http://127.0.0.1:9000 --connections 64 --size 256 --duration 10s
  eldest bench --read 90 --level linear --json
  eldest bench --stream 4
  eldest bench fill --docs 100000";

/// Load generators for developers of Eldest; `scripts/bench` runs them.
#[derive(Clone, Debug, clap::Parser)]
#[command(name = "eldest-load", version, after_help = TOOL_EXAMPLES, max_term_width = 100)]
pub struct Tool {
    #[command(subcommand)]
    generator: Generator,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Generator {
    /// Write continuously, and report each gap between acknowledgements
    Gap(gap::GapArgs),
    /// Acquire and release roles, one at a time and all at once
    Locks(locks::LocksArgs),
    /// Let thousands of leases expire in the same second while writing
    Expiry(expiry::ExpiryArgs),
    /// Read the feed thousands of times, and count missing events
    Feed(feed::FeedArgs),
    /// Run the same work on Eldest or another system; `scripts/bench-peers` compares them
    Peers(peers::PeersArgs),
}

const TOOL_EXAMPLES: &str = "\
Examples:
  eldest-load gap --over 20ms --duration 60s
  eldest-load locks --connections 64
  eldest-load expiry --leases 10000
  eldest-load feed --readers 10000";

impl Bench {
    pub fn run_here(&self) -> Result<(), BenchError> {
        on_this_thread(async |out| self.run(interrupted(), out).await)
    }

    /// Runs the benchmark. If `stop` completes first, it ends early and reports what was done.
    async fn run(&self, stop: impl Future<Output = ()>, out: &mut impl Write) -> Result<(), BenchError> {
        match &self.mode {
            None => load::run(&self.load, stop, out).await,
            Some(Mode::Fill(fill)) => fill::run(fill, stop, out).await,
        }
    }
}

impl Tool {
    pub fn run_here(&self) -> Result<(), BenchError> {
        on_this_thread(async |out| self.run(interrupted(), out).await)
    }

    /// Runs the benchmark. If `stop` completes first, it ends early.
    async fn run(&self, stop: impl Future<Output = ()>, out: &mut impl Write) -> Result<(), BenchError> {
        match &self.generator {
            Generator::Gap(gap) => gap::run(gap, stop, out).await,
            Generator::Locks(locks) => locks::run(locks, stop, out).await,
            Generator::Expiry(expiry) => expiry::run(expiry, stop, out).await,
            Generator::Feed(feed) => feed::run(feed, stop, out).await,
            Generator::Peers(peers) => peers::run(peers, stop, out).await,
        }
    }
}

/// Runs the benchmark on one thread with a separate runtime, so that an answer that arrives wakes no other
/// core.
fn on_this_thread(work: impl AsyncFnOnce(&mut Stdout) -> Result<(), BenchError>) -> Result<(), BenchError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(BenchError::Runtime)?.block_on(work(&mut io::stdout()))
}
