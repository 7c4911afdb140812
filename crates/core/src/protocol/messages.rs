//! The inputs and outputs of a node, the messages between nodes, the reasons why something happens or does not, and the `Display` form of
//! messages in logs and scripts.

use std::collections::BTreeSet;
use std::fmt;

use super::durability::{After, Seq};
use super::meta::{Records, SnapshotMeta};
use crate::types::{
    Boot, ClaimId, ClusterId, Digest, Entry, Epoch, Format, Incarnation, Index, Members, NodeId, Owner,
    Position, Record, RequestId, Span, Text, Vector,
};

/// An event outside the core. The driver passes in one at a time, with the readings of the clocks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::large_enum_variant, reason = "most inputs are messages")]
pub enum Input {
    /// The deadline has come.
    Tick,
    Message(Envelope),
    /// Every write up to this one is on disk.
    Durable(Seq),
    /// The promise of every vote up to this one is on disk; writes before that vote may still wait for room (P24).
    Promised(Seq),
    /// The peer's connection broke and its port refuses connections: that process is dead (P3).
    PeerRefused(NodeId),
    /// Client commands, in this order; each gets its own verdict.
    Propose(Vec<Proposal>),
    /// Asks whether a read may be answered. `at_least` is the index of a record that the read was judged against (P14).
    Read {
        request: RequestId,
        at_least: Index,
    },
    /// Hands leadership over to this node, or to the best heir (P18).
    HandOver {
        request: RequestId,
        to: Option<NodeId>,
        reason: HandOverReason,
    },
    Service {
        request: RequestId,
        change: ServiceChange,
    },
    /// The operator adds a node, removes a node, or changes the address of a node (P43).
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
    /// The state of this side or of the other cannot be merged as things are (P48).
    MergeFails {
        other: NodeId,
        why: Impasse,
    },
}

/// A record with a caller that waits for its verdict.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Proposal {
    pub request: RequestId,
    pub entry: Entry,
    /// This record clears away what an operation left when it stopped half-way, such as a restore. No hold of the service refuses
    /// it, and no bound on what clients may ask for: otherwise whatever stopped the operation would also keep what it left.
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

/// An action for the driver. Actions are carried out in order; `after` is the durability that a message needs (P29).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Output {
    Write {
        seq: Seq,
        write: Write,
    },
    /// The driver gives this envelope to the transport once what `after` names is durable, never before.
    Send {
        envelope: Envelope,
        after: After,
    },
    /// The same, with the newest snapshot as the message. That snapshot reaches at least the log's base: an installed snapshot
    /// counts once it is durable, and `after` waits for that.
    SendSnapshot {
        to: NodeId,
        term: Term,
        after: After,
    },
    /// The driver sends this node everything that the committed state has and `base` does not include, as a message. The state
    /// is the one at the moment of this output.
    SendMerge {
        to: NodeId,
        base: Vector,
        after: After,
    },
    /// The same, to a node whose state is brought up to this one. If what `base` lacks cannot be computed, the newest snapshot is
    /// sent instead.
    SendOverride {
        to: NodeId,
        term: Term,
        base: Vector,
        after: After,
    },
    /// The state becomes its merge with the data in the incoming message, as of `meta` (P34).
    Merge {
        own: Vector,
        theirs: Vector,
        meta: SnapshotMeta,
    },
    /// The state is brought up to `meta` by the data in the incoming message (P33).
    Override(SnapshotMeta),
    /// These records are committed: the driver applies them.
    Apply(Vec<Record>),
    /// The state is replaced by the snapshot in the incoming message.
    Restore(SnapshotMeta),
    Verdict {
        request: RequestId,
        verdict: Verdict,
    },
    /// As far as this node knows, these are the members of the cluster from now on, and this is the cluster's id.
    Members {
        cluster: ClusterId,
        members: Members,
    },
    /// The driver finds out now whether this peer's process lives.
    Probe(NodeId),
    Event(Event),
    /// This node cannot go on, for a reason that no message can repair.
    Stop(Fault),
}

