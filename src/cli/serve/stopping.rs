//! What asks a node to end: the first signal, or stdin closed where somebody asked for that.

use std::io;

use tokio::io::AsyncReadExt;

use crate::cli::signals::Signals;

/// Added to a signal's number, as shells do.
const SIGNAL_BASE: i32 = 128;

/// Completes when the node should end. From the first signal on, a second one ends the process at once: somebody has
/// waited for long enough.
pub async fn asked_to_stop(mut signals: Signals, exit_with_stdin: bool) {
    let number = tokio::select! {
        number = signals.next() => number,
        () = stdin_closed(), if exit_with_stdin => 0,
    };
    tracing::info!(signal = number, "stopping");
    tokio::spawn(async move {
        let number = signals.next().await;
        tracing::warn!(signal = number, "ending at once");
        std::process::exit(SIGNAL_BASE + number);
    });
}

/// Whatever is sent is not for the node.
async fn stdin_closed() {
    let mut stdin = tokio::io::stdin();
    let mut ignored = [0; 256];
    loop {
        match stdin.read(&mut ignored).await {
            Ok(0) => return,
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return,
            _ => {}
        }
    }
}
