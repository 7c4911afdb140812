//! What is counted, and how Prometheus reads it. Whoever counts names no text, and whoever writes the text counts nothing.
//!
//! - `instrument`: numbers that any thread counts up without a lock.
//! - `page`: families of samples in the text format, with every rule of its escaping.
//! - `process`: what the system says of this process.

mod instrument;
mod page;
mod process;

pub use instrument::{Counter, Histogram};
pub use page::{CONTENT_TYPE, MetricsPage, SampleKind};
pub use process::Process;