/// The way in which a node accepts a state from a message, if it does (P33, P34). `Output` has the same two cases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taking {
    Merge { own: Vector, theirs: Vector, meta: SnapshotMeta },
    Override(SnapshotMeta),
}

/// A change of what is on disk. Writes keep their order; `Input::Durable` reports durability.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Write {
    Vote(Vote),
    Append(Records),
    /// Removes every record above this index. The removal is durable before anything is appended after it.
    Truncate {
        above: Index,
    },
    /// The snapshot replaces log and state.
    Install(SnapshotMeta),
    /// The current state replaces log and snapshot: only what has changed needs to be written.
    Rebase(SnapshotMeta),
    /// Records up to this index may be removed: a snapshot holds them.
    Trim {
        upto: Index,
    },
}

/// The facts that a node must never forget (P2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Vote {
    /// The highest epoch that this node approved, or of which it accepted a record, with the claim it belongs to.
    pub promise: Term,
    /// This disk has been part of a cluster (P9).
    pub formed: bool,
    /// The log has counted this disk (P10).
    pub admitted: bool,
    /// At whatever moment the process ends, a leader relies on a lease that this disk granted for at most this long from then on
    /// (P11).
    pub lease: Span,
}

impl Vote {
    /// This vote with the promise and the lease of `ahead`. These two may be on disk ahead of records that wait for room. The
    /// rest of a vote follows from records, so it stays behind them (P24, P29).
    pub fn bound_by(self, ahead: Vote) -> Vote {
        Vote { promise: ahead.promise, lease: ahead.lease, ..self }
    }
}

/// The contents of a node's disk when it starts.
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
    /// Durable on a majority; `acks` nodes had it when this verdict was given.
    Written {
        position: Position,
        acks: usize,
    },
    /// A read may be answered from a state in which this index is applied.
    Readable {
        index: Index,
    },
    Done,
    /// The write is surely not applied, now or later (P15).
    Refused(Refusal),
    /// The write may or may not have been applied.
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
    /// A member is not known to read this format yet (P23).
    FormatNotShared,
    /// The named heir cannot lead.
    NotAnHeir,
    /// Another leader's record stands at the index of this write.
    Superseded,
    Members(MembersRefusal),
}

/// The reason why a change of members is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MembersRefusal {
    /// The topology file names the members: this is available mode, or the log does not name them.
    ByFile,
    /// The previous change is not committed yet, an earlier leader may still be relied on, or a new leader has not heard enough
    /// voters: try again in a moment.
    UnderWay,
    IsMember,
    NotMember,
    NameTaken,
    AddressTaken,
    TooMany,
    /// A leader does not remove itself: it hands over first.
    IsLeader,
    /// No majority of the voters that would remain answers now.
    WouldStall,
}

