//! Giving a role back at the end: a courtesy that must not hold the end up.

use std::time::Duration;

use tokio::time::timeout;

use crate::client::{Lock, LockGuard};

/// Longer than an election, so that a role is given back even while the cluster elects; then it lapses by itself.
const RELEASE_MOST: Duration = Duration::from_secs(5);

pub struct GiveUp;

impl GiveUp {
    /// The place in the queue, and whatever may have been granted meanwhile.
    pub async fn of(lock: Lock) {
        let _ = timeout(RELEASE_MOST, lock.abandon()).await;
    }

    pub async fn lapse(guard: LockGuard) {
        let _ = timeout(RELEASE_MOST, guard.lapse()).await;
    }

    pub async fn release(guard: LockGuard) {
        let _ = timeout(RELEASE_MOST, guard.release()).await;
    }
}
