//! What the outside may ask of the loop, and what it gets. Every call goes through one bounded queue; a
//! full queue is an answer, not a wait.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use tokio::sync::{mpsc, oneshot, watch};

use super::channels::{self, Channels};
use super::feed::{self, Feed};
use super::handed::Handed;
use super::leasing::{HeldBy, LeaseAsk};
use super::pulse::Pulse;
pub use super::status::{LeaderStatus, MemberStatus, NodeStatus, Status};
use crate::protocol::{Envelope, ServiceChange};
use crate::storage::Encoded;
use crate::storage::snapshot::{Importer, Incoming, SnapshotError, Snapshots};
use crate::store::{self, Command, Rejection, Store};
use crate::types::{Call, Epoch, Index, NodeId, Payload, Position, Text};
use crate::wire::Parcel;

/// How the outside reaches the loop. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Handle {
    pub(super) asks: mpsc::Sender<Ask>,
    /// Peers' messages, on a queue of their own: clients never keep them waiting.
    pub(super) peers: mpsc::Sender<PeerAsk>,
    pub(super) pulse: Arc<Pulse>,
    pub(super) leadership: watch::Receiver<Leadership>,
    pub(super) snapshots: Arc<Mutex<Snapshots>>,
    pub(super) feed: Feed,
    pub(super) channels: Channels,
}

/// The loop's end of a [`Handle`].
#[derive(Debug)]
pub struct Desk {
    pub asks: mpsc::Receiver<Ask>,
    pub peers: mpsc::Receiver<PeerAsk>,
    pub signs: Signs,
    pub feed: feed::Writer,
    pub channels: channels::Keeper,
}

/// What the loop shows to every holder of a handle.
#[derive(Debug)]
pub struct Signs {
    pulse: Arc<Pulse>,
    leadership: watch::Sender<Leadership>,
}

/// A handle and the desk where its calls arrive; `room` of each kind may wait there.
pub fn channel(room: usize, snapshots: Arc<Mutex<Snapshots>>) -> (Handle, Desk) {
    let (asks, asked) = mpsc::channel(room);
    let (peers, called) = mpsc::channel(room);
    let (tell, leadership) = watch::channel(Leadership::default());
    let pulse = Arc::new(Pulse::default());
    let ((feed, writer), (channels, keeper)) = (feed::feed(), channels::channels());
    let signs = Signs { pulse: pulse.clone(), leadership: tell };
    let desk = Desk { asks: asked, peers: called, signs, feed: writer, channels: keeper };
    (Handle { asks, peers, pulse, leadership, snapshots, feed, channels }, desk)
}

impl Signs {
    /// Says who leads and how far this node is.
    pub fn show(&self, leader: Option<NodeId>, epoch: Epoch, applied: Index) {
        self.pulse.set(leader, epoch, applied);
        let now = Leadership { leader, epoch };
        self.leadership.send_if_modified(|before| std::mem::replace(before, now) != now);
    }
}

impl Desk {
    pub fn show(&self, leader: Option<NodeId>, epoch: Epoch, applied: Index) {
        self.signs.show(leader, epoch, applied);
    }
}

/// Who leads, as this node sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leadership {
    pub leader: Option<NodeId>,
    pub epoch: Epoch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Sees every write acknowledged before the read began.
    Linear,
    /// By the leader's lease, without a round of its own.
    Leader,
    /// This node's state, however old.
    Local,
}

/// A write that a majority has, or the first answer to the same call.
#[derive(Clone, Debug)]
pub struct Written {
    pub position: Position,
    /// Nodes that had it durably when this was said; none for a replay.
    pub acks: Option<usize>,
    pub reply: store::Reply,
}

/// A frozen state to read from.
#[derive(Clone, Debug)]
pub struct View {
    pub store: Store,
    pub leader: Option<NodeId>,
    pub epoch: Epoch,
    pub index: Index,
    /// How long ago this node last heard its leader; zero on the leader.
    pub age_ms: u64,
}

