//! `eldest serve`: the composition root. It puts a node together. Nothing else of the program binds a port, starts a
//! runtime or reads the environment.
//!
//! ```text
//!  arguments ─► config ─► listener bound ─► driver started ─► listening: ready
//!  signal ────► hand over, give the lease up ─► listener closed, calls answered ─► exit 0
//!  a part that ends by itself ────────────────────────────────────────────────► exit 70
//! ```
//!
//! The port is bound first, so that a second node on the same port fails before it touches the data. The port refuses
//! calls until the node runs, so that other nodes see at once that no node is running there.

mod audit;
pub mod error;
mod files;
mod listen;
mod logging;
mod notify;
mod orders;
mod renewal;
mod run;
mod setup;
mod space;

use clap::Parser;

use super::exit::Failure;
use super::sources::SourceArgs;
use crate::driver::DiskWords;

/// For calls of peers that are long, encrypted, or of callers that are not known yet: one thread serves them while the other one checks
/// the contents of such a call. The loop's thread serves the others (`http/server/sort.rs`).
const PEER_WORKERS: usize = 2;

/// A node is limited by its disk and its loop. The rest is parsing, and four threads parse more than one loop can
/// take.
const WORKERS_MAX: usize = 4;

#[derive(Debug, Parser)]
#[command(after_help = "\
Example:
  eldest serve --topology topology.json --node 2 --data /var/lib/eldest

Every setting of config/default.toml can also be an environment variable: ELDEST_TIMING__LEASE_MS=500. ELDEST_LOG filters
the log as RUST_LOG does for other programs: ELDEST_LOG=warn,eldest::driver=debug.
On SIGTERM or Ctrl-C the node hands over leadership and answers pending calls; on a second one it exits at once.")]
pub struct ServeArgs {
    #[command(flatten)]
    sources: SourceArgs,
    /// Accept a data directory that was copied or restored; the original must never start again
    #[arg(long)]
    adopt_copy: bool,
    /// Let a disk that may have forgotten writes vote again, when no majority is left to admit it; forgotten
    /// writes may be lost
    #[arg(long, conflicts_with = "adopt_copy")]
    trust_disk: bool,
    /// Exit when stdin closes, for programs that start nodes
    #[arg(long, hide = true)]
    exit_with_stdin: bool,
}

pub fn run(args: &ServeArgs) -> Result<(), Failure> {
    let loaded = crate::config::load(args.sources.sources()).map_err(Failure::Config)?;
    logging::install(&loaded.config.log)?;
    for remark in &loaded.remarks {
        tracing::warn!("{remark}");
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let clients = runtime("eldest-http", cores.min(WORKERS_MAX))?;
    let peers = runtime("eldest-peers", PEER_WORKERS)?;
    let words = DiskWords { adopt_copy: args.adopt_copy, trust_disk: args.trust_disk };
    let running = run::run(loaded.config, peers.handle().clone(), words, args.exit_with_stdin);
    let outcome = clients.block_on(running);
    // A thread that waits for stdin would never end.
    clients.shutdown_background();
    peers.shutdown_background();
    Ok(outcome?)
}

fn runtime(name: &str, workers: usize) -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .thread_name(name)
        .enable_all()
        .build()
        .map_err(Failure::NoRuntime)
}
