//! The thin driver around the core: one loop that feeds it inputs and carries out its outputs.
//!
//! ```text
//!   http ── Ask ────────┐
//!   http ── PeerAsk ────┤                       ┌─► storage's writer ── DiskState ─┐
//!   network ─ Arrived ──┼─► Engine ── outputs ──┼─► transport ── POST ─► peers     │
//!   snapshots ─ Taken ──┤     ▲                 ├─► snapshots' thread              │
//!   clock ─── Tick ─────┘     │                 └─► replies                        │
//!                             └────────────────────────────────────────────────────┘
//! ```
//!
//! The loop runs on a thread of its own, with the transport's tasks beside it: what clients do on other threads delays
//! neither beats nor acknowledgements. When it ends, for whatever reason, the process must end.

mod answers;
pub mod api;
mod asks;
pub mod channels;
mod clock;
mod engine;
pub mod feed;
mod handed;
mod held;
mod incoming;
mod leasing;
mod outputs;
mod pending;
mod pulse;
mod setup;
mod sides;
#[cfg(test)]
mod sides_tests;
mod start;
mod states;
mod status;
mod taker;
mod told;
mod transport;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};

pub use api::Handle;
use api::{Ask, PeerAsk};
use engine::Engine;
pub use handed::{BadHanded, DIFFERENCE_BYTES_MOST, Handed, Receiving};
pub use incoming::decode;
pub use leasing::{Granted, HeldBy, LeaseTimes};
pub use pulse::Pulse;
pub use setup::{Member, Setup};
pub use start::{LoadError, StartError, Started, load, start};
use taker::Taken;
use transport::Arrived;
pub use transport::Wall;

use crate::protocol::{Fault, Seq};
use crate::storage::StorageError;
use crate::storage::snapshot::SnapshotError;
use crate::store::Unreadable;
use crate::types::{Index, Time};

/// Calls on their way to the loop, as many as it handles in a few milliseconds, of clients and of peers each. Beyond it
/// clients are refused at once (429), and peers' calls wait, which slows the sender down.
const ASKS_MOST: usize = 4096;
/// Calls handled before the loop looks at the disk and at peers again.
const TAKEN_AT_ONCE: usize = 64;

/// Why the loop has ended.
#[derive(Debug)]
pub enum End {
    /// It was asked to, and has handed over if it led.
    Asked,
    /// The protocol cannot go on.
    Fault(Fault),
    Disk(Arc<StorageError>),
    /// A snapshot could not be written for another reason than want of room: what is on disk is not known.
    Snapshot(SnapshotError),
    /// A record in the log that this binary cannot apply: going on would be another state than the others'.
    Unreadable {
        index: Index,
        error: Unreadable,
    },
    /// A promise between the core and its driver does not hold.
    Broken(&'static str),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Asked => write!(f, "it was asked to end"),
            End::Fault(Fault::UnknownFormat { index }) => {
                write!(f, "record {index} is of a type that this version does not know: start a newer one")
            }
            End::Fault(Fault::Odd) => {
                write!(
                    f,
                    "this node's state differed from a majority's; it is set aside: start the node again"
                )
            }
            End::Fault(Fault::CommittedConflict { index }) => {
                write!(f, "a leader contradicts record {index}, which is committed here: this is a bug")
            }
            End::Disk(error) => write!(f, "the disk failed: {error}"),
            End::Snapshot(error) => write!(f, "a snapshot could not be written: {error}"),
            End::Unreadable { index, error } => {
                write!(f, "record {index} cannot be read, and going on without it would diverge: {error}")
            }
            End::Broken(what) => write!(f, "internal error: {what}"),
        }
    }
}

/// What the writer last said. Each part stands for itself: nothing is lost if an older one is never looked at.
#[derive(Clone, Debug, Default)]
pub struct DiskState {
    pub durable: Seq,
    pub full: bool,
    pub failed: Option<Arc<StorageError>>,
}

/// Everything that the loop listens to.
#[derive(Debug)]
struct Sources {
    asks: mpsc::Receiver<Ask>,
    peers: mpsc::Receiver<PeerAsk>,
    arrived: mpsc::Receiver<Arrived>,
    taken: mpsc::Receiver<Taken>,
    disk: watch::Receiver<DiskState>,
}

/// Runs until the end. The order in which sources are asked is the order of urgency: what is durable, what peers say,
/// and clients last.
async fn run(mut engine: Engine, mut sources: Sources) -> End {
    let mut asks = Vec::with_capacity(TAKEN_AT_ONCE);
    let mut peers = Vec::with_capacity(TAKEN_AT_ONCE);
    loop {
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
            _ = sources.asks.recv_many(&mut asks, TAKEN_AT_ONCE) => {
                asks.drain(..).for_each(|ask| engine.ask(ask));
            }
            () = tokio::time::sleep(due) => {}
        }
        engine.tick();
        engine.flush();
        if let Some(end) = engine.end.take() {
            engine.pending.end();
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
