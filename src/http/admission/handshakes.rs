//! Counts failed handshakes, and logs them from time to time.

use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::metrics::Counter;

/// The interval between log lines on failed handshakes: any client can cause them.
const TOLD_EVERY: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub struct FailedHandshakes {
    pub count: Counter,
    /// The time of the last log line.
    told: Mutex<Option<Instant>>,
}

impl FailedHandshakes {
    pub fn note(&self, from: SocketAddr, why: &str) {
        self.count.add(1);
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.is_none_or(|told| told.elapsed() >= TOLD_EVERY) {
            *told = Some(Instant::now());
            tracing::warn!(%from, why, failed_so_far = self.count.get(), "a TLS handshake failed");
        }
    }
}
