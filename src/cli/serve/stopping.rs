//! What asks a node to end: the first signal, or stdin closed where somebody asked for that.

use std::sync::Arc;

use super::orders;
use crate::cli::signals::Signals;
use crate::driver::Wall;

/// Added to a signal's number, as shells do.
const SIGNAL_BASE: i32 = 128;

/// Completes when the node should end. From the first signal on, a second one ends the process at once: somebody has
/// waited for long enough. Stdin is read only for whoever gives orders there: what they change is given.
pub async fn asked_to_stop(mut signals: Signals, orders: Option<Arc<Wall>>) {
    let told = async {
        match orders {
            Some(wall) => orders::obey(tokio::io::stdin(), &wall).await,
            None => std::future::pending().await,
        }
    };
    let number = tokio::select! {
        number = signals.next() => number,
        () = told => 0,
    };
    tracing::info!(signal = number, "stopping");
    tokio::spawn(async move {
        let number = signals.next().await;
        tracing::warn!(signal = number, "ending at once");
        std::process::exit(SIGNAL_BASE + number);
    });
}
