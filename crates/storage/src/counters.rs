//! Counters of the writer's work, for metrics.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The numbers are independent: no order between them is promised.
#[derive(Debug, Default)]
pub struct Counters {
    syncs: AtomicU64,
    bytes: AtomicU64,
    last_sync_us: AtomicU64,
}

/// The counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Syncs of the log.
    pub syncs: u64,
    /// Bytes written to the log.
    pub bytes: u64,
    /// The duration of the last sync.
    pub last_sync_us: u64,
}

impl Counters {
    pub fn wrote(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub fn synced(&self, took: Duration) {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        self.last_sync_us.store(took.as_micros() as u64, Ordering::Relaxed);
    }

    pub fn now(&self) -> Counted {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counted { syncs: read(&self.syncs), bytes: read(&self.bytes), last_sync_us: read(&self.last_sync_us) }
    }
}
