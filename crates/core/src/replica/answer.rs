//! Answers to callers.

use crate::protocol::MembersRefusal;
use crate::store::{self, DocView, Process, Rejection, Role, Store};
use crate::types::{Epoch, Index, LeaseName, NodeId, Position, Record, Span, Text, Time, WallTime};

/// One variant for each kind of call, so a caller knows which one to expect.
#[derive(Clone, Debug)]
pub enum Answer {
    Written(Written),
    View(Box<View>),
    Role(Box<Granted<Role>>),
    Process(Box<Granted<Process>>),
    /// A document with a ttl, and the time that it has left.
    Doc(Box<Granted<DocView>>),
    /// The call succeeded and has no content to return: a hand-over, a hold of the service, a change of members, a forming, an untie.
    Done,
}

/// The proof that a leader needs before it answers a read from its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadProof {
    /// A majority answers a round that began after the call. The read sees every write that was acknowledged before (P13).
    Round,
    /// The lease must last, or else a majority answers a round (P11).
    Lease,
}

/// A write that a majority has, or the first answer to the same call.
#[derive(Clone, Debug)]
pub struct Written {
    pub position: Position,
    /// The number of nodes that had the record durably when the answer was given; `None` for a replay.
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
    /// When this node last heard its leader. On the leader it is the time of the view: until then it surely led.
    pub heard_at: Time,
}

impl View {
    /// The time since this node last heard its leader.
    pub fn age_ms(&self, now: Time) -> u64 {
        now.since(self.heard_at).0 / 1000
    }
}

/// The reason why a call is denied. Every reason but `Unknown` means: surely not applied, now or later (P15).
#[derive(Clone, Debug)]
pub enum Denied {
    /// Another node leads. The caller should ask that node.
    NotLeader {
        leader: NodeId,
    },
    NoLeader,
    /// This node does not reach a majority.
    NoQuorum,
    /// This node's disk is not admitted yet (P10), or its state has yet to catch up.
    CatchingUp,
    HandingOver,
    ServiceDown {
        reason: Text,
    },
    DiskFull,
    /// A bound was reached; `bound` says which one.
    TooMany {
        bound: &'static str,
    },
    /// A node of the topology cannot read this type of record yet (P23).
    FormatNotShared,
    /// The cluster has been formed already, and that happens only once (P9).
    AlreadyFormed,
    /// The named node cannot lead now.
    NotAnHeir,
    /// The members do not change, for this reason.
    Members(MembersRefusal),
    /// The caller's token was revoked, or has expired (P56).
    TokenEnded,
    /// Another instance holds the role.
    RoleHeld(Box<HeldBy>),
    /// The caller no longer holds the role.
    LeaseLost(Box<HeldBy>),
    /// The rules reject the call. Rules are judged against committed state only (P14).
    Rejected(Rejection),
    /// The restore was given up before its last step.
    GivenUp {
        why: &'static str,
    },
    /// The process is about to end.
    Stopping,
    /// The call may or may not have taken effect (P15).
    Unknown,
}

impl Denied {
    /// The call itself is fine, but it has an idempotency key, and the state remembers as many keys as it may.
    pub(super) const TOO_MANY_KEYS: Denied =
        Denied::TooMany { bound: "idempotency keys that are remembered" };
}

/// A role, a process or a document as its caller learns it, with the time that its lease has left.
#[derive(Clone, Debug)]
pub struct Granted<T> {
    pub what: T,
    /// A new grant or registration: the caller did not have it before.
    pub new: bool,
    /// The grant came after a wait in the queue.
    pub waited: bool,
    pub expires_in: Span,
    /// The position of its record. If no record was needed, the position that the state had reached.
    pub position: Position,
    /// The number of nodes that had that record durably.
    pub acks: Option<usize>,
    /// The promise to take back if this answer does not reach its caller.
    pub if_unheard: Option<Unheard>,
}

/// A promise that does not bind the leader if its answer did not reach the caller (P41).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unheard {
    pub name: LeaseName,
    pub token: u64,
    /// The lease was granted after a wait. Otherwise the caller had it already.
    pub granted: bool,
}

/// The holder of a role.
#[derive(Clone, Debug)]
pub struct HeldBy {
    pub role: Text,
    pub by: Option<Role>,
    pub expires_in: Option<Span>,
    /// The role was free when the call came.
    pub conflict: bool,
}

/// Lease times, which only the leader knows, in the order in which they were asked for.
#[derive(Clone, Debug)]
pub struct LeaseTimes {
    /// The leader's wall clock, for people.
    pub wall: WallTime,
    pub times: Vec<LeaseTime>,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct LeaseTime {
    /// The time that the lease has left.
    pub left: Option<Span>,
    /// The number of calls that wait for it.
    pub waiting: usize,
    /// The connection that the lease ends with, by the number that its holder named.
    pub tie: Option<u64>,
}

/// An opinion about a candidate. It is not a promise (P4).
#[derive(Clone, Debug)]
pub struct Opinion {
    pub approved: bool,
    pub reason: &'static str,
}

/// The records behind a boundary, or the whole state as it is now.
#[derive(Clone, Debug)]
pub struct CatchUp {
    /// Set if the log no longer has the records that were asked for.
    pub whole: Option<Whole>,
    pub records: Vec<Record>,
}

/// The state as it is now.
#[derive(Clone, Debug)]
pub struct Whole {
    /// The number of the newest boundary that the state includes.
    pub snapshot_id: u64,
    pub store: Store,
    /// The number of records behind that boundary that the state includes as well.
    pub skip: u64,
}
