//! Every signal that this process can catch and pass on.

use std::io;

use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind, signal};
use tokio::sync::mpsc;

/// Signals that wait to be passed on. A person sends one at a time, and the system keeps one of each kind.
const WAITING_MAX: usize = 64;

/// The signals that end a process by default.
const ENDING: [Signal; 15] = [
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::TRAP,
    Signal::ABORT,
    Signal::USR1,
    Signal::USR2,
    Signal::ALARM,
    Signal::TERM,
    Signal::XCPU,
    Signal::XFSZ,
    Signal::VTALARM,
    Signal::PROF,
    Signal::IO,
    Signal::SYS,
];

/// The signals that do not.
const OTHERS: [Signal; 6] =
    [Signal::CONT, Signal::TSTP, Signal::TTIN, Signal::TTOU, Signal::URG, Signal::WINCH];

/// The signals that are caught. These are not among them: faults of this process itself (BUS, FPE, ILL, SEGV, PIPE),
/// and signals that cannot be caught.
#[derive(Debug)]
pub struct PassedSignals {
    caught: mpsc::Receiver<Signal>,
    children: unix::Signal,
}

impl PassedSignals {
    /// Catches signals. From here on none is lost. Must be called within a tokio runtime.
    pub fn listen() -> io::Result<PassedSignals> {
        let (tell, caught) = mpsc::channel(WAITING_MAX);
        for named in ENDING.into_iter().chain(OTHERS) {
            let mut stream = signal(SignalKind::from_raw(named.as_raw()))?;
            let tell = tell.clone();
            tokio::spawn(
                async move { while stream.recv().await.is_some() && tell.send(named).await.is_ok() {} },
            );
        }
        Ok(PassedSignals { caught, children: signal(SignalKind::child())? })
    }

    pub async fn next(&mut self) -> Signal {
        match self.caught.recv().await {
            Some(signal) => signal,
            // The listeners live as long as the runtime.
            None => std::future::pending().await,
        }
    }

    /// The number of the next signal that would end a process.
    pub async fn ending(&mut self) -> i32 {
        loop {
            let signal = self.next().await;
            if ENDING.contains(&signal) {
                return signal.as_raw();
            }
        }
    }

    /// Returns when a child has ended or stopped.
    pub async fn child(&mut self) {
        self.children.recv().await;
    }

    /// The next signal, or `None` for the end of a child, whichever comes first.
    pub async fn any(&mut self) -> Option<Signal> {
        tokio::select! {
            biased;
            _ = self.children.recv() => None,
            Some(signal) = self.caught.recv() => Some(signal),
        }
    }
}
