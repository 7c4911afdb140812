//! The nodes that are asked, and the output of the results.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;

use serde::Serialize;

use super::super::error::BenchError;
use super::super::tally::Errors;
use super::super::target::Target;
use super::client::{System, target};

/// The cluster to call.
#[derive(Clone, Debug, clap::Args)]
pub struct Cluster {
    #[arg(long)]
    pub system: System,

    /// Addresses for clients
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',', required = true)]
    pub nodes: Vec<SocketAddr>,

    /// Process ids of the nodes, in the same order
    #[arg(long, value_name = "PID", value_delimiter = ',')]
    pub pids: Vec<i32>,
}

impl Cluster {
    pub fn targets(&self) -> Arc<[Target]> {
        self.nodes.iter().copied().map(target).collect()
    }
}

/// Prints the report as one line of JSON, because scripts read it.
pub fn print(report: &impl Serialize, out: &mut impl Write) -> Result<(), BenchError> {
    let text = serde_json::to_string(report).unwrap_or_default();
    writeln!(out, "{text}").map_err(BenchError::Output)
}

/// The error of a run without any figure.
pub fn nothing(errors: &Errors) -> BenchError {
    BenchError::NothingSucceeded { code: errors.most_frequent() }
}
