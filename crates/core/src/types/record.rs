//! The content of the log, and the leases that expire.

use std::collections::BTreeMap;
use std::fmt;

use super::ids::{ClusterId, Incarnation, Members, NodeId, Text};
use super::position::{Epoch, Index, Position};
use super::time::{Span, WallTime};

/// The version of the record types that a node can read. A leader writes a type only once every
/// node of the topology has shown that it reads it (P23).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Format(pub u16);

/// The newest format that this binary reads. 1: the first record types. 2: documents that end, and tokens. 3: writes in the
/// name of a role (P59). 4: the last step of a restore that raises the last token or begins a history (P57, P60). A record
/// that an earlier build would refuse or read differently needs the next number. Otherwise that build stops or diverges
/// (C31).
pub const FORMAT: Format = Format(4);

/// A client's command, opaque to the protocol. The log has it as `type|JSON`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Payload {
    pub kind: u16,
    pub format: Format,
    /// The call that this command carries out, so that a retry of the call is recognised.
    pub call: Option<KeyedCall>,
    pub text: Text,
}

/// Hashes of a client's `Idempotency-Key`, of the request and of the caller. The hash of the caller is short, and zero if the
/// caller is not known. It is there because a full table drops the calls of the callers that have most (P52).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyedCall {
    pub key: u128,
    pub body: u64,
    pub who: u32,
}

impl KeyedCall {
    /// Whether both are attempts of the same call. The caller is not compared: a retry may come from another address. The key
    /// is a hash that covers the principal, so a retry of another principal never has the same key (P52).
    pub fn is_attempt_of(&self, other: &KeyedCall) -> bool {
        (self.key, self.body) == (other.key, other.body)
    }
}

/// The party that stopped the service. Each owner lifts only its own hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    Operator,
    Merge,
}

/// The content of a record. Every entry except `Client` belongs to the protocol.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Entry {
    /// Opens a leader's epoch (P6). The first entry of this kind founds the cluster (P9).
    Lead {
        founding: Option<Box<Founding>>,
    },
    /// Gives the member's place in the roster to this disk (P10).
    Rejoin {
        node: NodeId,
        incarnation: Incarnation,
    },
    /// Client writes stop until the owner lifts this or the ttl has passed in cluster time (P22).
    ServiceDown {
        owner: Owner,
        ttl: Span,
        /// For people.
        reason: Text,
    },
    ServiceUp {
        owner: Owner,
    },
    /// These are the nodes of the cluster from this record on, committed or not (P43).
    Members {
        members: Members,
    },
    /// Every disk of the topology has had every record up to here. Merge metadata up to this position is dropped, except the
    /// journal (P35).
    Settled {
        upto: Position,
    },
    /// One command or one atomic batch: never split over two records (P12).
    Client(Payload),
}

/// The content of a cluster's first record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Founding {
    /// The nodes that were present, with their disks.
    pub founders: BTreeMap<NodeId, Incarnation>,
    /// Zero in records from before clusters had an id, and in available mode, where sides may begin separately.
    pub cluster: ClusterId,
    /// The members, including those that were not present. `None` if `cluster` is not known: then the topology file lists the
    /// members.
    pub members: Option<Members>,
}

/// The leader's clocks when it wrote a record (P17). Wall time is for people and never goes back. Cluster time continues
/// through every change of leader, and every ttl uses it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp {
    pub wall: WallTime,
    pub cluster: Span,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    pub position: Position,
    pub stamp: Stamp,
    pub entry: Entry,
}

impl Record {
    pub fn index(&self) -> Index {
        self.position.index
    }

    pub fn epoch(&self) -> Epoch {
        self.position.epoch
    }
}

impl Entry {
    /// The approximate size in bytes, in memory as on disk. Bounds in bytes count this size.
    pub fn size(&self) -> usize {
        // An entry without text must not be free: bounds in bytes are to bound the number of entries, too.
        const REST: usize = 64;
        match self {
            Entry::Client(payload) => REST + payload.text.len(),
            Entry::ServiceDown { reason, .. } => REST + reason.len(),
            Entry::Lead { founding: Some(_) } => REST * 2,
            Entry::Members { members } => REST * (1 + members.len()),
            Entry::Lead { .. } | Entry::Rejoin { .. } | Entry::ServiceUp { .. } | Entry::Settled { .. } => {
                REST
            }
        }
    }

    /// The format that a reader of this entry needs.
    pub fn format(&self) -> Format {
        match self {
            Entry::Client(payload) => payload.format,
            _ => Format(1),
        }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Entry::Lead { founding: None } => write!(f, "lead"),
            Entry::Lead { founding: Some(_) } => write!(f, "form"),
            Entry::Rejoin { node, incarnation } => write!(f, "rejoin {node} {incarnation}"),
            Entry::ServiceDown { owner, ttl, .. } => write!(f, "down {owner:?} {ttl}"),
            Entry::ServiceUp { owner } => write!(f, "up {owner:?}"),
            Entry::Members { members } => {
                write!(f, "members")?;
                members.iter().try_for_each(|member| {
                    write!(f, " {}{}", member.id, if member.votes { "" } else { " (learns)" })
                })
            }
            Entry::Settled { upto } => write!(f, "settled {upto}"),
            Entry::Client(payload) => write!(f, "{}|{}", payload.kind, payload.text),
        }
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.position, self.entry)
    }
}

/// Leases that one record ends, ages or refreshes. Such a record is applied in a few milliseconds, and ten of them in a second
/// end 10,000 leases. Names have up to 256 bytes, so a record stays far below the size limit of the log. The proposer and the
/// reader of such a record use this same bound, because a node cannot continue beyond a record that it cannot read.
pub const LEASES_MOST: usize = 1000;

/// Calls that wait for one role (P41). When the role becomes free, dead calls are removed one by one, in the leader's loop.
pub const WAITERS_PER_ROLE_MOST: usize = 1000;

/// Calls that wait for any role: each keeps a connection and a request open on some node.
pub const WAITERS_MOST: usize = 10_000;

/// The variants stand in the order of `Store::leases`, so the list from which a new leader counts is already
/// sorted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeaseName {
    Role(Text),
    Process(Text),
    /// A document that ends unless it is written or renewed.
    Doc(Text),
}

impl LeaseName {
    pub fn text(&self) -> &Text {
        match self {
            LeaseName::Role(text) | LeaseName::Process(text) | LeaseName::Doc(text) => text,
        }
    }

    /// Whether the log records that this lease went past half its ttl (P40). It does not do so for documents: a document's
    /// row has the written value and its position, and only a write changes the row.
    pub fn ages(&self) -> bool {
        !matches!(self, LeaseName::Doc(_))
    }
}

/// The lease as the log has it. The leader decides by its own clock when the lease ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The token of this grant: another token means another lease. A document's token is the index of its last write.
    pub token: u64,
    pub ttl: Span,
    /// The lease went past half its ttl without a renewal, and has not been renewed since (C14).
    pub aged: bool,
}
