//! Eldest and other systems, measured in one run by one generator: the same loop, the same keys and values, the same
//! counting.
//!
//! The systems differ in the protocol alone (`eldest`, `etcd`, `zookeeper`, `redis`). Each one is written here as bytes, so that the
//! cost of a client library is never measured as a server's. `client` gives them one interface:
//!
//! ```text
//! load ─┐                        ┌─ eldest     HTTP
//! handover ─ client ── op ───────┼─ etcd       HTTP/2, gRPC; HTTP, JSON
//! outage ─┘                      ├─ zookeeper  jute
//!                                └─ redis      RESP
//! ```
//!
//! Caveats: one operation at a time on a connection, as in the other benchmarks; no TLS. `scripts/bench-peers` starts
//! the servers and compares the results.

mod client;
mod cluster;
mod eldest;
mod etcd;
mod handover;
mod jute;
mod load;
mod op;
mod outage;
mod redis;
mod stream;
mod zookeeper;

#[cfg(test)]
mod tests;

use std::io::Write;

use super::error::BenchError;

#[derive(Clone, Debug, clap::Args)]
pub struct PeersArgs {
    #[command(subcommand)]
    measure: Measure,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Measure {
    /// Measure writes, reads or locks for some time
    Load(load::PeerLoadArgs),
    /// Measure the time from the release of a lock to the next grant
    Handover(handover::HandoverArgs),
    /// Measure the time from a start, or from the end of the leader, to the first acknowledged write
    Outage(outage::OutageArgs),
}

pub async fn run(
    args: &PeersArgs,
    stop: impl Future<Output = ()>,
    out: &mut impl Write,
) -> Result<(), BenchError> {
    match &args.measure {
        Measure::Load(load) => load::run(load, stop, out).await,
        Measure::Handover(handover) => handover::run(handover, stop, out).await,
        Measure::Outage(outage) => outage::run(outage, stop, out).await,
    }
}
