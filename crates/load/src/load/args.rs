//! The options of a run under load.

use std::time::Duration;

use super::super::args::{Choice, Common, VALUE_BYTES, parse_duration, parse_span};
use super::super::workload::Level;

/// More connections would need more files than a process may usually open.
const CONNECTIONS_MAX: i64 = 5000;

/// A node accepts no more streams.
const STREAMS_MAX: i64 = 64;

/// With a larger window, more lines are in buffers on the way, and the run would measure the buffers.
const WINDOW_MAX: i64 = 1 << 20;

#[derive(Clone, Debug, clap::Args)]
pub struct LoadArgs {
    #[command(flatten)]
    pub common: Common,

    #[command(flatten)]
    pub choice: Choice,

    /// Connections, each with one request at a time
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=CONNECTIONS_MAX))]
    pub connections: u16,

    /// Streams of commands, one per line, instead of connections with one request at a time
    #[arg(long, value_name = "N", conflicts_with_all = ["connections", "read", "idempotent"], value_parser = clap::value_parser!(u16).range(1..=STREAMS_MAX))]
    pub stream: Option<u16>,

    /// Maximum of unanswered lines per stream
    #[arg(long, value_name = "LINES", default_value_t = 2048, requires = "stream", value_parser = clap::value_parser!(u32).range(1..=WINDOW_MAX))]
    pub window: u32,

    /// Size of a value in bytes, as JSON
    #[arg(long, value_name = "BYTES", default_value_t = 256, value_parser = clap::value_parser!(u32).range(VALUE_BYTES))]
    pub size: u32,

    /// Number of keys: bench/0, bench/1 and so on
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub keys: u32,

    /// Percentage of reads
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=100))]
    pub read: u8,

    /// Consistency of the reads
    #[arg(long, value_enum, default_value = "linear")]
    pub level: Level,

    /// Duration of the measurement
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_span)]
    pub duration: Duration,

    /// Time to run before the measurement
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_duration)]
    pub warmup: Duration,

    /// Timeout for an answer
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_span)]
    pub timeout: Duration,

    /// Send an Idempotency-Key with every write, and use it to retry writes with an unknown outcome
    #[arg(long)]
    pub idempotent: bool,

    /// Seed of the keys and values
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
}