/// The answer that a node may give at this moment to the question whether it leads (P11).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IsLeader {
    Yes,
    /// The node leads, but its lease has lapsed since the last beat: a confirmed read proves again that it leads.
    Unproven,
    No,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// This node gave up its leader, which it had not heard for `silent`. It waits for it for `patience` (P3).
    Suspected {
        leader: NodeId,
        cause: Cause,
        silent: Span,
        patience: Span,
    },
    Claimed {
        epoch: Epoch,
    },
    /// This node leads, and its epoch is open.
    Opened {
        epoch: Epoch,
    },
    Following {
        epoch: Epoch,
    },
    SteppedDown {
        epoch: Epoch,
        cause: Cause,
    },
    /// This leader leaves its epoch to that heir; `SteppedDown` follows (P18).
    HandsOver {
        heir: NodeId,
        reason: HandOverReason,
    },
    /// This node has the word of its leader that it has handed over to that heir (P18).
    HandedOver {
        leader: NodeId,
        heir: NodeId,
    },
    /// Nothing called this node for that much longer than it had asked for, which is at least half as long as others wait for a leader: the
    /// process or the machine stood still (P3).
    Slept {
        late: Span,
    },
    /// The wall clock was set forward, or back if `micros` is negative.
    WallClockSet {
        micros: i64,
    },
    /// That node has failed more than once lately: others come before it for this time (P20).
    Held {
        node: NodeId,
        time: Span,
    },
    /// This node could have led and did not: others come first for this time (P20).
    StandsBack {
        time: Span,
    },
    Admitted {
        incarnation: Incarnation,
    },
    /// Another disk has this node's place in the roster: this disk neither votes nor leads (P10).
    Replaced {
        by: Incarnation,
    },
    /// This node, the elder of two leaders, asks the other for its writes (P34).
    Met {
        other: NodeId,
    },
    /// Two sides are one: the state of the other side is merged, as of this index.
    Merged {
        with: NodeId,
        index: Index,
    },
    /// The two sides do not become one, and both go on as before for a while (P48).
    Impasse {
        other: NodeId,
        why: Impasse,
    },
    /// The state was brought up to that of a side that includes it, as of this index.
    Overridden {
        index: Index,
    },
    /// A message without proof reports a fault that would end this node (P51).
    Accused {
        fault: Fault,
    },
    /// A node's log ends below what its disk has acknowledged (P27).
    Forgot {
        node: NodeId,
        kept: Index,
        end: Index,
    },
    /// States differ, and the nodes cannot tell which one has diverged (P25).
    Diverged {
        index: Index,
    },
    /// This node would not approve that candidate now, and has told it so (P4).
    Declined {
        candidate: NodeId,
        why: Objection,
    },
    /// This node promises an epoch to the claim of another node (P8).
    Approved {
        epoch: Epoch,
    },
    /// This node may still approve the claim: it keeps the claim while the candidate repeats it (P8).
    Deferred {
        epoch: Epoch,
        why: Objection,
    },
    Refused {
        epoch: Epoch,
        why: Objection,
    },
    /// That node has approved this node's claim.
    Backed {
        epoch: Epoch,
        by: NodeId,
    },
    TurnedDown {
        epoch: Epoch,
        by: NodeId,
    },
}

/// The reason why a node does not approve a candidate, or does not approve it yet (P58).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Objection {
    /// The node's disk does not count, or another disk has the node's place in the roster (P10).
    MayNotVote,
    /// The node may not found a cluster with that blank candidate now: the node belongs to a cluster, has heard of one, or still
    /// listens for one (P9).
    MayNotFound,
    /// Neither the node's log nor the candidate's includes the other (P34).
    OtherHistory,
    Leads,
    /// The node hears that leader.
    Follows {
        leader: NodeId,
    },
    /// The node has promised an epoch to that candidate, and that epoch is not open yet.
    Awaits {
        candidate: NodeId,
    },
    /// The node is a candidate itself, and comes first.
    ClaimsItself,
    /// The node has just handed over, and leaves the field to its heir for a moment.
    Quiet,
    /// `before` other nodes come before the candidate, and each of them has a moment to claim.
    NotItsTurn {
        before: u64,
    },
    /// The node has promised that epoch or a greater one (P2).
    Promised {
        epoch: Epoch,
    },
}

/// The reason for which a leader hands over (P58).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HandOverReason {
    /// Somebody ordered it.
    Ordered {
        by: Text,
    },
    /// Somebody removes the leader from the members (P43).
    Removed {
        by: Text,
    },
    /// The process is to end.
    Stopping,
    DiskFull,
    /// A node that precedes this one is back, and has been up for long enough (P19).
    Elder,
}

impl HandOverReason {
    /// Who ordered it.
    pub fn by(&self) -> Option<&str> {
        match self {
            HandOverReason::Ordered { by } | HandOverReason::Removed { by } => Some(by),
            HandOverReason::Stopping | HandOverReason::DiskFull | HandOverReason::Elder => None,
        }
    }

