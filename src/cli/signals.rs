//! Ctrl-C and SIGTERM as a stream: the first asks for an orderly end, the second for an immediate one. Commands that
//! have something to undo or put in order also treat a closed terminal as such a signal.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

#[derive(Debug)]
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// Present only if SIGHUP is listened to.
    hangup: Option<Signal>,
}

impl Signals {
    pub fn listen() -> io::Result<Signals> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: None,
        })
    }

    /// Also listens to the end of the terminal, or of the session on another machine, unless `nohup` started this
    /// process.
    pub fn with_hangup() -> io::Result<Signals> {
        let hangup =
            if is_ignored(SignalKind::hangup()) { None } else { Some(signal(SignalKind::hangup())?) };
        Ok(Signals { hangup, ..Signals::listen()? })
    }

    /// The number of the next signal: 2, 15 or 1.
    pub async fn next(&mut self) -> i32 {
        tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt().as_raw_value(),
            _ = self.terminate.recv() => SignalKind::terminate().as_raw_value(),
            _ = gone(&mut self.hangup) => SignalKind::hangup().as_raw_value(),
        }
    }
}

async fn gone(hangup: &mut Option<Signal>) {
    match hangup {
        Some(hangup) => {
            hangup.recv().await;
        }
        None => std::future::pending().await,
    }
}

/// Whether the process was started with this signal ignored. If that cannot be read, no signal counts as ignored.
fn is_ignored(kind: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    ignored >> (kind.as_raw_value() - 1) & 1 == 1
}
