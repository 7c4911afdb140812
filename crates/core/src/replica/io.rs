//! The inputs and outputs of a replica.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::answer::{Answer, Denied, ReadProof, Unheard};
use super::feed::FeedEvent;
use super::preparation::{Preparation, Prepared, StateTransfer};
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::{
    After, Envelope, Event, Fault, HandOverReason, MemberChange, Message, Records, Seq, ServiceChange,
    SnapshotMeta, Term, Vote,
};
use crate::store::{
    Command, DocCondition, Key, NewProcess, RoleClaim, SecretHash, Steps, Store, Tenure, TokenId, Unreadable,
};
use crate::types::{ClusterId, Index, KeyedCall, Members, NodeId, Text, Time, Vector};

/// A caller, for as long as it waits for its answer. The driver numbers callers and never uses a number twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// An input says what happened. The driver gives one at a time, with the readings of the clocks.
#[derive(Debug)]
pub enum In {
    /// The deadline has come.
    Tick,
    /// A peer's message, and the state that came with it.
    Message(Box<Envelope>, Option<Brought>),
    /// Every write up to this one is on disk.
    Durable(Seq),
    /// The promise of every vote up to this one is on disk, though writes before it still wait for room.
    Promised(Seq),
    /// The disk has no room for another segment, or has room again (P24).
    DiskFull(bool),
    /// The peer's connection broke and its port refuses: that process is dead (P3).
    PeerRefused(NodeId),
    /// All calls that are waiting, in the order in which they came. They form one round, or several if their records are large.
    Calls(Vec<(CallId, Call)>),
    /// The caller no longer waits for its answer.
    Gone(CallId),
    /// This promise did not reach its caller. The input may come at any time after the answer.
    Unheard(Unheard),
    /// This side's state, which that node is to merge, exceeds the limit for such a transfer.
    StateTooLarge { to: NodeId, bytes: u64 },
    /// The snapshot under way has reached this index; `None` if it failed and its changes are still to be written.
    SnapshotEnded(Option<Index>),
    /// The result of the preparation under way (P49).
    Prepared(Box<Prepared>),
}

/// The state that came with a peer's message, read and checked.
#[derive(Clone, Debug)]
pub enum Brought {
    /// A whole snapshot. Its files are with the driver, which installs them on request.
    Snapshot {
        meta: SnapshotMeta,
        origin: Index,
        store: Box<Store>,
    },
    Difference(Box<StateTransfer>),
}

/// A request of a client or an operator. Each gets one [`Answer`], even if the caller has gone.
#[derive(Debug)]
pub enum Call {
    Write {
        command: Box<Command>,
        /// The idempotency key of the call.
        key: Option<KeyedCall>,
    },
    /// These records replace all data, or merge a document in.
    Restore(Steps),
    Read(ReadProof),
    HandOver {
        to: Option<NodeId>,
        reason: HandOverReason,
    },
    Service(ServiceChange),
    /// The cluster is formed without these nodes (P9).
    Form {
        without: BTreeSet<NodeId>,
    },
    /// A node joins the cluster, leaves it, or moves to another address (P43).
    ChangeMembers(MemberChange),
    Acquire(Box<Acquire>),
    Renew(Renewal),
    /// The connection that a role's holder relies on has closed (P45).
    Untie(Untie),
    Register(Registration),
    /// The node ends, and hands over first if it leads. The end is the answer.
    Stop,
}

impl Call {
    /// The call can be answered at once, from this node's state and by its clock.
    pub(super) fn only_looks(&self) -> bool {
        matches!(self, Call::Read(ReadProof::Lease))
    }
}

/// A call that asks for a role on behalf of an instance.
#[derive(Clone, Debug)]
pub struct Acquire {
    pub role: Text,
    pub claim: Arc<RoleClaim>,
    /// An operator names the holder, and the present holder loses the role.
    pub elect: bool,
    /// The order among waiters: higher first.
    pub priority: i64,
    /// The call waits until this time if another instance holds the role.
    pub until: Time,
    /// The caller's token. It is judged again when the wait ends (P56).
    pub by: Option<TokenId>,
    pub key: Option<KeyedCall>,
}

/// A holder renews its lease.
#[derive(Clone, Debug)]
pub enum Renewal {
    Role {
        role: Text,
        tenure: Tenure,
    },
    Process {
        id: Text,
        secret: Option<SecretHash>,
    },
    /// The holder renews a document with a ttl, if the document meets the condition.
    Doc {
        key: Text,
        condition: DocCondition,
    },
}

/// The lease ends, unless its holder has named another tie since.
#[derive(Clone, Debug)]
pub struct Untie {
    pub role: Text,
    pub tenure: Tenure,
    pub tie: u64,
}

/// A process registers with its description. If the description is unchanged, the call only renews.
#[derive(Clone, Debug)]
pub struct Registration {
    pub id: Text,
    pub process: Arc<NewProcess>,
    pub key: Option<KeyedCall>,
}