    /// The word for the reason in the chronicle and the feed.
    pub fn word(&self) -> &'static str {
        match self {
            HandOverReason::Ordered { .. } => "ordered",
            HandOverReason::Removed { .. } => "removed",
            HandOverReason::Stopping => "stopping",
            HandOverReason::DiskFull => "disk_full",
            HandOverReason::Elder => "elder",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    Started,
    Silence,
    Refused,
    NewProcess,
    Resigned,
    NoMajority,
    Stuck,
    HandedOver,
    GreaterEpoch,
    NoDecision,
    /// The leader goes on in a new epoch, which begins with the merge of two sides (P34).
    Merged,
    Odd,
    /// Another disk has the node's place in the roster (P10).
    Replaced,
}

impl Cause {
    pub const ALL: [Cause; 13] = [
        Cause::Started,
        Cause::Silence,
        Cause::Refused,
        Cause::NewProcess,
        Cause::Resigned,
        Cause::NoMajority,
        Cause::Stuck,
        Cause::HandedOver,
        Cause::GreaterEpoch,
        Cause::NoDecision,
        Cause::Merged,
        Cause::Odd,
        Cause::Replaced,
    ];

    /// The word for the cause in the chronicle, the log and the metrics. Programs compare it, so it stays as it is.
    pub fn word(self) -> &'static str {
        match self {
            Cause::Started => "started",
            Cause::Silence => "silence",
            Cause::Refused => "refused",
            Cause::NewProcess => "new_process",
            Cause::Resigned => "resigned",
            Cause::NoMajority => "no_majority",
            Cause::Stuck => "stuck",
            Cause::HandedOver => "handed_over",
            Cause::GreaterEpoch => "greater_epoch",
            Cause::NoDecision => "no_decision",
            Cause::Merged => "merged",
            Cause::Odd => "odd",
            Cause::Replaced => "replaced",
        }
    }
}

/// The reason why two sides do not become one (P48).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Impasse {
    /// The other side was heard, but sent nothing that could be merged.
    NothingComes,
    /// The state that this side would send is larger than a node accepts.
    TooLarge { bytes: u64, most: u64 },
    /// The journal of conflicts would exceed its bound on entries or on text.
    JournalFull { entries: usize, bytes: usize },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// A record that this binary cannot read (P23).
    UnknownFormat { index: Index },
    /// This node's state differs from the majority's: it starts again with a new incarnation (P25).
    Odd,
    /// This disk ends below what it has acknowledged to its leader: the node starts again with a new incarnation (P27).
    Forgot,
    /// This node has been removed from the cluster, by a record up to this index (P43).
    Removed { as_of: Index },
    /// A leader asked this node to truncate what is committed: a correct leader never does that (I2).
    CommittedConflict { index: Index },
}

/// A message, with the fields that every message carries about its sender.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Envelope {
    pub from: NodeId,
    pub to: NodeId,
    pub boot: Boot,
    pub incarnation: Incarnation,
    /// The sender's log has counted the sender's disk: that disk is not let in a second time (P10).
    pub admitted: bool,
    /// The cluster that the sender's log belongs to, if the log names one (P44).
    pub cluster: ClusterId,
    pub format: Format,
    pub message: Message,
}

/// An epoch together with the claim that it was approved for (P2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term {
    pub epoch: Epoch,
    pub claim: ClaimId,
}

