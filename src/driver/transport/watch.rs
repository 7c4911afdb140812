//! An idle connection to one peer: the moment its process dies, the system closes it, and a new dial says whether
//! anything still listens. Nothing is sent over it.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;

use super::super::wall::Wall;
use super::arrived::Arrived;
use crate::types::NodeId;

#[derive(Debug)]
pub struct Watch {
    peer: NodeId,
    address: String,
    /// How long a dial may take, and how long to wait after one that failed.
    patience: Duration,
    wall: Arc<Wall>,
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
    pub fn new(peer: NodeId, address: String, proves: bool, patience: Duration, wall: Arc<Wall>) -> Watch {
        let (connected, wanted) = (AtomicBool::new(false), Notify::new());
        Watch { peer, address, patience, wall, connected, proves, wanted }
    }

    pub fn is_connected(&self) -> bool {
        self.connected.load(Ordering::Relaxed)
    }

    /// Find out now whether that process lives.
    pub fn probe(&self) {
        self.wanted.notify_one();
    }

    pub async fn run(&self, tell: mpsc::Sender<Arrived>) {
        loop {
            let dialled = self.dial().await;
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

    async fn dial(&self) -> Dialled {
        let dialling = timeout(self.patience, TcpStream::connect(&self.address));
        match self.wall.pass(self.peer, self.patience, dialling).await {
            Some(Ok(Ok(stream))) => Dialled::Connected(stream),
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
