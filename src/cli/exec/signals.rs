//! Every signal that this process can catch and pass on.

use std::io;

use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind, signal};
use tokio::sync::mpsc;

/// Signals that wait to be passed on: a person sends one at a time, and the system holds one of a kind.
const WAITING_MAX: usize = 64;

/// What ends a process that does nothing about it.
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

/// What does not.
const OTHERS: [Signal; 6] =
    [Signal::CONT, Signal::TSTP, Signal::TTIN, Signal::TTOU, Signal::URG, Signal::WINCH];

/// Not among them are faults of this very process (BUS, FPE, ILL, SEGV, PIPE), and what nobody can catch.
#[derive(Debug)]
pub struct PassedSignals {
    caught: mpsc::Receiver<Signal>,
    children: unix::Signal,
}

impl PassedSignals {
    /// From here on no signal is lost. Within a runtime.
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
            // The listeners go on for as long as the runtime.
            None => std::future::pending().await,
        }
    }

    /// The number of the next one that would end a process.
    pub async fn ending(&mut self) -> i32 {
        loop {
            let signal = self.next().await;
            if ENDING.contains(&signal) {
                return signal.as_raw();
            }
        }
    }

    /// A child has ended, or stopped.
    pub async fn child(&mut self) {
        self.children.recv().await;
    }

    /// Whichever comes first; none for a child.
    pub async fn any(&mut self) -> Option<Signal> {
        tokio::select! {
            biased;
            _ = self.children.recv() => None,
            Some(signal) = self.caught.recv() => Some(signal),
        }
    }
}