/// The messages between nodes. Every message is one-way; the transport may drop, repeat, reorder and delay it. An answer is a message like
/// any other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// The leader to all: I lead; grant me a lease (P11); this index is committed; this node is the heir.
    Heartbeat(Beat),
    HeartbeatReply(BeatReply),
    /// The leader to one follower: these records follow `prev` (P5).
    Append {
        term: Term,
        prev: Position,
        records: Records,
        commit: Index,
    },
    Appended {
        epoch: Epoch,
        matched: Index,
    },
    /// I do not have `prev`; `hint` is the greatest position in my log that could match yours.
    Gap {
        epoch: Epoch,
        prev: Position,
        hint: Position,
    },
    /// The leader to a follower that lags too far: a whole state (P26).
    Snapshot {
        term: Term,
        meta: SnapshotMeta,
    },
    /// You speak for an epoch below my promise (P2).
    Stale {
        promise: Term,
    },
    /// The answer to `Willing`: as of the committed record at `as_of`, you do not belong to the cluster; my log goes as far as
    /// `last` (P43).
    NotMember {
        /// The number of the question. Only the node that was asked knows it (P51).
        ask: u64,
        as_of: Index,
        last: Position,
    },
    /// I do not lead in this epoch, now or ever again (P16).
    Resigned {
        epoch: Epoch,
    },
    /// A leaderless node to all: would you approve me? This is the dry run (P4).
    Willing {
        ask: u64,
        standing: Standing,
    },
    Opinion {
        ask: u64,
        yes: bool,
        /// The asker keeps dying and is on hold (P20).
        held: bool,
        standing: Standing,
    },
    /// A candidate to all: promise me this epoch (P8).
    Claim(Claim),
    Approve {
        term: Term,
        last: Position,
        /// The longest time for which an older leader may still rely on me (P11).
        lease_left: Span,
    },
    Refuse {
        term: Term,
        promise: Epoch,
    },
    /// A candidate to a node that approved it: send the records that follow `after` (P6).
    Pull {
        term: Term,
        after: Position,
    },
    Pulled {
        term: Term,
        prev: Position,
        records: Records,
    },
    /// The leader to its heir: my epoch has ended, at this position (P18).
    HandOver(Certificate),
    /// Available mode, a leader to every node outside its side: do you lead, or which leader do you follow (P32)?
    Poll {
        term: Term,
        vector: Vector,
    },
    /// I am on another side: `leader` leads it, or it has no leader.
    Side {
        epoch: Epoch,
        leader: Option<NodeId>,
        vector: Vector,
    },
    /// The elder of two leaders to the younger: stop the service, and send me what `vector` does not include (P34).
    Meet {
        term: Term,
        vector: Vector,
    },
    /// The younger to the elder: everything of my state that `base` does not include (P34).
    Merge {
        epoch: Epoch,
        base: Vector,
        meta: SnapshotMeta,
    },
    /// The leader to a node whose log its own log includes: everything that `base` does not include (P33).
    Override {
        term: Term,
        base: Vector,
        meta: SnapshotMeta,
    },
    /// The leader to a node whose state differs from the majority's (P25), or whose disk has forgotten something (P27).
    Odd {
        epoch: Epoch,
        incarnation: Incarnation,
        forgot: bool,
        /// The number of that node's own question, if it has asked one (P51).
        ask: Option<u64>,
    },
}

/// The report of a node about itself during an election.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Standing {
    pub promise: Epoch,
    /// The greatest epoch that the node has heard of: the next claim must be greater.
    pub seen: Epoch,
    pub last: Position,
    /// The nodes that answered this node lately (P4).
    pub hears: BTreeSet<NodeId>,
    /// The time for which the node has been leaderless; zero if it follows or leads.
    pub seeking: Span,
    pub condition: Condition,
    /// Available mode: what the node's log includes (P31).
    pub vector: Option<Vector>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Condition {
    /// The node was never part of a cluster (P9).
    Blank,
    /// The node is blank, and an operator has ordered it to form a cluster.
    Ordered,
    /// The node's disk forgot something: it neither votes nor counts (P10).
    Recovering,
    /// The node is fit but on hold (P20), or its disk has no room (P24).
    Held,
    Fit,
}

impl Condition {
    pub fn is_blank(self) -> bool {
        matches!(self, Condition::Blank | Condition::Ordered)
    }
}

/// A request for a promise (P8).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Claim {
    pub term: Term,
    /// This position grows while the candidate pulls: a claim that makes progress gets more time.
    pub last: Position,
    pub condition: Condition,
    pub certificate: Option<Certificate>,
    /// Available mode: what the candidate's log includes (P31).
    pub vector: Option<Vector>,
}

/// The end of an epoch, declared by the leader of that epoch (P18).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Certificate {
    pub epoch: Epoch,
    pub heir: NodeId,
    pub last: Position,
}

impl Certificate {
    fn newest_epoch(self) -> Epoch {
        self.epoch.max(self.last.epoch)
    }
}

