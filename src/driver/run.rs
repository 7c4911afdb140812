//! The loop: what it listens to, in which order.

use std::time::Duration;

use tokio::sync::{mpsc, watch};

use super::api::{Ask, PeerAsk};
use super::chunks::Chunk;
use super::clock;
use super::end::End;
use super::engine::Engine;
use super::snapshots::Taken;
use super::transport::Arrived;
use crate::replica::{In, Prepared};
use crate::storage::node::DiskState;
use crate::types::Time;

/// Calls on their way to the loop, as many as it handles in a few milliseconds, of clients and of peers each. Beyond it
/// clients are refused at once (429), and peers' calls wait, which slows the sender down.
pub const ASKS_MOST: usize = 4096;
/// Calls handled before the loop looks at the disk and at peers again; besides them one chunk of a stream, so that neither kind
/// of client keeps the other waiting for long.
const TAKEN_AT_ONCE: usize = 64;

/// Everything that the loop listens to.
#[derive(Debug)]
pub struct Sources {
    pub asks: mpsc::Receiver<Ask>,
    pub chunks: mpsc::Receiver<Chunk>,
    pub gone: mpsc::Receiver<In>,
    pub peers: mpsc::Receiver<PeerAsk>,
    pub arrived: mpsc::Receiver<Arrived>,
    pub taken: mpsc::Receiver<Taken>,
    pub prepared: mpsc::Receiver<Prepared>,
    pub disk: watch::Receiver<DiskState>,
}

/// Runs until the end. The order in which sources are asked is the order of urgency: what is durable, what peers say,
/// and clients last.
pub async fn run(mut engine: Engine, mut sources: Sources) -> End {
    let mut asks = Vec::with_capacity(TAKEN_AT_ONCE);
    let mut peers = Vec::with_capacity(TAKEN_AT_ONCE);
    loop {
        // Whoever has gone has left the queue of waiters before anything moves it (P41).
        while let Ok(word) = sources.gone.try_recv() {
            engine.gone(word);
        }
        let due = until(engine.deadline());
        tokio::select! {
            biased;
            Ok(()) = sources.disk.changed() => {
                let state = sources.disk.borrow_and_update().clone();
                engine.disk_reports(state);
            }
            () = tokio::time::sleep(due), if due.is_zero() => {}
            _ = sources.peers.recv_many(&mut peers, TAKEN_AT_ONCE) => {
                peers.drain(..).for_each(|ask| engine.peer_asks(ask));
            }
            Some(arrived) = sources.arrived.recv() => engine.arrived(arrived),
            Some(taken) = sources.taken.recv() => engine.snapshot_taken(taken),
            Some(prepared) = sources.prepared.recv() => engine.is_prepared(prepared),
            Some(word) = sources.gone.recv() => engine.gone(word),
            _ = sources.asks.recv_many(&mut asks, TAKEN_AT_ONCE) => {
                engine.asked(asks.drain(..), sources.chunks.try_recv().ok());
            }
            Some(chunk) = sources.chunks.recv() => engine.asked([].into_iter(), Some(chunk)),
            () = tokio::time::sleep(due) => {}
        }
        engine.tick();
        engine.flush();
        if let Some(end) = engine.end.take() {
            engine.replies.end();
            engine.channels.end();
            return end;
        }
    }
}

fn until(deadline: Time) -> Duration {
    /// Sleeping this long and looking again costs nothing, and no clock's range is exceeded.
    const LONGEST: Duration = Duration::from_secs(3600);
    Duration::from_micros(deadline.since(clock::now().mono).0).min(LONGEST)
}
