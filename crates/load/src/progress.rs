//! One line on the terminal that tells how far the run is, and the end of a run before its time.

use std::io::{IsTerminal, Write};
use std::time::Duration;

/// How often the line changes.
pub const EVERY: Duration = Duration::from_secs(1);

/// Back to the start of the line, and clear it.
const CLEAR: &str = "\r\x1b[K";

/// Says nothing unless a person is watching.
#[derive(Debug)]
pub struct Progress {
    watched: bool,
}

impl Progress {
    pub fn on_stderr() -> Progress {
        Progress { watched: std::io::stderr().is_terminal() }
    }

    /// Progress that cannot be shown is no reason to stop.
    pub fn show(&self, line: impl FnOnce() -> String) {
        if self.watched {
            let _ = write!(std::io::stderr(), "{CLEAR}{}", line());
        }
    }

    pub fn clear(&self) {
        self.show(String::new);
    }
}

/// Ends when the user interrupts the run, whose result so far is then printed.
pub async fn interrupted() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending().await
    }
}