/// A beat says that the leader is alive, and how far the cluster is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Beat {
    pub term: Term,
    pub round: u64,
    pub lease: Span,
    pub commit: Index,
    pub heir: Option<NodeId>,
    /// The boundary whose digest the leader asks for (P25).
    pub boundary: Index,
    /// Available mode: what the leader's log includes, for a node that does not follow yet (P32).
    pub vector: Option<Vector>,
}

/// The answer of a follower to a beat.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BeatReply {
    pub epoch: Epoch,
    pub round: u64,
    /// The last index up to which this log is known to match the log of this epoch's leader (P5).
    pub matched: Index,
    pub last: Position,
    pub full: bool,
    pub digest: Option<Checkpoint>,
    /// Available mode: what this log includes, for a leader that does not know this follower's position yet (P33).
    pub vector: Option<Vector>,
}

/// The digest of the applied state at a boundary (P25).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Checkpoint {
    pub index: Index,
    pub digest: Digest,
}

impl Message {
    /// Whether this is a message between sides. No node sends such a message in safe mode.
    pub fn is_of_sides(&self) -> bool {
        matches!(
            self,
            Message::Poll { .. }
                | Message::Side { .. }
                | Message::Meet { .. }
                | Message::Merge { .. }
                | Message::Override { .. }
        )
    }

    /// The greatest epoch that the message names anywhere.
    pub fn newest_epoch(&self) -> Epoch {
        let of_vector = |vector: &Option<Vector>| vector.as_ref().map(Vector::newest).unwrap_or_default();
        match self {
            Message::Heartbeat(Beat { term, vector, .. }) => term.epoch.max(of_vector(vector)),
            Message::HeartbeatReply(BeatReply { epoch, last, vector, .. }) => {
                (*epoch).max(last.epoch).max(of_vector(vector))
            }
            Message::Append { term, prev, .. } | Message::Pulled { term, prev, .. } => {
                term.epoch.max(prev.epoch)
            }
            Message::Appended { epoch, .. } | Message::Resigned { epoch } | Message::Odd { epoch, .. } => {
                *epoch
            }
            Message::Gap { epoch, prev, hint } => (*epoch).max(prev.epoch).max(hint.epoch),
            Message::Snapshot { term, meta } => term.epoch.max(meta.newest_epoch()),
            Message::Stale { promise } => promise.epoch,
            Message::NotMember { last, .. } => last.epoch,
            Message::Willing { standing, .. } | Message::Opinion { standing, .. } => {
                let Standing { promise, seen, last, vector, .. } = standing;
                (*promise).max(*seen).max(last.epoch).max(of_vector(vector))
            }
            Message::Claim(claim) => {
                let certified = claim.certificate.map(Certificate::newest_epoch).unwrap_or_default();
                claim.term.epoch.max(claim.last.epoch).max(certified).max(of_vector(&claim.vector))
            }
            Message::Approve { term, last, .. } => term.epoch.max(last.epoch),
            Message::Refuse { term, promise } => term.epoch.max(*promise),
            Message::Pull { term, after } => term.epoch.max(after.epoch),
            Message::HandOver(certificate) => certificate.newest_epoch(),
            Message::Poll { term, vector } | Message::Meet { term, vector } => {
                term.epoch.max(vector.newest())
            }
            Message::Side { epoch, vector, .. } => (*epoch).max(vector.newest()),
            Message::Merge { epoch, base, meta } => (*epoch).max(base.newest()).max(meta.newest_epoch()),
            Message::Override { term, base, meta } => term.epoch.max(base.newest()).max(meta.newest_epoch()),
        }
    }

    /// The greatest index that this message could bring into the log or the vector of this node.
    pub fn greatest_index(&self) -> Index {
        let of_meta = |meta: &SnapshotMeta| {
            let noted = meta.vector.as_ref().map_or(0, Vector::highest);
            meta.index().max(noted)
        };
        match self {
            Message::Append { prev, records, .. } | Message::Pulled { prev, records, .. } => {
                records.last().map_or(prev.index, |record| prev.index.max(record.index()))
            }
            Message::Snapshot { meta, .. } | Message::Merge { meta, .. } | Message::Override { meta, .. } => {
                of_meta(meta)
            }
            _ => 0,
        }
    }

