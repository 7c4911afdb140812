//! Everything that goes into the core and comes out of it.

use std::collections::BTreeSet;

use super::event::Event;
use super::message::{Checkpoint, Envelope, Term};
use super::reasons::{Fault, Impasse};
use crate::protocol::log::{After, Records, Seq, SnapshotMeta};
use crate::types::{
    Boot, ClusterId, Entry, Incarnation, Index, Members, NodeId, Owner, Position, Record, RequestId, Span,
    Text, Vector,
};

/// What happened. The driver gives one at a time, with what the clocks showed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::large_enum_variant, reason = "most inputs are messages")]
pub enum Input {
    /// The deadline has come.
    Tick,
    Message(Envelope),
    /// Every write up to this one is on disk.
    Durable(Seq),
    /// The promise of every vote up to this one is on disk, though writes before it still wait for room (P24).
    Promised(Seq),
    /// The peer's connection broke and its port refuses: that process is dead (P3).
    PeerRefused(NodeId),
    /// Client commands, in this order; each gets a verdict of its own.
    Propose(Vec<Proposal>),
    /// May a read be answered? `at_least` names a record that it was judged against (P14).
    Read {
        request: RequestId,
        at_least: Index,
    },
    /// Hand leadership to this node, or to the best heir (P18).
    HandOver {
        request: RequestId,
        to: Option<NodeId>,
    },
    Service {
        request: RequestId,
        change: ServiceChange,
    },
    /// The operator adds a node, removes one, or gives one another address (P43).
    ChangeMembers {
        request: RequestId,
        change: MemberChange,
    },
    /// The operator forms the cluster without these nodes (P9).
    Form {
        without: BTreeSet<NodeId>,
    },
    /// A snapshot up to this index is durable: records below it may go (P26).
    SnapshotTaken(Index),
    /// The state's digest at a boundary (P25).
    Digest(Checkpoint),
    /// The disk has no room for another segment, or has room again (P24).
    DiskFull(bool),
    /// What this side or that one has cannot be merged as things are (P48).
    MergeFails {
        other: NodeId,
        why: Impasse,
    },
}

/// A record that somebody waits for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Proposal {
    pub request: RequestId,
    pub entry: Entry,
    /// It takes back what was left half-way. No hold of the service refuses that, nor any bound on what clients may ask for:
    /// whatever refused the rest would keep what is half-way there.
    pub clears_up: bool,
}

impl Proposal {
    pub fn new(request: RequestId, entry: Entry) -> Proposal {
        Proposal { request, entry, clears_up: false }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ServiceChange {
    Down { owner: Owner, ttl: Span, reason: Text },
    Up { owner: Owner },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MemberChange {
    Add { id: NodeId, name: Text, address: Text },
    Remove(NodeId),
    Move { id: NodeId, address: Text },
}

/// What to do. Carried out in order; `after` is the durability that a message needs (P29).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Output {
    Write {
        seq: Seq,
        write: Write,
    },
    /// Give this to the transport once what `after` names is durable, never before.
    Send {
        envelope: Envelope,
        after: After,
    },
    /// The same, with the newest snapshot as the message: one that reaches at least the log's base, so an
    /// installed one counts as soon as it is durable.
    SendSnapshot {
        to: NodeId,
        term: Term,
        after: After,
    },
    /// Give this node everything that the committed state has and `base` does not include, as a message: what
    /// it is at the moment of this output.
    SendMerge {
        to: NodeId,
        base: Vector,
        after: After,
    },
    /// The same to one that is brought up to this state. Where the difference cannot be told, the newest snapshot will do.
    SendOverride {
        to: NodeId,
        term: Term,
        base: Vector,
        after: After,
    },
    /// The state becomes its merge with the data that came with this message, as of `meta` (P34).
    Merge {
        own: Vector,
        theirs: Vector,
        meta: SnapshotMeta,
    },
    /// The state is brought up to `meta` by the data that came with this message (P33).
    Override(SnapshotMeta),
    /// These are committed: apply them.
    Apply(Vec<Record>),
    /// The state is replaced by the snapshot that came with this.
    Restore(SnapshotMeta),
    Verdict {
        request: RequestId,
        verdict: Verdict,
    },
    /// These belong to the cluster from now on, as far as this node knows, and this is which one it is.
    Members {
        cluster: ClusterId,
        members: Members,
    },
    /// Find out now whether this peer's process lives.
    Probe(NodeId),
    Event(Event),
    /// This node cannot go on, for a reason that no message repairs.
    Stop(Fault),
}

/// What a node does with a state that has come, if it takes it (P33, P34): what `Output` then says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taking {
    Merge { own: Vector, theirs: Vector, meta: SnapshotMeta },
    Override(SnapshotMeta),
}

/// A change of what is on disk. Order is kept; durability is reported by `Input::Durable`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Write {
    Vote(Vote),
    Append(Records),
    /// Every record above this index goes. Durable before anything is appended after it.
    Truncate {
        above: Index,
    },
    /// The snapshot replaces log and state.
    Install(SnapshotMeta),
    /// The state as it has just become replaces log and snapshot: only what has changed needs to be written.
    Rebase(SnapshotMeta),
    /// Records up to this index may go: a snapshot holds them.
    Trim {
        upto: Index,
    },
}

/// What a node must never forget (P2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Vote {
    /// The highest epoch approved, or of which a record was accepted, and for which claim.
    pub promise: Term,
    /// This disk has been part of a cluster (P9).
    pub formed: bool,
    /// The log has counted this disk (P10).
    pub admitted: bool,
    /// Nobody relies on what was granted from this disk for longer than that, whenever its process ends (P11).
    pub lease: Span,
}

impl Vote {
    /// With what that one binds this node to, whatever becomes of its log: a promise and a grant do no harm on disk before records that
    /// came first (P24).
    pub fn bound_by(self, ahead: Vote) -> Vote {
        Vote { promise: ahead.promise, lease: ahead.lease, ..self }
    }
}

/// What a node finds on its disk when it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    pub boot: Boot,
    pub incarnation: Incarnation,
    pub vote: Vote,
    pub base: SnapshotMeta,
    pub records: Vec<Record>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Durable on a majority; `acks` nodes had it when this was said.
    Written {
        position: Position,
        acks: usize,
    },
    /// A read may be answered from a state that has applied this index.
    Readable {
        index: Index,
    },
    Done,
    /// Surely not applied, now or later (P15).
    Refused(Refusal),
    /// May or may not have been applied.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    NotLeader {
        leader: Option<NodeId>,
    },
    /// A hand-over is under way: try again in a moment.
    HandingOver,
    ServiceDown,
    DiskFull,
    TooMany,
    TooManyReads,
    /// A node of the topology cannot read this yet (P23).
    FormatNotShared,
    /// The heir named cannot lead.
    NotAnHeir,
    /// Another leader's record stands in this one's place.
    Superseded,
    Members(MembersRefusal),
}

/// Why the members do not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MembersRefusal {
    /// The log does not say who belongs here: in available mode the topology file does.
    ByFile,
    /// The change before is not committed yet, or the leader before may still be relied on: try again in a moment.
    UnderWay,
    IsMember,
    NotMember,
    NameTaken,
    AddressTaken,
    TooMany,
    /// A leader does not remove itself: it hands over first.
    IsLeader,
    /// Of those that would be left no majority answers.
    WouldStall,
}

/// What a node may say of itself at this moment (P11).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IsLeader {
    Yes,
    /// It leads, and its lease has lapsed since the last beat: a read that is confirmed proves it anew.
    Unproven,
    No,
}
