//! Whether a node that owes an answer still lives: one whose machine stands still takes calls and answers none, and would be waited for as
//! long as an attempt may take, while the cluster has long had another leader.

use std::time::Duration;

use reqwest::{Client, Url};
use tokio::time::{sleep, timeout};

/// Longer than a write takes on a good day, and about as long as the others take to elect another leader.
const PATIENCE: Duration = Duration::from_millis(500);

/// Whether it lives it says at once, however much it has to do: places and threads are kept for that.
const PROBE_MAX: Duration = Duration::from_millis(500);

/// Ends once it does not even say that it lives.
pub async fn falls_silent(http: &Client, url: &Url) {
    let Ok(probe) = url.join("/livez") else { return std::future::pending().await };
    loop {
        sleep(PATIENCE).await;
        if !matches!(timeout(PROBE_MAX, http.get(probe.clone()).send()).await, Ok(Ok(_))) {
            return;
        }
    }
}