    /// The epoch that the sender speaks for, if the message binds the sender to one.
    pub fn epoch(&self) -> Option<Epoch> {
        match self {
            Message::Heartbeat(Beat { term, .. })
            | Message::Append { term, .. }
            | Message::Snapshot { term, .. }
            | Message::Override { term, .. }
            | Message::Approve { term, .. }
            | Message::Pull { term, .. }
            | Message::Pulled { term, .. } => Some(term.epoch),
            Message::HeartbeatReply(BeatReply { epoch, .. }) | Message::Appended { epoch, .. } => {
                Some(*epoch)
            }
            Message::Claim(claim) => Some(claim.term.epoch),
            _ => None,
        }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Message::Heartbeat(Beat { term, round, commit, heir, .. }) => {
                write!(f, "heartbeat {} round {round} commit {commit}", term.epoch)?;
                heir.map_or(Ok(()), |heir| write!(f, " heir {heir}"))
            }
            Message::HeartbeatReply(BeatReply { epoch, round, matched, last, .. }) => {
                write!(f, "heard {epoch} round {round} matched {matched} last {last}")
            }
            Message::Append { term, prev, records, commit } => {
                let count = records.len();
                write!(f, "append {} after {prev} +{count} commit {commit}", term.epoch)
            }
            Message::Appended { epoch, matched } => write!(f, "appended {epoch} matched {matched}"),
            Message::Gap { epoch, prev, hint } => write!(f, "gap {epoch} at {prev} hint {hint}"),
            Message::Snapshot { term, meta } => write!(f, "snapshot {} at {}", term.epoch, meta.at),
            Message::Stale { promise } => write!(f, "stale promise {}", promise.epoch),
            Message::NotMember { as_of, .. } => write!(f, "no member as of {as_of}"),
            Message::Resigned { epoch } => write!(f, "resigned {epoch}"),
            Message::Willing { standing, .. } => write!(f, "willing {standing}"),
            Message::Opinion { yes, standing, .. } => {
                write!(f, "opinion {} {standing}", if *yes { "yes" } else { "no" })
            }
            Message::Claim(claim) => write!(f, "{claim}"),
            Message::Approve { term, last, lease_left } => {
                write!(f, "approve {} last {last} lease_left {lease_left}", term.epoch)
            }
            Message::Refuse { term, promise } => {
                write!(f, "refuse {} promise {promise}", term.epoch)
            }
            Message::Pull { term, after } => write!(f, "pull {} after {after}", term.epoch),
            Message::Pulled { term, prev, records } => {
                write!(f, "pulled {} after {prev} +{}", term.epoch, records.len())
            }
            Message::HandOver(c) => write!(f, "hand-over {} to {} at {}", c.epoch, c.heir, c.last),
            Message::Poll { term, vector } => write!(f, "poll {} has {vector}", term.epoch),
            Message::Side { epoch, leader, vector } => {
                write!(f, "side {epoch} led by {} has {vector}", leader.unwrap_or_default())
            }
            Message::Meet { term, vector } => write!(f, "meet {} has {vector}", term.epoch),
            Message::Merge { epoch, base, meta } => write!(f, "merge {epoch} at {} beyond {base}", meta.at),
            Message::Override { term, base, meta } => {
                write!(f, "override {} at {} beyond {base}", term.epoch, meta.at)
            }
            Message::Odd { epoch, .. } => write!(f, "odd {epoch}"),
        }
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "last {} promise {} {:?}", self.last, self.promise, self.condition)
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "claim {} last {}", self.term.epoch, self.last)?;
        match self.certificate {
            Some(certificate) => write!(f, " after {}", certificate.epoch),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Envelope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} → {} {}", self.from, self.to, self.message)
    }
}
