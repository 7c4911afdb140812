//! The span of one node for one call, and the bounded queue to the collector.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::mpsc;

use super::context::TraceContext;
use crate::metrics::Counter;

/// Some seconds of a busy node, in a few megabytes.
/// Beyond it spans are lost and counted: a collector that hangs must not slow a call.
const WAITING_MOST: usize = 8192;

/// The work of one node for one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub context: TraceContext,
    pub method: String,
    /// The first word of the path: a name for all calls of its kind.
    pub route: &'static str,
    pub path: String,
    pub status: u16,
    pub request_id: String,
    pub began: SystemTime,
    pub took: Duration,
}

/// The queue to the exporter, if there is one.
#[derive(Clone, Debug, Default)]
pub struct Spans {
    to: Option<mpsc::Sender<Span>>,
    lost: Arc<Counter>,
}

impl Spans {
    /// Creates the queue, and the receiver for the exporter.
    pub fn new() -> (Spans, mpsc::Receiver<Span>) {
        let (to, from) = mpsc::channel(WAITING_MOST);
        (Spans { to: Some(to), lost: Arc::default() }, from)
    }

    pub fn are_wanted(&self) -> bool {
        self.to.is_some()
    }

    pub fn add(&self, span: Span) {
        if let Some(to) = &self.to
            && to.try_send(span).is_err()
        {
            self.lose(1);
        }
    }

    pub fn lose(&self, count: u64) {
        self.lost.add(count);
    }

    /// The number of spans that did not reach the collector.
    pub fn lost(&self) -> u64 {
        self.lost.get()
    }
}