/// An output says what to do. Outputs are carried out in order; `after` is the durability that a message needs (P29).
#[derive(Clone, Debug)]
pub enum Out {
    Write {
        seq: Seq,
        write: DiskWrite,
    },
    /// Give this to the transport once every write up to `after` is durable, never before.
    Send {
        envelope: Envelope,
        after: After,
    },
    /// Like `Send`, with the newest snapshot as the message.
    SendSnapshot {
        to: NodeId,
        term: Term,
        after: After,
    },
    /// Like `Send`, with everything that the committed state has beyond a base.
    SendState(Box<Outgoing>),
    /// The cluster has this identity and these members from now on, as far as this node knows.
    Members {
        cluster: ClusterId,
        members: Members,
    },
    /// Find out now whether this peer's process is alive.
    Probe(NodeId),
    Answer(CallId, Result<Answer, Denied>),
    /// Write this state to disk in the background, and report how that ended. One at a time.
    Snapshot(Box<SnapshotOrder>),
    /// Work this out in parallel to everything else, and return the result (P49). One at a time.
    Prepare(Box<Preparation>),
    /// This value is no longer needed. Freeing it may take a while.
    Discard(Discarded),
    /// An event for readers of the feed.
    Feed(FeedEvent),
    /// An event for people.
    Event(Event),
    /// The node cannot go on, or was asked to end. Nothing follows.
    End(End),
}

/// A change of the data on disk. The order is kept; [`In::Durable`] reports durability.
#[derive(Clone, Debug)]
pub enum DiskWrite {
    Vote(Vote),
    Append(Records),
    /// Every record above this index is removed. This is durable before anything is appended after it.
    Truncate {
        above: Index,
    },
    /// Records up to this index may be removed, because a snapshot holds them.
    Trim {
        upto: Index,
    },
    /// The snapshot that came with this message replaces log and state.
    Install,
    /// The state that has just resulted from a merge or an override replaces log and snapshot. Only its changes need to be
    /// written.
    Rebase(Box<SnapshotOrder>, u32),
}

/// A frozen state, and the entries that the newest snapshot lacks or has with another value.
#[derive(Clone, Debug)]
pub struct SnapshotOrder {
    pub meta: SnapshotMeta,
    pub origin: Index,
    pub store: Store,
    /// The keys that have changed since the newest snapshot, in no order.
    pub keys: Arc<Vec<Key>>,
    /// The snapshot begins a new chain, with every entry.
    pub whole: bool,
}

impl SnapshotOrder {
    /// The rows that the snapshot writes: every entry of the state, or those that have changed since the newest snapshot. Each has its
    /// value as JSON on one line, or `None` if the entry is gone.
    pub fn rows(&self, whole: bool) -> Box<dyn Iterator<Item = (Key, Option<String>)> + '_> {
        let kept = |key: &Key| !(mutant::is_on(Mutant::KeysForgotten) && matches!(key, Key::Call(_)));
        if whole {
            return Box::new(
                self.store.entries().filter(move |(key, _)| kept(key)).map(|(key, value)| (key, Some(value))),
            );
        }
        let mut keys: Vec<&Key> = self.keys.iter().filter(|key| kept(key)).collect();
        keys.sort_unstable();
        keys.dedup();
        Box::new(keys.into_iter().map(|key| (key.clone(), self.store.entry(key))))
    }
}

/// A value that may be large.
#[derive(Clone, Debug)]
pub enum Discarded {
    Store(Box<Store>),
    Transfer(Box<StateTransfer>),
    Prepared(Box<Prepared>),
}

/// The committed state as it was when the core asked to send it to a node that lacks a part of it.
#[derive(Clone, Debug)]
pub struct Outgoing {
    pub envelope: Envelope,
    pub meta: SnapshotMeta,
    pub origin: Index,
    pub store: Store,
    /// The snapshot message to send if the difference cannot be determined, or is too large. Without one, a difference that cannot be
    /// determined is replaced by the whole state.
    pub instead: Option<Envelope>,
    pub after: After,
}

/// The reason why a replica has ended.
#[derive(Clone, Debug)]
pub enum End {
    /// The replica was asked to end, and has handed over if it led.
    Asked,
    /// The protocol cannot go on.
    Fault(Fault),
    /// This binary cannot apply a record. Going on would lead to another state than that of the other nodes.
    Unreadable { index: Index, error: Unreadable },
    /// A contract between the core and its surroundings is broken.
    Broken(&'static str),
}

impl Outgoing {
    /// The vector of what the receiver has already.
    pub fn base(&self) -> Vector {
        match &self.envelope.message {
            Message::Merge { base, .. } | Message::Override { base, .. } => base.clone(),
            _ => Vector::default(),
        }
    }

    /// Whether the state is sent for a merge of two sides. Otherwise it overrides the state of a follower.
    pub fn is_merge(&self) -> bool {
        matches!(self.envelope.message, Message::Merge { .. })
    }
}
