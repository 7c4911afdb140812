//! Keeps an idle connection to one peer. When the peer's process dies, the system closes the connection, and a new dial shows whether the
//! port still listens. Nothing is sent over the connection.
//!
//! ```text
//!   dial ── connected ──► wait until the connection ends ──► dial again at once
//!        ── reset ──────► dial again at once: a dying process closes its connections before its port
//!        ── refused ────► Arrived::Refused ──► rest, dial again
//!        ── silence ────► rest, dial again with twice the time limit, at most `dead_after` (C30)
//! ```
//!
//! A second connection in a row that ends at once is followed by a rest. Only a refused port counts as a death: silence may be
//! the network.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;

use super::super::setup::Wall;
use super::post::Arrived;
use crate::protocol::Timing;
use crate::types::NodeId;

/// The longest pause before a dead peer's address is dialled again.
const REST_MOST: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub struct Watch {
    peer: NodeId,
    address: String,
    /// The pause after a failed dial, and the time limit of the first dial.
    patience: Duration,
    /// The longest time limit of a dial: each dial without an answer doubles it, because the peer may be far away.
    patience_most: Duration,
    wall: Arc<Wall>,
    /// The duration of the last successful dial in microseconds, or that of its repetition if that was faster; zero before the first.
    round_trip: AtomicU64,
    connected: AtomicBool,
    /// Whether this address is the peer's own. A refused port elsewhere proves nothing: a process that was moved away leaves a
    /// port that refuses, and lives.
    proves: bool,
    wanted: Notify,
}

enum Dialled {
    Connected(TcpStream),
    Refused,
    /// The connection was accepted and then lost: a process that dies closes its connections before its port.
    Gone,
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

    /// Requests an immediate check of whether the process lives.
    pub fn probe(&self) {
        self.wanted.notify_one();
    }

    pub async fn run(&self, tell: mpsc::Sender<Arrived>) {
        let mut patience = self.patience;
        // The number of consecutive connections that ended as soon as they began.
        let mut brief = 0;
        loop {
            let dialled = self.dial(patience).await;
            patience = match dialled {
                Dialled::Silent => (patience * 2).min(self.patience_most),
                Dialled::Connected(_) | Dialled::Refused | Dialled::Gone => self.patience,
            };
            let connected = matches!(dialled, Dialled::Connected(_));
            self.connected.store(connected, Ordering::Relaxed);
            match dialled {
                Dialled::Connected(stream) => {
                    let began = Instant::now();
                    self.wait_for_end(stream).await;
                    brief = if began.elapsed() < self.patience { brief + 1 } else { 0 };
                }
                Dialled::Gone => brief += 1,
                Dialled::Refused => {
                    if self.proves && tell.send(Arrived::Refused(self.peer)).await.is_err() {
                        return;
                    }
                    brief = 0;
                    self.rest().await;
                }
                Dialled::Silent => {
                    brief = 0;
                    self.rest().await;
                }
            }
            // The next dial shows whether the port listens. If its connection ends at once, too, then a proxy accepts connections for a
            // node that is down.
            if brief > 1 {
                self.rest().await;
            }
        }
    }

    /// A slow dial says little about the distance of the peer: its first packet may have been lost and repeated a second later, or this
    /// machine was busy. So a slow dial is repeated.
    async fn dial(&self, patience: Duration) -> Dialled {
        let dialled = self.dial_once(patience).await;
        let took = self.round_trip().unwrap_or_default();
        if matches!(dialled, Dialled::Connected(_)) && took > self.patience / 2 {
            let _ = self.dial_once(patience).await;
            let again = self.round_trip().unwrap_or_default();
            self.note_round_trip(took.min(again));
        }
        dialled
    }

    /// At least one microsecond, because zero means that no dial has succeeded.
    fn note_round_trip(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.round_trip.store(micros.max(1), Ordering::Relaxed);
    }

