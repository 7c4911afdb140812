//! An idle connection to one peer: the moment its process dies, the system closes it, and a new dial says whether
//! anything still listens. Nothing is sent over it.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;

use super::super::wall::Wall;
use super::arrived::Arrived;
use crate::protocol::Timing;
use crate::types::NodeId;

/// The longest that a dead peer's address is left alone before it is dialled again.
const REST_MOST: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub struct Watch {
    peer: NodeId,
    address: String,
    /// How long to wait after a dial that failed, and how long the first one may take.
    patience: Duration,
    /// How long a dial may take at most: each one that is met with silence doubles it, for the peer may be far away.
    patience_most: Duration,
    wall: Arc<Wall>,
    /// Of the last dial that succeeded, in microseconds; zero before.
    round_trip: AtomicU64,
    connected: AtomicBool,
    /// Whether that is where the peer belongs: that nobody listens elsewhere proves nothing.
    proves: bool,
    wanted: Notify,
}

enum Dialled {
    Connected(TcpStream),
    Refused,
    Silent,
}

impl Watch {
    pub fn new(peer: NodeId, address: String, proves: bool, timing: &Timing, wall: Arc<Wall>) -> Watch {
        let patience = Duration::from_micros(timing.fresh().0).min(REST_MOST);
        Watch {
            peer,
            address,
            patience,
            patience_most: Duration::from_micros(timing.dead_after.0).max(patience),
            wall,
            round_trip: AtomicU64::new(0),
            connected: AtomicBool::new(false),
            proves,
            wanted: Notify::new(),
        }
    }

    pub fn round_trip(&self) -> Option<Duration> {
        let micros = self.round_trip.load(Ordering::Relaxed);
        (micros > 0).then(|| Duration::from_micros(micros))
    }

    pub fn is_connected(&self) -> bool {
        self.connected.load(Ordering::Relaxed)
    }

    /// Find out now whether that process lives.
    pub fn probe(&self) {
        self.wanted.notify_one();
    }

    pub async fn run(&self, tell: mpsc::Sender<Arrived>) {
        let mut patience = self.patience;
        loop {
            let dialled = self.dial(patience).await;
            patience = match dialled {
                Dialled::Silent => (patience * 2).min(self.patience_most),
                Dialled::Connected(_) | Dialled::Refused => self.patience,
            };
            let connected = matches!(dialled, Dialled::Connected(_));
            self.connected.store(connected, Ordering::Relaxed);
            match dialled {
                Dialled::Connected(stream) => self.wait_for_end(stream).await,
                Dialled::Refused => {
                    if self.proves && tell.send(Arrived::Refused(self.peer)).await.is_err() {
                        return;
                    }
                    self.rest().await;
                }
                Dialled::Silent => self.rest().await,
            }
        }
    }

    async fn dial(&self, patience: Duration) -> Dialled {
        let began = Instant::now();
        let dialling = timeout(patience, TcpStream::connect(&self.address));
        match self.wall.pass(self.peer, patience, dialling).await {
            Some(Ok(Ok(stream))) => {
                let took = began.elapsed().as_micros().max(1);
                self.round_trip.store(u64::try_from(took).unwrap_or(u64::MAX), Ordering::Relaxed);
                Dialled::Connected(stream)
            }
            Some(Ok(Err(error))) if error.kind() == ErrorKind::ConnectionRefused => Dialled::Refused,
            Some(_) | None => Dialled::Silent,
        }
    }

    /// Until the peer ends the connection, for whatever reason, or somebody wants to know.
    async fn wait_for_end(&self, mut stream: TcpStream) {
        let mut byte = [0];
        let answered = tokio::select! {
            read = stream.read(&mut byte) => read.is_ok_and(|count| count > 0),
            () = self.wanted.notified() => false,
        };
        if answered {
            // A peer that has no room for another connection says so, and lives.
            self.rest().await;
        }
    }

    async fn rest(&self) {
        let _ = timeout(self.patience, self.wanted.notified()).await;
    }
}
