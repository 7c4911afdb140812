//! Says what is wrong in a cluster, how bad it is, and which command helps, from the answers of its nodes.
//!
//! ```text
//!   eldest doctor            asks all nodes twice ─┐
//!                                                  ├─► Seen ─► judge ─► findings, the worst first
//!   GET /v1/explain/health   asks the others twice ┘
//! ```
//!
//! `judge` is a pure function: nothing here asks, and nothing has a clock.

mod clocks;
mod finding;
mod judge;
mod node;
mod seen;
#[cfg(test)]
mod tests;

pub use finding::{Finding, Severity, count, json};
pub use judge::judge;
pub use seen::{Node, NodeLook, Sample, Seen, SeenEnding, SeenMember, SeenSilence};