/// Why there is no answer. Everything but `Unknown` means: surely not applied, now or later (P15).
#[derive(Clone, Debug)]
pub enum Denied {
    /// Another node leads: ask there.
    NotLeader {
        leader: NodeId,
    },
    NoLeader,
    /// This node does not reach a majority.
    NoQuorum,
    /// This node's disk has yet to be let in (P10), or its state to catch up.
    CatchingUp,
    HandingOver,
    ServiceDown {
        reason: Text,
    },
    DiskFull,
    /// A bound was reached: which one.
    TooMany {
        bound: &'static str,
    },
    /// A node of the topology cannot read this type of record yet (P23).
    FormatNotShared,
    /// The cluster has been formed: once is for ever (P9).
    AlreadyFormed,
    /// The node named cannot lead now.
    NotAnHeir,
    /// Somebody else has the role; or this token has it no more.
    RoleHeld(Box<HeldBy>),
    LeaseLost(Box<HeldBy>),
    /// The rules say no; judged against committed state only (P14).
    Rejected(Rejection),
    /// The process is about to end.
    Stopping,
    /// It may or may not have happened (P15).
    Unknown,
}

/// An opinion about a candidate, which binds nobody (P4).
#[derive(Clone, Debug)]
pub struct Opinion {
    pub approved: bool,
    pub reason: &'static str,
}

/// What follows a boundary in the log, or a whole state and what follows that.
#[derive(Clone, Debug)]
pub struct CatchUp {
    /// The state to start from, where the lines asked for are gone, and its snapshot id.
    pub snapshot: Option<(u64, Store)>,
    /// `type|JSON` each.
    pub lines: Vec<String>,
}

/// A message from another node, proved and decoded.
#[derive(Debug)]
pub struct PeerCall {
    pub envelope: Envelope,
    /// The lines of its records, as they stood in the body.
    pub lines: Encoded,
    /// What came with it as a stream.
    pub brought: Option<Brought>,
}

/// States are streamed, read and checked before the loop hears of the message that they belong to.
#[derive(Debug)]
pub enum Brought {
    /// Written down already, and read into a store.
    Snapshot(Box<(Incoming, Store)>),
    Difference(Box<Handed>),
}

/// One call to the loop.
#[derive(Debug)]
pub enum Ask {
    Write {
        command: Box<Command>,
        payload: Payload,
        call: Option<Call>,
        reply: Reply<Written>,
    },
    /// A step of a restore, which no rule refuses.
    Step {
        payload: Payload,
        reply: Reply<Written>,
    },
    Read {
        level: Level,
        reply: Reply<View>,
    },
    IsLeader(oneshot::Sender<bool>),
    HandOver {
        to: Option<NodeId>,
        reply: Reply<()>,
    },
    Service {
        change: ServiceChange,
        reply: Reply<()>,
    },
    Form {
        without: BTreeSet<NodeId>,
        reply: Reply<()>,
    },
    Opinion {
        candidate: NodeId,
        reply: oneshot::Sender<Opinion>,
    },
    CatchUp {
        snapshot_id: u64,
        reply: Reply<CatchUp>,
    },
    Lease(LeaseAsk),
    Status(oneshot::Sender<Status>),
    /// Hand over if leading, then end.
    Stop,
}

/// A peer's message, and where what there is to say back goes.
#[derive(Debug)]
pub struct PeerAsk {
    pub call: PeerCall,
    pub reply: oneshot::Sender<Option<Parcel>>,
}

pub type Reply<T> = oneshot::Sender<Result<T, Denied>>;

impl Handle {
    /// Proposes a command and waits for a majority.
    pub async fn write(&self, command: Command, call: Option<Call>) -> Result<Written, Denied> {
        let payload = command.to_payload(call);
        let command = Box::new(command);
        self.ask(|reply| Ask::Write { command, payload, call, reply }).await
    }

