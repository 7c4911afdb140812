//! What callers learn.

use crate::protocol::MembersRefusal;
use crate::store::{self, DocView, Process, Rejection, Role, Store};
use crate::types::{Epoch, Index, LeaseName, NodeId, Position, Record, Span, Text, WallTime};

/// One for each kind of call: whoever asked knows which.
#[derive(Clone, Debug)]
pub enum Answer {
    Written(Written),
    View(Box<View>),
    Role(Box<Granted<Role>>),
    Process(Box<Granted<Process>>),
    /// A document with a ttl, and how long it has left.
    Doc(Box<Granted<DocView>>),
    /// A hand-over, a hold of the service, a forming.
    Done,
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
    /// Why the members do not change.
    Members(MembersRefusal),
    /// The token of whoever asks was revoked, or has ended (P56).
    TokenEnded,
    /// Somebody else has the role; or this token has it no more.
    RoleHeld(Box<HeldBy>),
    LeaseLost(Box<HeldBy>),
    /// The rules say no; judged against committed state only (P14).
    Rejected(Rejection),
    /// A document is not taken in.
    GivenUp {
        why: &'static str,
    },
    /// The process is about to end.
    Stopping,
    /// It may or may not have happened (P15).
    Unknown,
}

impl Denied {
    /// Nothing is wrong with the call, but it has a key, and as many are remembered as may be.
    pub(super) const TOO_MANY_KEYS: Denied =
        Denied::TooMany { bound: "idempotency keys that are remembered" };
}

/// A role, a process, or the time that it has left, as the one who asked is told.
#[derive(Clone, Debug)]
pub struct Granted<T> {
    pub what: T,
    /// It was not there before, or nobody's.
    pub new: bool,
    /// Its turn came after a wait.
    pub waited: bool,
    pub expires_in: Span,
    /// Where its record stands; for what needed no record, how far the state was.
    pub position: Position,
    /// How many nodes had that record durably.
    pub acks: Option<usize>,
    /// To be given back if nobody hears this answer.
    pub if_unheard: Option<Unheard>,
}

/// A promise that binds nobody if its answer was heard by nobody (P41).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unheard {
    pub name: LeaseName,
    pub token: u64,
    /// The lease was granted after a wait. Otherwise the caller had it already.
    pub granted: bool,
}

/// Who has a role.
#[derive(Clone, Debug)]
pub struct HeldBy {
    pub role: Text,
    pub by: Option<Role>,
    pub expires_in: Option<Span>,
    /// Nobody had it when the call came.
    pub conflict: bool,
}

/// What only the leader knows of leases, in the order in which they were asked for.
#[derive(Clone, Debug)]
pub struct LeaseTimes {
    /// The leader's clock, for people.
    pub wall: WallTime,
    /// What is left of each, and how many wait for it.
    pub times: Vec<(Option<Span>, usize)>,
}

/// An opinion about a candidate, which binds nobody (P4).
#[derive(Clone, Debug)]
pub struct Opinion {
    pub approved: bool,
    pub reason: &'static str,
}

/// What follows a boundary in the log, or the whole state as it is now.
#[derive(Clone, Debug)]
pub struct CatchUp {
    /// Where the records asked for are gone.
    pub whole: Option<Whole>,
    pub records: Vec<Record>,
}

/// The state as it is now.
#[derive(Clone, Debug)]
pub struct Whole {
    /// Of the newest boundary that it holds.
    pub snapshot_id: u64,
    pub store: Store,
    /// So many records behind that boundary it holds as well.
    pub skip: u64,
}