    async fn dial_once(&self, patience: Duration) -> Dialled {
        let began = Instant::now();
        let dialling = timeout(patience, TcpStream::connect(&self.address));
        match self.wall.pass(self.peer, patience, dialling).await {
            Some(Ok(Ok(stream))) => {
                self.note_round_trip(began.elapsed());
                Dialled::Connected(stream)
            }
            Some(Ok(Err(error))) if error.kind() == ErrorKind::ConnectionRefused => Dialled::Refused,
            Some(Ok(Err(error))) if error.kind() == ErrorKind::ConnectionReset => Dialled::Gone,
            Some(_) | None => Dialled::Silent,
        }
    }

    /// Waits until the peer ends the connection, for any reason, or a check is requested.
    async fn wait_for_end(&self, mut stream: TcpStream) {
        let mut byte = [0];
        let answered = tokio::select! {
            read = stream.read(&mut byte) => read.is_ok_and(|count| count > 0),
            () = self.wanted.notified() => false,
        };
        if answered {
            // A peer without room for another connection says so, which proves that it lives.
            self.rest().await;
        }
    }

    async fn rest(&self) {
        let _ = timeout(self.patience, self.wanted.notified()).await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, TcpSocket};

    use super::*;

    /// A proxy accepts connections for a node that is down, and ends each at once. At most eight are made in a second.
    #[tokio::test]
    async fn what_ends_at_once_is_not_dialled_without_a_rest() {
        let proxy = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = proxy.local_addr().expect("an address").to_string();
        let watch = Watch::new(NodeId(2), address, true, &Timing::lan(), Arc::default());
        let (tell, _told) = mpsc::channel(1);
        let began = Instant::now();
        let nine_dials = async {
            for _ in 0..9 {
                let _ = proxy.accept().await;
            }
        };
        tokio::select! {
            () = watch.run(tell) => unreachable!("it watches for as long as somebody listens"),
            done = timeout(Duration::from_secs(60), nine_dials) => done.expect("it goes on dialling"),
        }
        assert!(began.elapsed() >= Duration::from_secs(1), "nine dials in {:?}", began.elapsed());
    }

    /// The peer's queue is full, so the system loses the first packet; it sends another one after a second.
    #[tokio::test]
    async fn a_packet_that_is_lost_makes_nobody_far_away() {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a free port");
        let listener = socket.listen(1).expect("it listens");
        let address = listener.local_addr().expect("an address").to_string();
        let mut waiting = Vec::new();
        while let Ok(Ok(stream)) = timeout(Duration::from_millis(900), TcpStream::connect(&address)).await {
            waiting.push(stream);
        }
        let watch = Watch::new(NodeId(2), address, true, &Timing::lan(), Arc::default());
        let makes_room = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            loop {
                let _ = listener.accept().await;
            }
        };
        tokio::select! {
            () = makes_room => unreachable!("it takes whoever comes"),
            dialled = watch.dial(Duration::from_secs(10)) => assert!(matches!(dialled, Dialled::Connected(_))),
        }
        let round_trip = watch.round_trip().expect("it has been measured");
        // Less than the time that the lost packet alone costs.
        assert!(round_trip < Duration::from_secs(1), "{round_trip:?}");
    }

    /// A process that dies closes its connections first: a dial in between is noticed at the next dial.
    #[tokio::test]
    async fn a_port_that_closes_after_its_connections_is_told() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let watch = Watch::new(NodeId(2), address, true, &Timing::lan(), Arc::default());
        let (tell, mut told) = mpsc::channel(1);
        let dies = async {
            let first = listener.accept().await.expect("it dials");
            drop(first);
            // The connection waits in the backlog, and is reset with the port.
            drop(listener);
            told.recv().await
        };
        tokio::select! {
            () = watch.run(tell) => unreachable!("it watches for as long as it is heard"),
            told = dies => assert!(matches!(told, Some(Arrived::Refused(NodeId(2)))), "{told:?}"),
        }
    }
}
