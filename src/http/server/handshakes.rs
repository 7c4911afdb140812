//! Handshakes that have failed are counted, and told of now and then.

use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often failed handshakes are told of: whoever can connect can cause them.
const TOLD_EVERY: Duration = Duration::from_secs(10);

/// How many there were, and when somebody was told last.
#[derive(Debug, Default)]
pub struct FailedHandshakes(Mutex<(u64, Option<Instant>)>);

impl FailedHandshakes {
    pub fn note(&self, from: SocketAddr, why: &str) {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, told) = &mut *noted;
        *count += 1;
        if told.is_none_or(|told| told.elapsed() >= TOLD_EVERY) {
            *told = Some(Instant::now());
            tracing::warn!(%from, why, failed_so_far = *count, "a TLS handshake failed");
        }
    }
}
