//! Waiting for a condition.

use std::time::{Duration, Instant};

/// Long after anything that works has happened: to fail by, never to measure by.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// Short against every time-out of a cluster, long against the work of one look.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// Looks again and again until there is something; fails the test when the deadline comes first.
pub async fn wait_for<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(began.elapsed() < DEADLINE, "waited {DEADLINE:?} in vain: {what}");
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}
