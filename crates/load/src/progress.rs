//! A line on the terminal that shows the progress of the run, and the interruption of a run.

use std::io::{IsTerminal, Write};
use std::time::Duration;

/// The interval of updates.
pub const EVERY: Duration = Duration::from_secs(1);

/// Returns to the start of the line, and clears it.
const CLEAR: &str = "\r\x1b[K";

/// The progress line. It is shown only on a terminal.
#[derive(Debug)]
pub struct Progress {
    watched: bool,
}

impl Progress {
    pub fn on_stderr() -> Progress {
        Progress { watched: std::io::stderr().is_terminal() }
    }

    /// Shows the line. An error in showing progress does not stop the run.
    pub fn show(&self, line: impl FnOnce() -> String) {
        if self.watched {
            let _ = write!(std::io::stderr(), "{CLEAR}{}", line());
        }
    }

    pub fn clear(&self) {
        self.show(String::new);
    }
}

/// Returns when the user interrupts the run. The result so far is then printed.
pub async fn interrupted() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending().await
    }
}
