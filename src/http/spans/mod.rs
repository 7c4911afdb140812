//! Where a call spent its time, for a collector that speaks OTLP: each node that a call passes adds one span to its trace.
//!
//! ```text
//!   caller ── traceparent ──► follower ── traceparent, of the follower's span ──► leader
//!                                 └──────── spans ────────► collector ◄──────────────┘
//! ```
//!
//! `context` is what travels with a call, `otlp` is what goes to the collector. A call never waits for any of it: what finds no
//! room is lost, and counted.

mod context;
mod otlp;
mod span;

pub use context::{TRACEPARENT, TraceContext};
pub use otlp::Exporter;
pub use span::{Span, Spans};
