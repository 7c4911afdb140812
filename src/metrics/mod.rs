//! The counters, and the text in which Prometheus reads them. The counters do not know the text, and the text counts nothing.
//!
//! - `instrument`: numbers that any thread counts without a lock.
//! - `page`: families of samples in the text format, with every rule of its escaping.
//! - `process`: what the system reports about this process.

mod instrument;
mod page;
mod process;

pub use instrument::{Counter, Histogram};
pub use page::{CONTENT_TYPE, MetricsPage, SampleKind};
pub use process::Process;
