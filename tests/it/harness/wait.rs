//! Waiting for a condition.

use std::time::{Duration, Instant};

/// Long after anything that works has happened: it only makes a test fail, and is no measure.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// Short compared with every timeout of a cluster, long compared with the work of one look.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// Looks repeatedly until there is a result; fails the test when the deadline comes first.
pub async fn wait_for<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    watch_for(what, async || look().await.ok_or_else(|| "nothing".to_string())).await
}

/// The same; each look that finds nothing returns what it saw instead, and the failure shows the last one.
pub async fn watch_for<T>(what: &str, mut look: impl AsyncFnMut() -> Result<T, String>) -> T {
    let began = Instant::now();
    loop {
        match look().await {
            Ok(found) => return found,
            Err(seen) if began.elapsed() >= DEADLINE => panic!("waited in vain: {what}; last seen: {seen}"),
            Err(_) => tokio::time::sleep(BETWEEN_LOOKS).await,
        }
    }
}
