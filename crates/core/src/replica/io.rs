//! Everything that goes into a replica and comes out of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::answer::{Answer, Denied, Level, Unheard};
use super::feed::FeedEvent;
use super::preparation::{Preparation, Prepared, StateTransfer};
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::{
    After, Envelope, Event, Fault, MemberChange, Message, Records, Seq, ServiceChange, SnapshotMeta, Term,
    Vote,
};
use crate::store::{
    Command, DocCondition, Key, NewProcess, RoleClaim, SecretHash, Steps, Store, Tenure, TokenId, Unreadable,
};
use crate::types::{ClusterId, Index, KeyedCall, Members, NodeId, Text, Time, Vector};

/// A caller, for as long as it waits for its answer. The driver numbers them and never uses a number twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// What happened. The driver gives one at a time, with what the clocks showed.
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
    /// All calls that wait, in the order in which they came: one round.
    Calls(Vec<(CallId, Call)>),
    /// Nobody waits for this answer any more.
    Gone(CallId),
    /// Nobody was there to hear this. It may come at any time after the answer.
    Unheard(Unheard),
    /// What was to be handed in to that node is more than it takes.
    StateTooLarge { to: NodeId, bytes: u64 },
    /// The snapshot under way reached this index; none if it failed and its changes are still to be written.
    SnapshotEnded(Option<Index>),
    /// What the preparation under way came to (P49).
    Prepared(Box<Prepared>),
}

/// The state that came with a peer's message, read and checked.
#[derive(Clone, Debug)]
pub enum Brought {
    /// A whole snapshot. Its files are with the driver, which installs them when it is told to.
    Snapshot {
        meta: SnapshotMeta,
        origin: Index,
        store: Box<Store>,
    },
    Difference(Box<StateTransfer>),
}

/// What a client or an operator asks for. Each gets one [`Answer`], also if nobody is there to hear it.
#[derive(Debug)]
pub enum Call {
    Write {
        command: Box<Command>,
        /// Its idempotency key.
        key: Option<KeyedCall>,
    },
    /// All data is replaced by these records, or a document is merged in.
    Restore(Steps),
    Read(Level),
    HandOver {
        to: Option<NodeId>,
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
    /// Hand over if leading; the answer is the end.
    Stop,
}

impl Call {
    /// Answered at once, by what this node has and by its clock.
    pub(super) fn only_looks(&self) -> bool {
        matches!(self, Call::Read(Level::Leader | Level::Local))
    }
}

/// A call that wants a role for somebody.
#[derive(Clone, Debug)]
pub struct Acquire {
    pub role: Text,
    pub claim: Arc<RoleClaim>,
    /// An operator names the holder: whoever has it loses it.
    pub elect: bool,
    /// Among those who wait: higher first.
    pub priority: i64,
    /// So long it waits, if somebody has it.
    pub until: Time,
    /// The token of whoever asks: it is judged again when the wait ends (P56).
    pub by: Option<TokenId>,
    pub key: Option<KeyedCall>,
}

/// A holder goes on.
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
    /// A document with a ttl goes on, if it is the one that is meant.
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

/// A process says what it is. One that says the same again only renews.
#[derive(Clone, Debug)]
pub struct Registration {
    pub id: Text,
    pub process: Arc<NewProcess>,
    pub key: Option<KeyedCall>,
}

/// What to do. Carried out in order; `after` is the durability that a message needs (P29).
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
    /// The same, with the newest snapshot as the message.
    SendSnapshot {
        to: NodeId,
        term: Term,
        after: After,
    },
    /// The same, with what the committed state has beyond a base.
    SendState(Box<Outgoing>),
    /// These belong to the cluster from now on, as far as this node knows, and this is which one it is.
    Members {
        cluster: ClusterId,
        members: Members,
    },
    /// Find out now whether this peer's process lives.
    Probe(NodeId),
    Answer(CallId, Result<Answer, Denied>),
    /// Write this state down in the background, and say how it ended. One at a time.
    Snapshot(Box<SnapshotOrder>),
    /// Work this out beside everything else, and give it back (P49). One at a time.
    Prepare(Box<Preparation>),
    /// Nobody needs this any more. To free it may take a while.
    Discard(Discarded),
    /// What readers of the feed are told.
    Feed(FeedEvent),
    /// What people are told.
    Event(Event),
    /// The node cannot go on, or was asked to end. Nothing follows.
    End(End),
}

/// A change of what is on disk. Order is kept; durability is reported by [`In::Durable`].
#[derive(Clone, Debug)]
pub enum DiskWrite {
    Vote(Vote),
    Append(Records),
    /// Every record above this index goes. Durable before anything is appended after it.
    Truncate {
        above: Index,
    },
    /// Records up to this index may go: a snapshot holds them.
    Trim {
        upto: Index,
    },
    /// The snapshot that came with this message replaces log and state.
    Install,
    /// The state as it has just become replaces log and snapshot: only what has changed needs to be written.
    Rebase(Box<SnapshotOrder>, u32),
}

/// A frozen state, and which of its entries the newest snapshot has not, or not so.
#[derive(Clone, Debug)]
pub struct SnapshotOrder {
    pub meta: SnapshotMeta,
    pub origin: Index,
    pub store: Store,
    /// What has changed since the newest snapshot, in no order.
    pub keys: Arc<Vec<Key>>,
    /// It begins a chain of its own, with every entry.
    pub whole: bool,
}

impl SnapshotOrder {
    /// The rows that it writes: every entry of the state, or what has changed since the newest snapshot, each with its value
    /// as JSON on one line, or none where it is gone.
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

/// What may be large.
#[derive(Clone, Debug)]
pub enum Discarded {
    Store(Box<Store>),
    Transfer(Box<StateTransfer>),
    Prepared(Box<Prepared>),
}

/// The committed state as it was when the core said so, on its way to a node that lacks a part of it.
#[derive(Clone, Debug)]
pub struct Outgoing {
    pub envelope: Envelope,
    pub meta: SnapshotMeta,
    pub origin: Index,
    pub store: Store,
    /// What goes instead if the difference cannot be told, or is too large: the newest snapshot, or else everything.
    pub instead: Option<Envelope>,
    pub after: After,
}

/// Why a replica has ended.
#[derive(Clone, Debug)]
pub enum End {
    /// It was asked to, and has handed over if it led.
    Asked,
    /// The protocol cannot go on.
    Fault(Fault),
    /// A record that this binary cannot apply: going on would be another state than the others'.
    Unreadable { index: Index, error: Unreadable },
    /// A promise between the core and what surrounds it does not hold.
    Broken(&'static str),
}

impl Outgoing {
    /// What the receiver has already.
    pub fn base(&self) -> Vector {
        match &self.envelope.message {
            Message::Merge { base, .. } | Message::Override { base, .. } => base.clone(),
            _ => Vector::default(),
        }
    }

    /// Whether two sides meet; else one follows the other.
    pub fn is_merge(&self) -> bool {
        matches!(self.envelope.message, Message::Merge { .. })
    }
}
