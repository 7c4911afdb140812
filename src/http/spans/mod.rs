//! Spans show where a call spent its time, for a collector that speaks OTLP: each node that a call passes adds one span to its trace.
//!
//! ```text
//!   caller ── traceparent ──► follower ── traceparent, of the follower's span ──► leader
//!                                 └──────── spans ────────► collector ◄──────────────┘
//! ```
//!
//! `context` has what travels with a call, `otlp` sends spans to the collector. A call never waits for this: spans that do not fit into
//! the queue are lost, and counted.

mod context;
mod otlp;
mod span;

pub use context::{TRACEPARENT, TraceContext};
pub use otlp::Exporter;
pub use span::{Span, Spans};