    /// Replaces all data by what these steps say. A restore that fails half-way leaves everything as it was.
    pub async fn restore(&self, steps: Vec<Payload>, give_up: Payload) -> Result<Written, Denied> {
        let mut last = Err(Denied::Unknown);
        for payload in steps {
            last = self.ask(|reply| Ask::Step { payload, reply }).await;
            if let Err(denied) = &last {
                let last_word = matches!(denied, Denied::Unknown);
                if !last_word {
                    let payload = give_up.clone();
                    let _ = self.ask(|reply| Ask::Step { payload, reply }).await;
                }
                break;
            }
        }
        last
    }

    pub async fn read(&self, level: Level) -> Result<View, Denied> {
        self.ask(|reply| Ask::Read { level, reply }).await
    }

    /// Checked against the lease at the moment of answering.
    pub async fn is_leader(&self) -> bool {
        self.tell(Ask::IsLeader).await.unwrap_or(false)
    }

    /// Hands leadership to this node, or to the best heir; answers when that is done.
    pub async fn hand_over(&self, to: Option<NodeId>) -> Result<(), Denied> {
        self.ask(|reply| Ask::HandOver { to, reply }).await
    }

    pub async fn service(&self, change: ServiceChange) -> Result<(), Denied> {
        self.ask(|reply| Ask::Service { change, reply }).await
    }

    pub async fn form(&self, without: BTreeSet<NodeId>) -> Result<(), Denied> {
        self.ask(|reply| Ask::Form { without, reply }).await
    }

    /// Would this node approve that one now? Nothing changes.
    pub async fn opinion(&self, candidate: NodeId) -> Option<Opinion> {
        self.tell(|reply| Ask::Opinion { candidate, reply }).await
    }

    pub async fn catch_up(&self, snapshot_id: u64) -> Result<CatchUp, Denied> {
        self.ask(|reply| Ask::CatchUp { snapshot_id, reply }).await
    }

    /// None only when the loop has ended.
    pub async fn status(&self) -> Option<Status> {
        self.tell(Ask::Status).await
    }

    /// Gives a peer's message to the loop. What there is to say back comes when it may leave; nothing, if
    /// there is nothing or another call of that peer asks for it. The caller bounds the wait.
    pub async fn peer(&self, call: PeerCall) -> Option<Parcel> {
        let (reply, answer) = oneshot::channel();
        self.peers.send(PeerAsk { call, reply }).await.ok()?;
        answer.await.ok().flatten()
    }

    /// Hands over if this node leads, and ends the loop. Returns when it has ended.
    pub async fn stop(&self) {
        if self.asks.send(Ask::Stop).await.is_ok() {
            self.asks.closed().await;
        }
    }

    /// Where a snapshot that a peer sends is written down.
    pub async fn importer(&self) -> Result<Importer, SnapshotError> {
        let snapshots = self.snapshots.clone();
        let opening = move || snapshots.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).importer();
        match tokio::task::spawn_blocking(opening).await {
            Ok(importer) => importer,
            Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
        }
    }

    /// What every answer's headers say: read without asking the loop.
    pub fn pulse(&self) -> &Pulse {
        &self.pulse
    }

    pub fn leadership(&self) -> watch::Receiver<Leadership> {
        self.leadership.clone()
    }

    pub(super) async fn ask<T>(&self, ask: impl FnOnce(Reply<T>) -> Ask) -> Result<T, Denied> {
        let (reply, answer) = oneshot::channel();
        match self.asks.try_send(ask(reply)) {
            Ok(()) => answer.await.unwrap_or(Err(Denied::Unknown)),
            Err(mpsc::error::TrySendError::Full(_)) => {
                Err(Denied::TooMany { bound: "calls waiting for the node" })
            }
            Err(mpsc::error::TrySendError::Closed(_)) => Err(Denied::Stopping),
        }
    }

    /// For what must not be refused when clients fill the queue: waits for room.
    pub(super) async fn tell<T>(&self, ask: impl FnOnce(oneshot::Sender<T>) -> Ask) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.asks.send(ask(reply)).await.ok()?;
        answer.await.ok()
    }
}
